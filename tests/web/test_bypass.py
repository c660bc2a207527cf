"""A client may ask for a request to pass without matching, where the settings allow it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from proxy_under_test import Workspace
from raw_http import RawUpstream, ask, response
from raw_http.dialects import DIALECTS
from structlog.testing import capture_logs

STREAM = "text/event-stream"


@pytest.fixture(autouse=True)
def rule(workspace: Workspace) -> None:
    workspace.rule("no-bad-word", "BADWORD", scope="text")


async def reasons(url: str) -> dict[str, int]:
    ready = json.loads((await ask(url, "GET", "/readyz")).body)
    return {"inspected": ready["inspected"], **ready["not_inspected"]}


@pytest.mark.parametrize("name", DIALECTS)
async def test_a_bypassed_request_gets_upstream_s_answer_as_it_came(
    upstream: RawUpstream, start_proxy: Any, name: str
) -> None:
    dialect = DIALECTS[name]
    said = b"".join(dialect.events("BADWORD here"))
    upstream.script.append(response(said, kind=STREAM))
    proxy = await start_proxy(allow_bypass=True)
    with capture_logs() as logged:
        answer = await ask(
            proxy.url, "POST", dialect.path, *dialect.headers, ("X-TTSR-Bypass", "1"), body=dialect.body()
        )
    assert answer.body == said
    assert upstream.received[0].body == dialect.body()
    assert upstream.received[0].all("x-ttsr-bypass") == []
    assert await reasons(proxy.url) == {"inspected": 0, "bypassed": 1}
    assert [event["event"] for event in logged] == ["bypass", "request"]


@pytest.mark.parametrize(
    ("allowed", "value", "event"),
    [(False, "1", ["bypass_refused"]), (True, "0", []), (True, "", []), (True, "later", [])],
)
async def test_without_leave_or_a_clear_wish_the_request_is_inspected(
    upstream: RawUpstream, start_proxy: Any, allowed: bool, value: str, event: list[str]
) -> None:
    dialect = DIALECTS["anthropic"]
    for said in ("BADWORD here", "fine"):
        upstream.script.append(response(b"".join(dialect.events(said)), kind=STREAM))
    proxy = await start_proxy(allow_bypass=allowed)
    with capture_logs() as logged:
        answer = await ask(
            proxy.url, "POST", dialect.path, *dialect.headers, ("x-ttsr-bypass", value), body=dialect.body()
        )
    assert b"BADWORD" not in answer.body
    assert all(request.all("x-ttsr-bypass") == [] for request in upstream.received)
    assert await reasons(proxy.url) == {"inspected": 1}
    assert [one["event"] for one in logged if one["event"].startswith("bypass")] == event
