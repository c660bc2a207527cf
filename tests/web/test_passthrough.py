"""What reaches upstream and what comes back, to the byte."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from proxy_under_test import Workspace, running_proxy
from raw_http import RawRequest, RawUpstream, ask, response, send
from raw_http.messages import BODY, HEADERS, events

TARGETS = [
    "/v1/files/a%2Fb%20c?x=%2F1&y=+&z=%C3%A9",
    "/v1/files/a%2fb/../c;d=1",
    "//v1//models?a=1&a=2&b",
    "/v1/x?url=http://example.com/?q=%25",
    "/v1/%7Euser/~user/*:@!$&'()+,=",
]


@pytest.mark.parametrize("target", TARGETS)
async def test_path_and_query_reach_upstream_byte_for_byte(
    upstream: RawUpstream, start_proxy: Any, target: str
) -> None:
    proxy = await start_proxy()
    await ask(proxy.url, "GET", target)
    assert upstream.received[0].target == target


async def test_path_and_query_of_an_inspected_request_reach_upstream_byte_for_byte(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any
) -> None:
    workspace.rule("no-bad-word", "BADWORD")
    proxy = await start_proxy()
    for target in ("/v1/messages?beta=true&x=%2F+%c3", "/a%2Fb/v1/messages"):
        await ask(proxy.url, "POST", target, *HEADERS, body=BODY)
        assert upstream.received[-1].target == target
        assert upstream.received[-1].all("accept-encoding") == ["identity"]


async def test_a_project_s_prefix_is_taken_off_the_path(upstream: RawUpstream, start_proxy: Any) -> None:
    proxy = await start_proxy()
    await ask(proxy.url, "GET", "/p/default/v1/models?x=%2F")
    assert upstream.received[0].target == "/v1/models?x=%2F"
    unknown = await ask(proxy.url, "GET", "/p/nobody/v1/models")
    assert unknown.status == 404
    assert "no project 'nobody'" in json.loads(unknown.body)["error"]["message"]
    assert len(upstream.received) == 1


@pytest.mark.parametrize("rules", [False, True])
async def test_request_headers_keep_their_order_case_and_repetitions(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any, rules: bool
) -> None:
    if rules:
        workspace.rule("no-bad-word", "BADWORD")
    proxy = await start_proxy()
    sent = [("X-Api-Key", "k"), ("x-TWICE", "1"), ("User-Agent", "me/1.0"), ("x-TWICE", "2"), ("X-Utf", "Ã©")]
    hop = [("Te", "trailers"), ("X-Hop", "1"), ("Connection", "X-Hop"), ("x-ttsr-session", "s")]
    await ask(proxy.url, "POST", "/v1/messages", *sent, *hop, ("Anthropic-Version", "v"), body=BODY)
    got = upstream.received[0].headers
    assert [pair for pair in got if pair in sent] == sent
    assert ("Anthropic-Version", "v") in got
    names = {name.lower() for name, _ in got}
    assert not names & {"te", "x-hop", "x-ttsr-session", "connection"}
    assert upstream.received[0].all("host") == [upstream.url.removeprefix("http://")]
    assert len(upstream.received[0].all("content-length")) == 1


async def test_a_repetition_in_another_case_is_not_lost(upstream: RawUpstream, start_proxy: Any) -> None:
    proxy = await start_proxy()
    await ask(proxy.url, "GET", "/v1/models", ("anthropic-beta", "one"), ("Anthropic-Beta", "two"))
    assert upstream.received[0].all("anthropic-beta") == ["one", "two"]


async def test_nothing_but_the_mark_of_the_proxy_is_added_to_a_request_that_is_not_inspected(
    upstream: RawUpstream, start_proxy: Any
) -> None:
    proxy = await start_proxy()
    await ask(proxy.url, "GET", "/v1/models", ("X-Api-Key", "k"))
    assert {name.lower() for name, _ in upstream.received[0].headers} == {"host", "x-api-key", "x-ttsr-via"}


@pytest.mark.parametrize("rules", [False, True])
async def test_answer_headers_keep_their_order_case_and_repetitions(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any, rules: bool
) -> None:
    if rules:
        workspace.rule("no-bad-word", "BADWORD")
    proxy = await start_proxy()
    given = [
        ("Set-Cookie", "a=1"),
        ("X-New", "1"),
        ("Set-Cookie", "b=2"),
        ("Date", "then"),
        ("Server", "s/1"),
    ]
    upstream.script.append(
        response(b"".join(events("fine")), *given, ("Keep-Alive", "1"), kind="text/event-stream")
    )
    answer = await ask(proxy.url, "POST", "/v1/messages", *HEADERS, body=BODY)
    assert [pair for pair in answer.headers if pair in given] == given
    assert answer.all("keep-alive") == []
    assert answer.body == b"".join(events("fine"))


@pytest.mark.parametrize("rules", [False, True])
async def test_a_chunked_request_body_arrives_whole(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any, rules: bool
) -> None:
    if rules:
        workspace.rule("no-bad-word", "BADWORD")
    proxy = await start_proxy()
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (BODY[:5], BODY[5:])) + b"0\r\n\r\n"
    for target in ("/v1/messages", "/v1/files"):
        await ask(proxy.url, "POST", target, *HEADERS, ("Transfer-Encoding", "chunked"), body=chunks)
        assert upstream.received[-1].body == BODY


@pytest.mark.parametrize("rules", [False, True])
@pytest.mark.parametrize("target", ["/v1/messages", "/v1/files"])
async def test_a_client_that_waits_for_100_continue_gets_it_from_the_proxy_and_its_answer_from_any_upstream(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any, rules: bool, target: str
) -> None:
    if rules:
        workspace.rule("no-bad-word", "BADWORD")
    proxy = await start_proxy()
    fields = [
        f"POST {target} HTTP/1.1",
        "Host: x",
        "Connection: close",
        "Expect: 100-continue",
        f"Content-Length: {len(BODY)}",
    ]
    head = "\r\n".join([*fields, "", ""]).encode()
    async with asyncio.timeout(10), send(proxy.url, head) as (reader, writer):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        writer.write(BODY)
        assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
    assert upstream.received[0].body == BODY
    assert upstream.received[0].all("expect") == []


async def test_an_upload_is_passed_on_while_it_arrives(workspace: Workspace) -> None:
    half = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"Content-Length: 10\r\n" in head
        await reader.readexactly(5)
        half.set()
        writer.write(response(await reader.readexactly(5)))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        head = b"POST /v1/files HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nConnection: close\r\n\r\n"
        async with (
            running_proxy(workspace, f"http://127.0.0.1:{port}") as proxy,
            send(proxy.url, head + b"12345") as (reader, writer),
        ):
            await asyncio.wait_for(half.wait(), 5)
            writer.write(b"67890")
            assert (await reader.read()).endswith(b"67890")


async def test_a_request_of_fifty_megabytes_arrives_whole(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any
) -> None:
    workspace.rule("no-bad-word", "BADWORD")
    proxy = await start_proxy()
    document = {**json.loads(BODY), "padding": "x" * (50 << 20)}
    body = json.dumps(document).encode()
    answer = await ask(proxy.url, "POST", "/v1/messages", *HEADERS, body=body)
    assert answer.status == 200
    assert upstream.received[0].body == body


@pytest.mark.parametrize("rules", [False, True])
@pytest.mark.parametrize("status", [401, 429, 500, 529])
async def test_an_error_reaches_the_client_with_its_headers(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any, rules: bool, status: int
) -> None:
    if rules:
        workspace.rule("no-bad-word", "BADWORD")
    proxy = await start_proxy()
    headers = (
        ("Retry-After", "7"),
        ("anthropic-ratelimit-tokens-reset", "2026-01-01T00:00:00Z"),
        ("x-should-retry", "true"),
        ("request-id", "req_1"),
    )
    upstream.script.append(response(b"<html>not even JSON</html>", *headers, status=status, kind="text/html"))
    answer = await ask(proxy.url, "POST", "/v1/messages", *HEADERS, body=BODY)
    assert answer.status == status
    assert answer.body == b"<html>not even JSON</html>"
    assert set(headers) <= set(answer.headers)
    assert answer.all("content-type") == ["text/html"]


@pytest.mark.parametrize("rules", [False, True])
async def test_a_redirect_is_the_client_s_business(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any, rules: bool
) -> None:
    if rules:
        workspace.rule("no-bad-word", "BADWORD")
    proxy = await start_proxy()
    upstream.script.append(response(b"", ("Location", "http://127.0.0.1:1/elsewhere"), status=307))
    answer = await ask(proxy.url, "POST", "/v1/messages", *HEADERS, body=BODY)
    assert (answer.status, answer.all("location")) == (307, ["http://127.0.0.1:1/elsewhere"])
    assert len(upstream.received) == 1


@pytest.mark.parametrize("rules", [False, True])
async def test_an_upstream_that_hangs_up_without_an_answer_is_a_502(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any, rules: bool
) -> None:
    if rules:
        workspace.rule("no-bad-word", "BADWORD")
    proxy = await start_proxy()
    upstream.script.append(b"")
    answer = await ask(proxy.url, "POST", "/v1/messages", *HEADERS, body=BODY)
    assert answer.status == 502
    assert json.loads(answer.body)["error"]["message"]
    assert len(upstream.received) == 1, "the client decides about a retry"


async def test_an_early_answer_to_an_upload_is_passed_on(upstream: RawUpstream, start_proxy: Any) -> None:
    """Upstream refuses before it has read the body; the client learns why."""
    proxy = await start_proxy()

    async def refuse(request: RawRequest, writer: Any) -> None:
        writer.write(response(b"too large", status=413, kind="text/plain"))

    upstream.script.append(refuse)
    answer = await ask(proxy.url, "POST", "/v1/files", body=b"x" * 100_000)
    assert (answer.status, answer.body) == (413, b"too large")
