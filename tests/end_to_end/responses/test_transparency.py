"""Without a match, and for what cannot be asked again, the proxy is not there."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest
from proxy_under_test import Workspace
from strict_anthropic import http_error, ping, raw, server_tool, stall, text, thinking, tool, turn
from strict_openai_responses import StrictResponsesUpstream, custom, reasoning, refusal, shell

from ttsr_proxy.protocols.openai_responses.writer import ResponsesWriter

BAD = "BADWORD"
BAD_WRITE = {"file_path": "a.py", "content": f"print('{BAD}')\n"}
HEADERS = {"authorization": "Bearer secret-key", "content-type": "application/json"}
BODY = (
    b'{"model" : "gpt-x", "stream":true, "unknown": [1.50, 1e3, "\\u00e9"],\n'
    b' "input":[{"content":"hi", "role":"user"}]}'
)
STEPS = (
    thinking("a thought"),
    reasoning("raw", raw=True),
    text("Some text with é, ✓ and 🎉."),
    ping(),
    raw(b": a comment\n\n"),
    raw(b"event: response.brand_new\ndata: {}\n\n"),
    refusal("No."),
    server_tool("web_search", {"query": "q"}, []),
    tool("Write", {"file_path": "a.py", "content": "x = 'é'\n"}),
    custom("apply_patch", "*** Begin Patch"),
    shell("ls"),
)


@pytest.fixture(autouse=True)
def rule(workspace: Workspace) -> None:
    workspace.rule("no-bad-word", BAD, scope=["text", "tool", "thinking"])


async def post(url: str, body: bytes, **headers: str) -> tuple[int, bytes]:
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=body, headers={**HEADERS, **headers}) as response,
    ):
        return response.status, await response.read()


@pytest.mark.parametrize(
    "path", ["/v1/responses", "/responses", "/openai/responses?api-version=1", "/openai/v1/responses"]
)
@pytest.mark.parametrize("eol", ["\n", "\r\n"], ids=["LF", "CRLF"])
async def test_a_stream_without_match_passes_byte_for_byte(
    upstream: StrictResponsesUpstream, start_proxy: Any, eol: str, path: str
) -> None:
    upstream.script(turn(*STEPS, eol=eol, extra={"new_field": {"a": None}}))
    proxy = await start_proxy()
    status, body = await post(proxy.url + path, BODY)
    assert status == 200
    assert body == bytes(upstream.calls[0].wrote)
    assert upstream.calls[0].raw == BODY


async def test_a_response_that_is_not_streamed_passes_byte_for_byte(
    upstream: StrictResponsesUpstream, start_proxy: Any
) -> None:
    upstream.script(turn(*STEPS))
    proxy = await start_proxy()
    body = BODY.replace(b'"stream":true', b'"stream":false')
    status, answer = await post(f"{proxy.url}/v1/responses", body)
    assert status == 200
    assert [item["type"] for item in json.loads(answer)["output"]][-1] == "shell_call"
    assert upstream.calls[0].raw == body


async def test_an_error_passes_as_it_came(upstream: StrictResponsesUpstream, start_proxy: Any) -> None:
    upstream.script(http_error(429, message="slow down"))
    proxy = await start_proxy()
    status, body = await post(f"{proxy.url}/v1/responses", BODY)
    assert status == 429
    assert json.loads(body)["error"]["message"] == "slow down"


async def test_a_websocket_is_refused_at_once(upstream: StrictResponsesUpstream, start_proxy: Any) -> None:
    proxy = await start_proxy()
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(f"{proxy.url}/v1/responses")
    assert refused.value.status == 426
    assert upstream.received == []


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"background": True}, "in the background"),
        ({"conversation": "conv_1"}, "kept by upstream"),
        ({"input": [{"role": "user", "content": "x"}, {"type": "compaction_trigger"}]}, "compaction"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_what_cannot_be_asked_again_is_watched_and_logged_with_the_reason(
    upstream: StrictResponsesUpstream, start_proxy: Any, fields: dict[str, Any], reason: str, stream: bool
) -> None:
    upstream.script(turn(text("Look: "), tool("Write", BAD_WRITE)))
    proxy = await start_proxy()
    body = {"model": "gpt-x", "input": "x", "stream": stream, **fields}
    status, answer = await post(f"{proxy.url}/v1/responses", json.dumps(body).encode())
    assert status == 200
    assert BAD in answer.decode().replace("\\", "") or stream
    assert len(upstream.calls) == 1
    items = await proxy.log(("observed", "undelivered"))
    assert reason in items[0]["detail"]


async def test_a_compact_request_passes_untouched(
    upstream: StrictResponsesUpstream, start_proxy: Any
) -> None:
    proxy = await start_proxy()
    status, _ = await post(f"{proxy.url}/v1/responses/compact", BODY)
    assert status == 404
    assert upstream.received[0].raw == BODY
    assert upstream.received[0].path == "/v1/responses/compact"


@pytest.mark.parametrize("client", ["codex", "sdk"])
async def test_a_silent_response_is_kept_alive_in_the_clients_way(
    upstream: StrictResponsesUpstream,
    start_proxy: Any,
    new_agent: Any,
    monkeypatch: pytest.MonkeyPatch,
    client: str,
) -> None:
    monkeypatch.setattr("ttsr_proxy.interception.exchange.KEEPALIVE_SECONDS", 0.05)
    gate, reached, kept_alive = asyncio.Event(), asyncio.Event(), asyncio.Event()
    keepalive = ResponsesWriter.keepalive

    def noticed(*arguments: Any) -> bytes:
        kept_alive.set()
        return keepalive(*arguments)

    monkeypatch.setattr(ResponsesWriter, "keepalive", noticed)
    upstream.script(turn(text(f"Shown, {BAD}")), turn(text("Rest."), before=stall(gate, reached)))
    headers = {"originator": "codex_cli_rs"} if client == "codex" else {}
    agent = await new_agent(await start_proxy(), headers=headers)
    agent.add_user({"text": "go"})
    asking = asyncio.create_task(agent.ask())
    await reached.wait()
    await kept_alive.wait()
    gate.set()
    answer = await asking
    assert answer.complete
    assert [part.strip() for part in answer.texts] == ["Shown,", "Rest."]
    kinds = [event["type"] for event in answer.events]
    assert (kinds.count("response.in_progress") > 1) is (client == "codex")
    assert (b": keep-alive" in answer.raw) is (client == "sdk")
