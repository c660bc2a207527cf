"""Exchanges that proxies got wrong, over every protocol."""

from __future__ import annotations

from typing import Any

import pytest
from proxy_under_test import Workspace, running_proxy
from raw_http import RawUpstream, ask, response
from raw_http.dialects import DIALECTS, Dialect

BAD = "BADWORD"


@pytest.fixture(params=DIALECTS.values(), ids=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    found: Dialect = request.param
    return found


def script(upstream: RawUpstream, dialect: Dialect, *answers: tuple[str, ...]) -> list[bytes]:
    written = [b"".join(dialect.events(*texts)) for texts in answers]
    upstream.script.extend(response(data, kind="text/event-stream") for data in written)
    return written


async def go(url: str, dialect: Dialect, **more: Any) -> bytes:
    answer = await ask(url, "POST", dialect.path, *dialect.headers, body=dialect.body(**more))
    assert answer.status == 200
    return answer.body


async def test_two_attempts_never_match_together(
    workspace: Workspace, upstream: RawUpstream, dialect: Dialect
) -> None:
    workspace.rule("no-force", "xx-yy", scope="text")
    workspace.rule("no-bad-word", BAD, scope="text")
    script(upstream, dialect, (f"{BAD} xx-",), ("yy", " Done."))
    async with running_proxy(workspace, upstream.url) as proxy:
        assert b"Done." in await go(proxy.url, dialect)
        (item,) = await proxy.log(("interrupted", "clean"))
    assert item["rule"] == "no-bad-word"


async def test_switched_off_every_byte_passes_and_nothing_is_logged(
    workspace: Workspace, upstream: RawUpstream, dialect: Dialect
) -> None:
    workspace.rule("no-bad-word", BAD, scope="text")
    (written,) = script(upstream, dialect, (f"{BAD} here",))
    async with running_proxy(workspace, upstream.url, enabled=False) as proxy:
        assert await go(proxy.url, dialect) == written
        assert await proxy.interrupts() == []
    assert upstream.received[0].body == dialect.body()


async def test_a_rule_that_no_attempt_keeps_lets_the_last_one_through(
    workspace: Workspace, upstream: RawUpstream, dialect: Dialect
) -> None:
    workspace.rule("no-bad-word", BAD, scope="text")
    script(upstream, dialect, *[(f"{BAD} here",)] * 9)
    async with running_proxy(workspace, upstream.url) as proxy:
        body = await go(proxy.url, dialect)
        items = await proxy.log(*[("interrupted", "violated again")] * 2, ("exhausted", "violated again"))
    assert BAD.encode() in body
    assert dialect.terminal in body
    assert len(upstream.received) == len(items) == 3


@pytest.mark.parametrize("prefix", ["", "/anthropic", "/openai", "/api/gateway", "/p/default"])
async def test_another_prefix_of_an_endpoint_is_no_way_around_the_rules(
    workspace: Workspace, upstream: RawUpstream, dialect: Dialect, prefix: str
) -> None:
    workspace.rule("no-bad-word", BAD, scope="text")
    script(upstream, dialect, (f"{BAD} here",), ("Done.",))
    async with running_proxy(workspace, upstream.url) as proxy:
        answer = await ask(proxy.url, "POST", prefix + dialect.path, *dialect.headers, body=dialect.body())
    assert BAD.encode() not in answer.body
    assert b"Done." in answer.body
