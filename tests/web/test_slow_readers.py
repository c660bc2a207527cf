"""A client that reads slowly holds up its own upstream and nobody else, and fills no memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from proxy_under_test import Proxy, Workspace
from raw_http import RawRequest, RawUpstream, ask, response, send
from raw_http.dialects import DIALECTS, Dialect
from strict_anthropic import text, tool

from ttsr_proxy.interception import exchange
from ttsr_proxy.web import driver

BAD = "BADWORD"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
ENOUGH = 32 * 2**20
"""More than all the buffers of sockets hold."""


@pytest.fixture(params=DIALECTS.values(), ids=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    found: Dialect = request.param
    return found


@dataclass(slots=True)
class Flood:
    """An answer that repeats its middle until so much is written, or its reader leaves."""

    before: bytes
    middle: bytes
    after: bytes
    size: int = ENOUGH
    written: int = 0
    request: RawRequest | None = None
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def play(self, request: RawRequest, writer: asyncio.StreamWriter) -> None:
        self.request = request
        writer.write(HEAD + self.before)
        piece = self.middle * (1 + 65536 // len(self.middle))
        while self.written < self.size and not request.gone.is_set():
            self.written += len(piece)
            writer.write(piece)
            await writer.drain()
            self.begun.set()
        writer.write(self.after)


def flood(dialect: Dialect, said: str = "x" * 50_000, size: int = ENOUGH) -> Flood:
    """An answer of many deltas that all say this."""
    events = dialect.answer(text(said), chunk=len(said))
    first = next(at for at, event in enumerate(events) if dialect.said(event))
    return Flood(b"".join(events[:first]), events[first], b"".join(events[first + 1 :]), size)


@asynccontextmanager
async def slow_client(proxy: Proxy, dialect: Dialect, body: bytes) -> AsyncIterator[asyncio.StreamReader]:
    """A client that has read the head and leaves the rest where it is."""
    lines = [f"POST {dialect.path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in dialect.headers]
    async with send(proxy.url, "\r\n".join([*lines, "", ""]).encode() + body) as (reader, _):
        await reader.readuntil(b"\r\n\r\n")
        yield reader


async def stands_still(flooding: Flood, others: Callable[[], Awaitable[None]]) -> None:
    """Until upstream can write no more, while the others are served."""
    before = -1
    async with asyncio.timeout(60):
        await flooding.begun.wait()
        while flooding.written != before:
            before = flooding.written
            for _ in range(4):
                await others()


@pytest.fixture
async def proxy(workspace: Workspace, start_proxy: Any) -> Proxy:
    workspace.rule("no-bad-word", BAD, scope=["text", "tool"])
    started: Proxy = await start_proxy()
    return started


@pytest.fixture
def others(proxy: Proxy, upstream: RawUpstream, dialect: Dialect) -> Callable[[], Awaitable[None]]:
    """Serve another client."""

    async def serve() -> None:
        data = b"".join(dialect.events("quick"))
        upstream.script.append(response(data, kind="text/event-stream"))
        answer = await ask(
            proxy.url, "POST", dialect.path, *dialect.headers, body=dialect.turns(first="other")
        )
        assert dialect.said(answer.body) == "quick"

    return serve


@pytest.mark.parametrize("attempt", ["first", "retry"])
async def test_upstream_waits_for_a_slow_reader_and_goes_on_with_it(
    proxy: Proxy,
    upstream: RawUpstream,
    dialect: Dialect,
    others: Callable[[], Awaitable[None]],
    attempt: str,
) -> None:
    flooding = flood(dialect)
    if attempt == "retry":
        violation = b"".join(dialect.events("Shown. ", BAD))
        upstream.script.append(response(violation, kind="text/event-stream"))
    upstream.script.append(flooding.play)
    async with slow_client(proxy, dialect, dialect.body()) as reader:
        await stands_still(flooding, others)
        stopped = flooding.written
        assert stopped < ENOUGH // 2
        got = 0
        async with asyncio.timeout(60):
            while flooding.written == stopped:
                got += len(await reader.read(1 << 16))
    assert flooding.request is not None
    await asyncio.wait_for(flooding.request.gone.wait(), 10)


async def test_everything_reaches_a_slow_reader_in_the_end(
    proxy: Proxy, upstream: RawUpstream, dialect: Dialect, others: Callable[[], Awaitable[None]]
) -> None:
    flooding = flood(dialect, "y" * 9_000, size=12 * 2**20)
    upstream.script.append(flooding.play)
    async with slow_client(proxy, dialect, dialect.body()) as reader:
        await stands_still(flooding, others)
        got = bytearray()
        async with asyncio.timeout(60):
            while size := int(await reader.readline(), 16):
                got += await reader.readexactly(size)
                await reader.readexactly(2)
    repeated = flooding.written // len(flooding.middle)
    want = flooding.before + flooding.middle * repeated + flooding.after
    assert got == want


async def test_what_is_only_passed_on_waits_for_its_reader_too(
    proxy: Proxy, upstream: RawUpstream, dialect: Dialect, others: Callable[[], Awaitable[None]]
) -> None:
    flooding = flood(dialect)
    upstream.script.append(flooding.play)
    async with send(proxy.url, b"GET /v1/files/f/content HTTP/1.1\r\nHost: x\r\n\r\n") as (reader, _):
        await reader.readuntil(b"\r\n\r\n")
        await stands_still(flooding, others)
        assert flooding.written < ENOUGH // 2
    assert flooding.request is not None
    await asyncio.wait_for(flooding.request.gone.wait(), 10)


async def test_a_held_call_without_end_is_passed_on_before_it_fills_memory(
    proxy: Proxy,
    upstream: RawUpstream,
    dialect: Dialect,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(exchange, "MAX_KEPT_BYTES", 2**20)
    events = dialect.answer(tool("Write", {"file_path": "a", "content": "x" * 100}))
    argument = next(at for at, event in enumerate(events) if b"xxxxxxx" in event and b"delta" in event)
    flooding = Flood(b"".join(events[:argument]), events[argument], b"")
    upstream.script.append(flooding.play)
    async with slow_client(proxy, dialect, dialect.body()) as reader, asyncio.timeout(60):
        await reader.readuntil(b"xxxxxxx")
        assert flooding.written < 8 * 2**20
    assert flooding.request is not None
    await asyncio.wait_for(flooding.request.gone.wait(), 10)
    assert "the answer is too long" in capsys.readouterr().out


@pytest.mark.parametrize("status", [200, 500])
async def test_a_whole_answer_larger_than_any_passes_unread(
    proxy: Proxy,
    upstream: RawUpstream,
    dialect: Dialect,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    status: int,
) -> None:
    monkeypatch.setattr(driver, "MAX_WHOLE_BYTES", 100_000)
    monkeypatch.setattr(driver, "MAX_ERROR_BYTES", 100_000)
    data = b'{"said": "' + BAD.encode() * 100_000 + b'"}'

    async def chunked(request: RawRequest, writer: asyncio.StreamWriter) -> None:
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(head.encode() + b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data))
        await writer.drain()

    for play in (chunked, response(data, status=status)):
        upstream.script.append(play)
        body = dialect.body(stream=False)
        answer = await ask(proxy.url, "POST", dialect.path, *dialect.headers, body=body)
        assert (answer.status, answer.body) == (status, data)
        assert "of unusual size" in capsys.readouterr().out
