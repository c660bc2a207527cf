"""An upstream that misbehaves reaches the client as it came, or as a legal answer behind an interrupt."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from proxy_under_test import Proxy, Workspace
from raw_http import RawRequest, RawUpstream, ask, response, send
from raw_http.dialects import DIALECTS, Dialect

BAD = "BADWORD"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

Play = Callable[[RawRequest, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(autouse=True)
def rule(workspace: Workspace) -> None:
    workspace.rule("no-bad-word", BAD, scope="text")


@pytest.fixture(params=DIALECTS.values(), ids=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    found: Dialect = request.param
    return found


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def streamed(*pieces: bytes) -> Play:
    """A chunked answer that ends as it should, one chunk each."""

    async def play(request: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED)
        for piece in pieces:
            writer.write(chunk(piece))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    return play


def torn(*pieces: bytes) -> Play:
    """A chunked answer whose connection is reset behind the pieces."""

    async def play(request: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED + b"".join(chunk(piece) for piece in pieces if piece))
        await writer.drain()
        writer.transport.close()

    return play


async def post(proxy: Proxy, dialect: Dialect, **more: Any) -> tuple[bytes, bool]:
    """The body that arrives, and whether it ended as a body should."""
    body = dialect.body(**more)
    headers = [*dialect.headers, ("Host", "x"), ("Content-Length", str(len(body))), ("Connection", "close")]
    lines = [f"POST {dialect.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), "", ""]
    async with asyncio.timeout(30), send(proxy.url, "\r\n".join(lines).encode() + body) as (reader, _):
        head = await reader.readuntil(b"\r\n\r\n")
        data = b""
        if b"chunked" not in head.lower():
            return await reader.read(), True
        try:
            while size := int(await reader.readline() or b"x", 16):
                data += await reader.readexactly(size)
                await reader.readexactly(2)
        except asyncio.IncompleteReadError as cut:
            return data + cut.partial, False
        except (ValueError, ConnectionError):
            return data, False
        return data, True


async def test_a_connection_lost_at_any_event_is_lost_for_the_client_too(
    upstream: RawUpstream, start_proxy: Any, dialect: Dialect
) -> None:
    proxy = await start_proxy()
    events = dialect.events("Fine. ", "Go on. ", "Done.")
    for count in range(1, len(events)):
        upstream.script.append(torn(*events[:count]))
        data, whole = await post(proxy, dialect)
        assert data == b"".join(events[:count])
        # A server of Chat Completions that closes behind the reason to stop has said everything.
        assert whole == (b'"finish_reason": "stop"' in data), count
    assert await proxy.interrupts() == []


async def test_half_an_event_reaches_the_client_as_half_an_event(
    upstream: RawUpstream, start_proxy: Any, dialect: Dialect
) -> None:
    proxy = await start_proxy()
    data = b"".join(dialect.events("Fine. ", "Done."))
    for at in range(20, len(data), len(data) // 12):
        upstream.script.append(torn(data[:at]))
        got, whole = await post(proxy, dialect)
        assert (got, whole) == (data[:at], False)


async def test_an_error_at_any_place_passes_as_it_came(
    upstream: RawUpstream, start_proxy: Any, dialect: Dialect
) -> None:
    proxy = await start_proxy()
    events = dialect.events("Fine. ", "Done.")
    for at in range(1, len(events) - 1):
        pieces = [*events[:at], dialect.error]
        upstream.script.append(streamed(*pieces))
        got, _ = await post(proxy, dialect)
        assert got == b"".join(pieces), at


async def test_a_retry_that_fails_at_any_place_never_shows_what_was_withheld(
    upstream: RawUpstream, start_proxy: Any, dialect: Dialect
) -> None:
    proxy = await start_proxy()
    violation = b"".join(dialect.events("Shown first. ", f"{BAD} here"))
    again = dialect.events("Better. ", "Done.")
    endings: list[Callable[..., Play]] = [torn, lambda *pieces: streamed(*pieces, dialect.error)]
    for at, ending in itertools.product(range(0, len(again) - 1), endings):
        upstream.script.clear()
        upstream.script.append(response(violation, kind="text/event-stream"))
        upstream.script.append(ending(*again[:at]))
        upstream.script.extend(response(b"{}", status=401) for _ in range(6))
        got, whole = await post(proxy, dialect)
        assert BAD.encode() not in got
        assert whole
        assert dialect.terminal in got or b"error" in got, (at, got[-300:])
    upstream.script.clear()
    outcomes = {item["outcome"] for item in await proxy.interrupts()}
    assert outcomes <= {"failed", "clean", "pending"}


async def test_one_byte_at_a_time_changes_nothing(
    upstream: RawUpstream, start_proxy: Any, dialect: Dialect
) -> None:
    proxy = await start_proxy()
    fine = b"".join(dialect.events("Fine. ", "Done."))
    bad = b"".join(dialect.events("Some ", BAD))
    singles = [[data[at : at + 1] for at in range(len(data))] for data in (fine, bad, fine)]
    upstream.script.extend(streamed(*pieces) for pieces in singles)
    assert await post(proxy, dialect) == (fine, True)
    got, whole = await post(proxy, dialect)
    assert whole
    assert BAD.encode() not in got
    assert b"Done." in got
    await proxy.log(("interrupted", "clean"))


@pytest.mark.parametrize("kind", ["text/plain", "text/html; charset=utf-8", "application/x-ndjson", ""])
async def test_an_answer_of_another_type_passes_uninspected_and_the_log_says_so(
    upstream: RawUpstream, start_proxy: Any, capsys: pytest.CaptureFixture[str], dialect: Dialect, kind: str
) -> None:
    proxy = await start_proxy()
    data = b"".join(dialect.events(f"{BAD} here"))
    upstream.script.append(response(data, kind=kind))
    assert await post(proxy, dialect) == (data, True)
    assert "not_inspected" in capsys.readouterr().out


async def test_json_that_is_called_a_stream_passes_as_it_came(
    upstream: RawUpstream, start_proxy: Any, dialect: Dialect
) -> None:
    proxy = await start_proxy()
    data = json.dumps({"error": {"message": "no stream today"}}).encode()
    upstream.script.append(response(data, kind="text/event-stream"))
    assert (await post(proxy, dialect))[0] == data
    assert await proxy.interrupts() == []


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b'{"a":1}', b"\xff\xfe", b"<html>"])
async def test_json_that_is_none_passes_as_it_came_and_the_log_says_so(
    upstream: RawUpstream,
    start_proxy: Any,
    capsys: pytest.CaptureFixture[str],
    dialect: Dialect,
    data: bytes,
) -> None:
    proxy = await start_proxy()
    upstream.script.append(response(data))
    assert await post(proxy, dialect, stream=False) == (data, True)
    assert "not_inspected" in capsys.readouterr().out
    assert await proxy.interrupts() == []


async def test_an_answer_shorter_than_its_length_is_not_made_whole(
    upstream: RawUpstream, start_proxy: Any, dialect: Dialect
) -> None:
    proxy = await start_proxy()
    data = b"".join(dialect.events("Fine. "))

    async def play(request: RawRequest, writer: asyncio.StreamWriter) -> None:
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(data) + 9}\r\n\r\n"
        )
        writer.write(head.encode() + data[:-30])

    upstream.script.append(play)
    assert await post(proxy, dialect) == (data[:-30], False)


async def test_bytes_behind_the_length_are_no_part_of_the_answer(
    upstream: RawUpstream, start_proxy: Any, dialect: Dialect
) -> None:
    proxy = await start_proxy()
    data = b"".join(dialect.events("Fine. "))
    upstream.script.append(response(data, kind="text/event-stream") + b"HTTP/1.1 200 OK\r\n\r\nmore")
    upstream.script.append(response(data, kind="text/event-stream"))
    assert await post(proxy, dialect) == (data, True)
    assert await post(proxy, dialect) == (data, True)


async def test_an_event_of_fifty_megabytes_passes_and_what_follows_is_inspected(
    upstream: RawUpstream, start_proxy: Any, dialect: Dialect
) -> None:
    proxy = await start_proxy()
    huge = b": " + b"x" * 50_000_000 + b"\n\n"
    events = dialect.events("Some ", BAD)
    upstream.script.append(streamed(events[0], huge, *events[1:]))
    upstream.script.append(streamed(*dialect.events("Done.")))
    got, whole = await post(proxy, dialect)
    assert whole
    assert len(got) > len(huge)
    assert BAD.encode() not in got


async def test_an_endless_answer_ends_with_its_client(
    upstream: RawUpstream, start_proxy: Any, dialect: Dialect
) -> None:
    proxy = await start_proxy()
    events = dialect.events("Again and again. ")
    delta = next(event for event in events if b"Again" in event)

    async def play(request: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"".join(events[: events.index(delta)]))
        while not request.gone.is_set():
            writer.write(delta * 50)
            await writer.drain()

    upstream.script.append(play)
    body = dialect.body()
    lines = [f"POST {dialect.path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", "x-api-key: k"]
    async with send(proxy.url, "\r\n".join([*lines, "", ""]).encode() + body) as (reader, _):
        got = 0
        async with asyncio.timeout(30):
            while got < 2_000_000:
                got += len(await reader.read(65536))
    await asyncio.wait_for(upstream.received[0].gone.wait(), 10)


async def test_a_stalled_answer_ends_with_its_client_and_is_not_logged(
    upstream: RawUpstream, start_proxy: Any, dialect: Dialect
) -> None:
    proxy = await start_proxy()
    first = dialect.events("Begun. ")[:2]

    async def play(request: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"".join(first))
        await request.gone.wait()

    upstream.script.append(play)
    body = dialect.body()
    lines = [f"POST {dialect.path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", "x-api-key: k"]
    async with send(proxy.url, "\r\n".join([*lines, "", ""]).encode() + body) as (reader, _):
        await reader.readuntil(b"data: ")
    await asyncio.wait_for(upstream.received[0].gone.wait(), 10)
    assert await proxy.interrupts() == []


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 429, 500, 503, 529])
async def test_an_error_status_passes_as_it_came_and_nothing_is_invented(
    upstream: RawUpstream, start_proxy: Any, dialect: Dialect, status: int
) -> None:
    proxy = await start_proxy()
    body = b'{"error": {"message": "no"}}'
    upstream.script.append(response(body, ("request-id", "req_1"), status=status))
    answer = await ask(proxy.url, "POST", dialect.path, *dialect.headers, body=dialect.body())
    assert (answer.status, answer.body) == (status, body)
    assert answer.all("retry-after") == []
    assert answer.all("request-id") == ["req_1"]


@pytest.mark.parametrize("status", [401, 403, 404, 413, 422, 429, 500, 503, 529])
@pytest.mark.parametrize("after", [1, 2])
async def test_an_error_status_of_any_retry_is_told_by_what_the_client_has(
    upstream: RawUpstream, start_proxy: Any, dialect: Dialect, status: int, after: int
) -> None:
    proxy = await start_proxy()
    error = b'{"error": {"type": "t", "message": "no more today"}}'
    violation = b"".join(dialect.events(BAD))
    upstream.script += [response(violation, kind="text/event-stream")] * after
    upstream.script.append(response(error, ("request-id", "req_1"), status=status))
    got, whole = await post(proxy, dialect)
    assert (whole, BAD.encode() in got, dialect.terminal in got) == (True, False, False)
    assert b"no more today" in got
    assert b"error" in got
    await proxy.log(*[("interrupted", "violated again")] * (after - 1), ("interrupted", "failed"))
    assert (await proxy.interrupts())[-1]["detail"] == f"upstream answered {status}"
    assert upstream.received[-1].body != dialect.body()


@pytest.mark.parametrize("status", [401, 422, 429, 500, 529])
async def test_an_error_status_of_a_retry_is_the_client_s_when_it_has_nothing_yet(
    upstream: RawUpstream, start_proxy: Any, dialect: Dialect, status: int
) -> None:
    proxy = await start_proxy()
    error = b'{"error": {"type": "t", "message": "no more today"}}'
    for answer in (response(dialect.message(BAD)), response(error, ("request-id", "req_1"), status=status)):
        upstream.script.append(answer)
    answer = await ask(proxy.url, "POST", dialect.path, *dialect.headers, body=dialect.body(stream=False))
    assert (answer.status, answer.body, answer.all("request-id")) == (status, error, ["req_1"])
    await proxy.log(("interrupted", "failed"))


async def test_a_reminder_that_is_refused_is_left_out_and_nothing_interrupts_any_more(
    upstream: RawUpstream, start_proxy: Any, dialect: Dialect, capsys: pytest.CaptureFixture[str]
) -> None:
    proxy = await start_proxy()
    violation = b"".join(dialect.events(BAD))
    upstream.script.append(response(violation, kind="text/event-stream"))
    upstream.script.append(response(b'{"error": {"message": "no"}}', status=400))
    upstream.script.append(response(violation, kind="text/event-stream"))
    got, whole = await post(proxy, dialect)
    assert (whole, BAD.encode() in got, dialect.terminal in got) == (True, True, True)
    assert upstream.received[2].body == dialect.body()
    assert "request_refused" in capsys.readouterr().out
    await proxy.log(("interrupted", "failed"), ("exhausted", "violated again"))


@pytest.mark.parametrize("path", ["inspected", "passed on"])
async def test_a_request_that_is_cut_short_is_dropped_and_nothing_is_told_of_it(
    upstream: RawUpstream, start_proxy: Any, dialect: Dialect, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    proxy = await start_proxy()
    body = dialect.body()
    target = dialect.path if path == "inspected" else "/v1/files"
    before = asyncio.all_tasks()
    for at in (0, 1, len(body) - 1):
        head = f"POST {target} HTTP/1.1\r\nHost: x\r\nx-api-key: k\r\nContent-Length: {len(body)}\r\n\r\n"
        async with send(proxy.url, head.encode() + body[:at]):
            pass
    async with asyncio.timeout(10):
        while running := asyncio.all_tasks() - before:
            await asyncio.wait(running)
    assert [request for request in upstream.received if request.body] == []
    upstream.script.clear()
    upstream.script.append(streamed(*dialect.events("Fine.")))
    assert dialect.said((await post(proxy, dialect))[0]) == "Fine."
    assert await proxy.interrupts() == []
    told = capsys.readouterr().out
    assert "matching_failed" not in told
    assert "Traceback" not in told
