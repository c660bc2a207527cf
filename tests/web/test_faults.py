"""When the proxy itself fails, the agent's traffic goes on."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from proxy_under_test import Workspace
from raw_http import RawUpstream, ask, response, send
from raw_http.messages import BODY, HEADERS, events

from ttsr_proxy.interception.exchange import Exchange
from ttsr_proxy.protocols.anthropic import ANTHROPIC

BAD = "BADWORD"
VIOLATION = b"".join(events("Some ", BAD, " here"))
CLEAN = b"".join(events("All clean."))


def explode(*args: object, **kwargs: object) -> Any:
    raise RuntimeError("secret words of the user")


@pytest.fixture(autouse=True)
def rule(workspace: Workspace) -> None:
    workspace.rule("no-bad-word", BAD, scope="text")


@pytest.mark.parametrize("stage", ["read_request", "__init__", "start", "data"])
async def test_a_fault_before_anything_was_sent_lets_the_request_pass_uninspected(
    upstream: RawUpstream,
    start_proxy: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    stage: str,
) -> None:
    proxy = await start_proxy()
    monkeypatch.setattr(type(ANTHROPIC) if stage == "read_request" else Exchange, stage, explode)
    for _ in range(2):
        upstream.script.append(response(VIOLATION, kind="text/event-stream"))
    answer = await ask(proxy.url, "POST", "/v1/messages", *HEADERS, body=BODY)
    assert (answer.status, answer.body) == (200, VIOLATION)
    assert upstream.received[-1].body == BODY
    told = capsys.readouterr().out
    assert "matching_failed" in told
    assert "RuntimeError" in told
    assert "secret words" not in told


async def test_a_request_nested_almost_too_deep_to_parse_passes_as_it_came(
    upstream: RawUpstream, start_proxy: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    proxy = await start_proxy()
    for depth in range(900, 1000, 5):
        nested = b'{"type":"x","v":%b}' % (b"[" * depth + b"]" * depth)
        body = b'{"stream":true,"messages":[{"role":"user","content":[%b]}]}' % nested
        upstream.script.append(response(CLEAN, kind="text/event-stream"))
        answer = await ask(proxy.url, "POST", "/v1/messages", *HEADERS, body=body)
        assert (answer.status, answer.body) == (200, CLEAN)
        assert upstream.received[-1].body == body
    assert "matching_failed" not in capsys.readouterr().out


async def test_a_fault_while_tokens_are_counted_lets_the_request_pass_as_it_came(
    upstream: RawUpstream,
    start_proxy: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    proxy = await start_proxy()
    monkeypatch.setattr("ttsr_proxy.web.proxy.restore", explode)
    upstream.script.append(response(b'{"input_tokens": 7}'))
    answer = await ask(proxy.url, "POST", "/v1/messages/count_tokens", *HEADERS, body=BODY)
    assert (answer.status, answer.body) == (200, b'{"input_tokens": 7}')
    assert upstream.received[-1].body == BODY
    told = capsys.readouterr().out
    assert "matching_failed" in told
    assert "secret words" not in told


async def test_a_fault_in_the_middle_breaks_the_connection_instead_of_ending_it_well(
    upstream: RawUpstream, start_proxy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = await start_proxy()
    monkeypatch.setattr(Exchange, "attempt_ended", explode)
    monkeypatch.setattr("ttsr_proxy.interception.exchange.Exchange.attempt_lost", explode)
    cut = b"".join(events("Fine so far. ", "And on. ")[:-3])
    upstream.script.append(response(cut, kind="text/event-stream"))
    lines = [b"POST /v1/messages HTTP/1.1", b"Host: x", b"Content-Length: %d" % len(BODY), b"x-api-key: k"]
    async with send(proxy.url, b"\r\n".join([*lines, b"", BODY])) as (reader, _):
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"200" in head
        rest = b""
        try:
            while piece := await reader.read(65536):
                rest += piece
        except ConnectionError:
            pass
    assert b"Fine so far." in rest
    assert not rest.endswith(b"0\r\n\r\n")


def make_directory(workspace: Workspace) -> None:
    os.mkdir(workspace.state)


def write_garbage(workspace: Workspace) -> None:
    workspace.state.write_bytes(b"this is no database" * 100)


@pytest.mark.parametrize("spoil", [make_directory, write_garbage])
async def test_a_store_that_cannot_be_used_never_stops_traffic_and_readiness_tells(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any, spoil: Any
) -> None:
    spoil(workspace)
    proxy = await start_proxy()
    upstream.script.extend(response(data, kind="text/event-stream") for data in (VIOLATION, CLEAN))
    answer = await ask(proxy.url, "POST", "/v1/messages", *HEADERS, body=BODY)
    assert answer.status == 200
    assert BAD.encode() not in answer.body, "rules hold without a store"
    ready = await ask(proxy.url, "GET", "/readyz")
    assert (ready.status, json.loads(ready.body)["status"]) == (503, "degraded")
    assert (await ask(proxy.url, "GET", "/healthz")).status == 200


async def test_a_store_that_is_lost_while_running_is_made_again(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any
) -> None:
    proxy = await start_proxy()

    async def violate() -> None:
        upstream.script.extend(response(data, kind="text/event-stream") for data in (VIOLATION, CLEAN))
        answer = await ask(proxy.url, "POST", "/v1/messages", *HEADERS, body=BODY)
        assert answer.status == 200
        assert BAD.encode() not in answer.body

    await violate()
    workspace.forget_state()
    for _ in range(3):
        await violate()


async def test_what_was_inspected_and_what_was_not_is_counted(
    upstream: RawUpstream, start_proxy: Any
) -> None:
    proxy = await start_proxy()
    for method, path, body in (
        ("HEAD", "/", None),
        ("GET", "/v1/models", None),
        ("POST", "/v1/messages", b"no json"),
        ("POST", "/v1/messages/count_tokens", BODY),
        ("POST", "/v1/messages", BODY),
    ):
        await ask(proxy.url, method, path, *HEADERS, body=body)
    assert len(upstream.received) == 5
    ready = await ask(proxy.url, "GET", "/readyz")
    assert json.loads(ready.body) == {
        "status": "ready",
        "inspected": 1,
        "not_inspected": {
            "other endpoint": 2, "the request body cannot be read": 1, "token counting": 1
        },
    }  # fmt: skip
