"""HTTP/1.1 as bytes on a socket: an upstream and a client that neither add nor correct anything."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

__all__ = ["RawAnswer", "RawRequest", "RawUpstream", "ask", "raw_upstream", "response", "send"]


@dataclass(slots=True)
class RawRequest:
    """A request as it arrived."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    """As they were written, in order."""
    body: bytes
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """The caller has closed the connection."""

    def all(self, name: str) -> list[str]:
        return [value for given, value in self.headers if given.lower() == name.lower()]


@dataclass(slots=True)
class RawAnswer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def all(self, name: str) -> list[str]:
        return [value for given, value in self.headers if given.lower() == name.lower()]


Play = Callable[[RawRequest, asyncio.StreamWriter], Awaitable[None]]
"""Writes an answer. The connection is closed after it."""


class RawUpstream:
    """Answers each request with the next of its script, and remembers every request."""

    def __init__(self) -> None:
        self.url = ""
        self.received: list[RawRequest] = []
        self.script: deque[bytes | Play] = deque()
        self._arrived = asyncio.Event()

    async def next_request(self, count: int = 1) -> RawRequest:
        """The newest request, once there are so many."""
        async with asyncio.timeout(10):
            while len(self.received) < count:
                self._arrived.clear()
                await self._arrived.wait()
        return self.received[-1]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            method, target, headers = await _head(reader)
            request = RawRequest(method, target, headers, await _body(reader, headers))
            self.received.append(request)
            self._arrived.set()
            play = self.script.popleft() if self.script else response(b"{}")
            watch = asyncio.create_task(_watch(reader, request))
            try:
                if isinstance(play, bytes):
                    writer.write(play)
                else:
                    await play(request, writer)
                await writer.drain()
            except ConnectionError:
                request.gone.set()
            finally:
                watch.cancel()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


async def _watch(reader: asyncio.StreamReader, request: RawRequest) -> None:
    with suppress(ConnectionError):
        await reader.read()
    request.gone.set()


async def _head(reader: asyncio.StreamReader) -> tuple[str, str, list[tuple[str, str]]]:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    first, second, _ = lines[0].split(" ", 2)
    headers = []
    for line in filter(None, lines[1:]):
        name, _, value = line.partition(":")
        headers.append((name, value.strip()))
    return first, second, headers


async def _body(reader: asyncio.StreamReader, headers: list[tuple[str, str]]) -> bytes:
    fields = {name.lower(): value for name, value in headers}
    if "chunked" in fields.get("transfer-encoding", ""):
        body = b""
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
        return body
    return await reader.readexactly(int(fields.get("content-length", 0)))


def response(
    body: bytes,
    *headers: tuple[str, str],
    status: int = 200,
    kind: str = "application/json",
) -> bytes:
    """A whole answer."""
    fields = [("Content-Type", kind), ("Content-Length", str(len(body))), *headers]
    lines = [f"HTTP/1.1 {status} As It Is", *(f"{name}: {value}" for name, value in fields)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


@asynccontextmanager
async def raw_upstream() -> AsyncIterator[RawUpstream]:
    """A raw upstream on a free loopback port."""
    upstream = RawUpstream()
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0, limit=1 << 27)
    upstream.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield upstream
    finally:
        server.close()


@asynccontextmanager
async def send(url: str, request: bytes) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Write a request and read its answer as it comes."""
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 16)
    try:
        writer.write(request)
        await writer.drain()
        yield reader, writer
    finally:
        writer.close()


async def ask(
    url: str, method: str, target: str, *headers: tuple[str, str], body: bytes | None = None
) -> RawAnswer:
    """One request on a connection of its own; nothing is added but `Host`, `Connection` and the length."""
    fields = [*headers, ("Connection", "close")]
    if not any(name.lower() == "host" for name, _ in headers):
        fields.insert(0, ("Host", url.removeprefix("http://")))
    if body is not None and not any(name.lower() == "transfer-encoding" for name, _ in headers):
        fields.append(("Content-Length", str(len(body))))
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
    request = "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")
    async with asyncio.timeout(30), send(url, request) as (reader, _):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        given = [
            (name, value.strip()) for name, _, value in (line.partition(":") for line in head[1:] if line)
        ]
        answer = RawAnswer(int(head[0].split()[1]), given, b"")
        if "chunked" in answer.all("transfer-encoding"):
            answer.body = await _body(reader, given)
        else:
            answer.body = await reader.read()
        return answer
