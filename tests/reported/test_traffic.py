"""Exchanges that proxies got wrong, over every protocol."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from typing import Any

import pytest
from click.testing import CliRunner
from proxy_under_test import Workspace, running_proxy
from raw_http import RawUpstream, ask, response
from raw_http.dialects import DIALECTS, Dialect
from strict_anthropic import tool

from ttsr_proxy.cli import main

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


BLOCK = {
    "anthropic": rb'"index": (\d)',
    "chat": rb'"tool_calls": \[\{"index": (\d)',
    "responses": rb'"output_index": (\d)',
}
"""Where an event says which block it is about."""


def by_turns(dialect: Dialect, events: list[bytes]) -> list[bytes]:
    """The events of two blocks, one of each in turn."""
    found = [re.search(BLOCK[dialect.name], event) for event in events]
    of_block = [int(place[1]) if place else None for place in found]
    first = of_block.index(0)
    last = len(events) - of_block[::-1].index(1)
    blocks = [[event for event, at in zip(events, of_block, strict=True) if at == block] for block in (0, 1)]
    mixed = [event for pair in itertools.zip_longest(*blocks) for event in pair if event is not None]
    assert len(mixed) == last - first
    return [*events[:first], *mixed, *events[last:]]


@pytest.mark.parametrize("mode", ["never", "always"])
async def test_blocks_that_arrive_by_turns_are_read_apart(
    workspace: Workspace, upstream: RawUpstream, dialect: Dialect, mode: str
) -> None:
    workspace.rule("no-push", "girm|git push", scope="tool:bash", interruptMode=mode)
    calls = [tool("Bash", {"command": command}) for command in ("git push", "rm -r x")]
    written = b"".join(by_turns(dialect, dialect.answer(*calls, chunk=3)))
    upstream.script.append(response(written, kind="text/event-stream"))
    script(upstream, dialect, ("Done.",))
    async with running_proxy(workspace, upstream.url) as proxy:
        body = await go(proxy.url, dialect)
        expected = ("reminded", "pending") if mode == "never" else ("interrupted", "clean")
        (item,) = await proxy.log(expected)
    assert item["matched"] == "git push"
    assert body == written if mode == "never" else b"Done." in body


async def test_what_never_interrupts_is_counted_and_shown_with_its_last_place(
    workspace: Workspace, upstream: RawUpstream, dialect: Dialect
) -> None:
    workspace.rule("no-bad-word", BAD, interruptMode="never", repeatMode="always")
    for path in ("a.py", "b.py"):
        written = dialect.answer(tool("Write", {"file_path": path, "content": BAD}))
        upstream.script.append(response(b"".join(written), kind="text/event-stream"))
    async with running_proxy(workspace, upstream.url) as proxy:
        for count in range(2):
            await go(proxy.url, dialect, **{dialect.history: [{"role": "user", "content": f"hi {count}"}]})
        await proxy.log(*[("reminded", "pending")] * 2)
    arguments = ["log", "--totals", "--json", "--state", str(workspace.state)]
    shown = await asyncio.to_thread(CliRunner().invoke, main, arguments)
    rule = json.loads(shown.stdout)["rules"]["no-bad-word"]
    assert (rule["count"], rule["last_source"], rule["last_paths"]) == (2, "tool", ["b.py"])
    assert rule["last_time"]


async def test_a_record_names_upstream_s_id_of_every_attempt_and_the_client_s(
    workspace: Workspace, upstream: RawUpstream, dialect: Dialect
) -> None:
    workspace.rule("no-bad-word", BAD, scope="text")
    for number, said in enumerate((f"{BAD} here", "Done.")):
        data = b"".join(dialect.events(said))
        headers = ("x-request-id", f"up-{number}")
        upstream.script.append(response(data, headers, kind="text/event-stream"))
    async with running_proxy(workspace, upstream.url) as proxy:
        answer = await ask(proxy.url, "POST", dialect.path, *dialect.headers, body=dialect.body())
        (item,) = await proxy.log(("interrupted", "clean"))
    assert item["upstream_requests"] == ["up-0", "up-1"]
    assert item["attempt"] == 1
    assert [item["request"]] == answer.all("x-ttsr-request-id")


RUN_BY_CLIENTS: dict[str, dict[str, Any]] = {
    "a function": {"type": "function_call", "name": "write", "arguments": f'{{"x": "{BAD}"}}'},
    "a tool that takes text": {"type": "custom_tool_call", "name": "exec", "input": f"run {BAD}"},
    "a local shell": {"type": "local_shell_call", "action": {"type": "exec", "command": ["echo", BAD]}},
    "a shell": {"type": "shell_call", "action": {"commands": ["ls", f"echo {BAD}"]}},
    "a patch": {
        "type": "apply_patch_call",
        "operation": {"type": "update_file", "path": "a.py", "diff": f"@@\n+{BAD}\n"},
    },
    "a computer": {"type": "computer_call", "action": {"type": "type", "text": BAD}},
    "a question for leave": {"type": "mcp_approval_request", "name": "m", "arguments": f'{{"x": "{BAD}"}}'},
}
RUN_BY_THE_API: dict[str, dict[str, Any]] = {
    "a search": {"type": "web_search_call", "action": {"type": "search", "query": BAD}},
    "a call on its own": {"type": "mcp_call", "name": "m", "arguments": f'{{"x": "{BAD}"}}'},
    "a type of tomorrow": {"type": "brand_new_call", "arguments": BAD},
}


def whole(*items: dict[str, Any]) -> bytes:
    output = [{"id": f"it_{at}", "call_id": f"call_{at}", "status": "completed", **item}
              for at, item in enumerate(items)]  # fmt: skip
    answer = {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": output}
    return json.dumps({**answer, "usage": {"input_tokens": 1, "output_tokens": 1}}).encode()


@pytest.mark.parametrize("item", RUN_BY_CLIENTS.values(), ids=RUN_BY_CLIENTS)
async def test_whatever_a_client_runs_is_read(
    workspace: Workspace, upstream: RawUpstream, item: dict[str, Any]
) -> None:
    workspace.rule("no-bad-word", BAD, scope="tool")
    upstream.script += [response(whole(item)), response(whole())]
    async with running_proxy(workspace, upstream.url) as proxy:
        assert await go(proxy.url, DIALECTS["responses"], stream=False) == whole()
        await proxy.log(("interrupted", "clean"))


@pytest.mark.parametrize("item", RUN_BY_THE_API.values(), ids=RUN_BY_THE_API)
async def test_what_the_api_has_run_itself_passes(
    workspace: Workspace, upstream: RawUpstream, item: dict[str, Any]
) -> None:
    workspace.rule("no-bad-word", BAD, scope="tool")
    upstream.script.append(response(whole(item)))
    async with running_proxy(workspace, upstream.url) as proxy:
        assert await go(proxy.url, DIALECTS["responses"], stream=False) == whole(item)
        assert await proxy.interrupts() == []


async def test_a_request_that_is_rewritten_keeps_every_number_as_it_was_written(
    workspace: Workspace, upstream: RawUpstream, dialect: Dialect
) -> None:
    workspace.rule("no-bad-word", BAD, scope="text")
    script(upstream, dialect, (f"{BAD} here",), ("Done.",))
    odd = b'"temperature": 0.10, "odd": [1e400, NaN, 1E-7, 123456789012345678901234567890]'
    body = dialect.body()[:-1] + b", " + odd + b"}"
    async with running_proxy(workspace, upstream.url) as proxy:
        await ask(proxy.url, "POST", dialect.path, *dialect.headers, body=body)
    first, again = upstream.received
    assert first.body == body
    assert b"system-interrupt" in again.body
    assert odd.replace(b" ", b"") in again.body
