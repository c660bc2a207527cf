"""Without a match the proxy is not there: bytes, statuses, headers, disconnects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from coding_agent import Agent, Answer, StreamReader
from proxy_under_test import Workspace
from scripted_judge import KEY, scripted_judge
from strict_anthropic import (
    StrictUpstream,
    drop,
    http_error,
    ping,
    raw,
    redacted,
    server_tool,
    stall,
    stream_error,
    text,
    thinking,
    tool,
    turn,
)

BAD = "BADWORD"
HEADERS = {"anthropic-version": "2023-06-01", "x-api-key": "k", "content-type": "application/json"}
BODY = (
    b'{"model" : "claude-opus-5-5", "max_tokens": 100,"stream":true, "unknown": [1.50, 1e3, "\\u00e9"],\n'
    b' "messages":[{"content":"hi", "role":"user"}]}'
)
STEPS = (
    thinking("a thought"),
    text("Some text with é, ✓ and 🎉."),
    ping(),
    raw(b": a comment\n\n"),
    raw(b"event: brand_new\ndata: {}\n\n"),
    redacted(),
    server_tool("web_search", {"query": "q"}, []),
    tool("Write", {"file_path": "a.py", "content": "x = 'é'\n"}),
)
LIMITS = {"anthropic-ratelimit-requests-remaining": "7", "x-brand-new": "1"}


@pytest.fixture(
    params=[
        "no rules",
        "a rule that does not match",
        "a rule that is only observed",
        "a judged rule that is broken",
    ]
)
async def rules(
    request: pytest.FixtureRequest, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[None]:
    if request.param == "a judged rule that is broken":
        monkeypatch.setenv("JUDGE_KEY", KEY)
        workspace.judged("judged", scope=["text", "tool", "thinking"])
        async with scripted_judge() as judge:
            judge.broken = {"": 1.0}
            workspace.judge = judge.settings()
            yield
        return
    if request.param == "a rule that is only observed":
        workspace.rule("observed", r"[\s\S]", scope=["text", "tool", "thinking"], observe=True)
    elif request.param != "no rules":
        workspace.rule("no-bad-word", BAD, scope=["text", "tool", "thinking"])
    yield


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize("eol", ["\n", "\r\n"], ids=["LF", "CRLF"])
async def test_a_stream_without_match_passes_byte_for_byte(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, eol: str
) -> None:
    upstream.script(turn(*STEPS, eol=eol, extra={"new_field": {"a": None}}, headers=LIMITS))
    proxy = await start_proxy()
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{proxy.url}/v1/messages?beta=true",
            data=BODY,
            headers={
                **HEADERS,
                "anthropic-beta": "one,two",
                "x-custom": "kept",
                "accept-encoding": "gzip, br",
            },
        ) as response,
    ):
        body = await response.read()
    call = upstream.calls[0]
    assert body == bytes(call.wrote)
    assert response.status == 200
    for name, value in LIMITS.items():
        assert response.headers[name] == value
    assert response.headers["request-id"] == call.request_id
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert call.raw == BODY
    assert call.query == "beta=true"
    assert call.headers["anthropic-beta"] == "one,two"
    assert call.headers["x-custom"] == "kept"
    assert call.headers["x-api-key"] == "k"
    # what is inspected must be readable; the rest is none of the proxy's business
    inspected = any(workspace.rules.iterdir())
    assert call.headers["accept-encoding"] == ("identity" if inspected else "gzip, br")


@pytest.mark.usefixtures("rules")
async def test_a_whole_message_without_match_passes_byte_for_byte(
    upstream: StrictUpstream, start_proxy: Any
) -> None:
    upstream.script(turn(text("Some text."), headers=LIMITS))
    proxy = await start_proxy()
    body = BODY.replace(b'"stream":true', b'"stream":false')
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{proxy.url}/v1/messages", data=body, headers=HEADERS) as response,
    ):
        document = json.loads(await response.read())
    assert document["content"] == [{"type": "text", "text": "Some text."}]
    assert response.headers["x-brand-new"] == "1"
    assert upstream.calls[0].raw == body


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize("status", [400, 401, 403, 413, 429, 500, 529])
@pytest.mark.parametrize("stream", [True, False])
async def test_an_error_status_passes_as_it_came(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any, status: int, stream: bool
) -> None:
    upstream.script(http_error(status, message="as it is", headers={"retry-after": "7", **LIMITS}))
    agent: Agent = await new_agent(await start_proxy(), stream=stream)
    answer = await agent.say("go")
    assert answer.status == status
    assert answer.headers["retry-after"] == "7"
    assert answer.headers["anthropic-ratelimit-requests-remaining"] == "7"
    assert answer.error is not None
    assert answer.error["message"] == "as it is"
    assert len(upstream.calls) == 1, "the client decides about a retry"


@pytest.mark.usefixtures("rules")
async def test_an_error_in_the_stream_passes_as_it_came(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text("Some words "), text("more", stream_error("overloaded_error", "later"))))
    agent: Agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert answer.error == {"type": "overloaded_error", "message": "later"}
    assert answer.raw == bytes(upstream.calls[0].wrote)


@pytest.mark.usefixtures("rules")
async def test_a_dropped_stream_is_dropped(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text("Some words ", drop())))
    agent: Agent = await new_agent(await start_proxy())
    with pytest.raises(aiohttp.ClientError):
        await agent.say("go")
    assert len(upstream.calls) == 1


@pytest.mark.parametrize("stream", [True, False])
async def test_an_upstream_that_cannot_be_reached_is_a_502(
    start_proxy: Any, new_agent: Any, unused_tcp_port: int, stream: bool
) -> None:
    proxy = await start_proxy(f"http://127.0.0.1:{unused_tcp_port}")
    agent: Agent = await new_agent(proxy, stream=stream)
    answer = await agent.say("go")
    assert answer.status == 502
    assert answer.error is not None
    assert answer.error["message"]


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize(
    ("method", "path", "data"),
    [
        ("GET", "/v1/models", None),
        ("HEAD", "/", None),
        ("GET", "/v1/files/x?y=%2F1", None),
        ("POST", "/v1/messages/batches", b'{"requests": [ ]}'),
        ("DELETE", "/some/unknown%20path", None),
        ("OPTIONS", "/v1/messages", None),
    ],
)
async def test_what_is_not_inspected_passes_untouched(
    upstream: StrictUpstream, start_proxy: Any, method: str, path: str, data: bytes | None
) -> None:
    proxy = await start_proxy()
    async with aiohttp.ClientSession() as session:
        async with session.request(method, upstream.url + path, data=data, headers=HEADERS) as direct:
            expected = (direct.status, await direct.read())
        async with session.request(method, proxy.url + path, data=data, headers=HEADERS) as response:
            got = (response.status, await response.read())
    one, two = upstream.received
    assert (got[0], len(got[1])) == (expected[0], len(expected[1]))
    assert response.content_type == direct.content_type
    assert response.headers["request-id"] == two.request_id
    assert (one.method, one.path, one.query, one.raw) == (two.method, two.path, two.query, two.raw)


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_before_the_first_token_ends_the_upstream_call(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any, stream: bool
) -> None:
    waiting = stall()
    upstream.script(turn(text("never"), before=waiting) if stream else turn(waiting, text("never")))
    agent: Agent = await new_agent(await start_proxy(), stream=stream)
    agent.add_user({"type": "text", "text": "go"})
    asking = asyncio.create_task(agent.ask())
    await asyncio.wait_for(waiting.reached.wait(), 5)
    asking.cancel()
    await asyncio.wait_for(upstream.calls[0].aborted.wait(), 5)
    assert len(upstream.calls) == 1


@pytest.mark.usefixtures("rules")
async def test_a_client_that_leaves_mid_stream_ends_the_upstream_call(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    waiting = stall()
    upstream.script(turn(text("some words ", waiting)))
    agent: Agent = await new_agent(await start_proxy())
    agent.add_user({"type": "text", "text": "go"})
    async with agent.request() as response:
        await asyncio.wait_for(waiting.reached.wait(), 5)
        response.close()
    await asyncio.wait_for(upstream.calls[0].aborted.wait(), 5)


async def test_a_client_that_leaves_during_a_retry_ends_the_retry(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    workspace.rule("no-bad-word", BAD, scope="text")
    waiting = stall()
    upstream.script(turn(text(f"{BAD} here")), turn(text("never"), before=waiting))
    agent: Agent = await new_agent(await start_proxy())
    agent.add_user({"type": "text", "text": "go"})
    asking = asyncio.create_task(agent.ask())
    await asyncio.wait_for(waiting.reached.wait(), 5)
    asking.cancel()
    await asyncio.wait_for(upstream.calls[1].aborted.wait(), 5)
    assert len(upstream.calls) == 2


async def test_an_interrupt_ends_the_upstream_call_at_once(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    workspace.rule("no-bad-word", BAD, scope="text")
    upstream.script(turn(text(f"{BAD} here", stall())), turn(text("Clean.")))
    agent: Agent = await new_agent(await start_proxy())
    answer = await asyncio.wait_for(agent.say("go"), 10)
    assert answer.texts == ["Clean."]
    await asyncio.wait_for(upstream.calls[0].aborted.wait(), 5)


@pytest.mark.usefixtures("rules")
async def test_a_slow_reader_does_not_fill_memory(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    piece = "x" * 65536
    total = 64 * 2**20
    upstream.script(turn(text(*[piece] * (total // len(piece))), chunk=len(piece)))
    upstream.otherwise(lambda body: turn(text("quick")))
    proxy = await start_proxy()
    slow: Agent = await new_agent(proxy)
    slow.add_user({"type": "text", "text": "go"})
    quick: Agent = await new_agent(proxy)
    async with slow.request() as response:
        await response.content.readany()
        call = upstream.calls[0]
        # the others are served meanwhile; when upstream writes no more, it is the reader that holds it up
        before = -1
        while len(call.wrote) != before:
            before = len(call.wrote)
            for _ in range(10):
                quick.messages.clear()
                assert (await quick.say("hi")).text == "quick"
        assert len(call.wrote) < total // 2
        response.close()
    await asyncio.wait_for(call.aborted.wait(), 5)


async def test_a_clean_stream_is_not_delayed_by_rules(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    """What cannot become a match arrives while upstream is still silent."""
    workspace.rule("no-bad-word", BAD, scope=["text", "tool", "thinking"])
    waiting = stall()
    upstream.script(turn(text("Nothing wrong so far. ", waiting, "The end.")))
    agent: Agent = await new_agent(await start_proxy())
    agent.add_user({"type": "text", "text": "go"})
    answer = Answer(200, {}, b"")
    reader = StreamReader(answer)
    async with agent.request() as response:
        while answer.text != "Nothing wrong so far. ":
            reader.feed(await asyncio.wait_for(response.content.readany(), 5))
        waiting.until.set()
        reader.feed(await response.read())
    assert answer.raw == bytes(upstream.calls[0].wrote)
