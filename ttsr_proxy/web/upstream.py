"""The connection to the model APIs: one call at a time for an exchange, read piece by piece."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from ttsr_proxy.web.encodings import DECODED_BY_CLIENT
from ttsr_proxy.web.headers import lower_case
from ttsr_proxy.web.proxies import ForwardProxies

CONNECT_SECONDS = 30.0
"""How long connecting may take. What follows is never time-limited: models think for minutes."""

_CLOSED = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)
"""What a connection that is closed already gives, before any byte of an answer."""

MAX_ERROR_BYTES = 1 << 20
"""An error body longer than this passes through unread."""

MAX_WHOLE_BYTES = 1 << 26
"""The same for an answer that is not streamed."""


class UpstreamLost(Exception):
    """The connection failed; the message says how, without credentials or bodies."""


@dataclass(frozen=True, slots=True)
class UpstreamAnswer:
    """An answer whose headers are there. Its body is read with `read_piece` or `read_all`."""

    response: aiohttp.ClientResponse
    decoded: bool = False
    """Upstream compressed its answer, and what is read of it is not compressed any more."""
    _ahead: deque[bytes] = field(default_factory=deque)
    """What `read_all` has read in vain."""
    heard: Callable[[bytes], None] | None = None
    """Is told every piece that arrives."""

    @property
    def status(self) -> int:
        return self.response.status

    @property
    def headers(self) -> dict[str, str]:
        return lower_case(self.response.raw_headers)

    @property
    def request_id(self) -> str:
        headers = self.headers
        return headers.get("request-id") or headers.get("x-request-id") or ""

    async def read_piece(self) -> bytes:
        """What has arrived since the last call; empty at the end. Raises UpstreamLost."""
        if self._ahead:
            return self._ahead.popleft()
        content = self.response.content
        try:
            piece = await content.readany()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            # What had arrived before the loss is still there, and aiohttp's public methods only raise.
            piece = content._read_nowait(-1)
            if not piece:
                raise UpstreamLost(_reason(error)) from error
        if self.heard is not None:
            self.heard(piece)
        return piece

    async def read_all(self, at_most: int) -> bytes | None:
        """The whole body; None if longer: `read_piece` still gives all of it. Raises UpstreamLost."""
        if (self.response.content_length or 0) > at_most:
            return None
        pieces: list[bytes] = []
        size = 0
        while piece := await self.read_piece():
            pieces.append(piece)
            size += len(piece)
            if size > at_most:
                self._ahead.extend(pieces)
                return None
        return b"".join(pieces)

    def close(self) -> None:
        """Drop the connection at once, so that upstream stops working."""
        self.response.close()


@dataclass(slots=True)
class _Connection:
    """What a request was sent on."""

    reused: bool = False


class UpstreamClient:
    """All connections of the process. Redirects are never followed: they could carry credentials away."""

    def __init__(self) -> None:
        self._connector = aiohttp.TCPConnector(limit=0)
        self._proxies = ForwardProxies()
        self._as_it_comes = self._session(decompress=False)
        self._readable = self._session(decompress=True)

    def _session(self, *, decompress: bool) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=self._connector,
            connector_owner=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            auto_decompress=decompress,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            trace_configs=[_tell_reused()],
        )

    async def call(
        self,
        method: str,
        url: str,
        headers: CIMultiDict[str],
        body: bytes | AsyncIterable[bytes] | None,
        *,
        readable: bool = False,
    ) -> UpstreamAnswer:
        """Send a request and wait for the answer's headers. Raises UpstreamLost.

        `readable`, for questions to a model: an answer that comes compressed although `identity` was asked
        for is decompressed, and a connection that was closed while it was idle is replaced.
        """
        session = self._readable if readable else self._as_it_comes
        target = URL(url, encoded=True)
        forward = self._proxies.of(target)
        if forward.headers and target.scheme == "http":
            # Without TLS there is no tunnel whose opening carries them.
            headers = headers.copy()
            headers.update(forward.headers)
        while True:
            connection = _Connection()
            try:
                response = await session.request(
                    method,
                    target,
                    headers=headers,
                    data=body,
                    proxy=forward.url,
                    proxy_headers=forward.headers,
                    allow_redirects=False,
                    trace_request_ctx=connection,
                )
                break
            except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
                # Upstream may close an idle connection just when it is used again (RFC 9112 section 9.3.1).
                # Asking a model once more is harmless; what other requests do is not known.
                if readable and connection.reused and isinstance(error, _CLOSED):
                    continue
                raise UpstreamLost(_reason(error)) from error
        encoding = response.headers.get("Content-Encoding", "").lower()
        return UpstreamAnswer(response, readable and encoding in DECODED_BY_CLIENT)

    async def close(self) -> None:
        await self._as_it_comes.close()
        await self._readable.close()
        await self._connector.close()


def _tell_reused() -> aiohttp.TraceConfig:
    """Notes in a request's context that it got a connection of an earlier one."""

    async def reused(_: object, context: SimpleNamespace, __: object) -> None:
        context.trace_request_ctx.reused = True

    config = aiohttp.TraceConfig()
    config.on_connection_reuseconn.append(reused)
    return config


def _reason(error: BaseException) -> str:
    if isinstance(error, asyncio.TimeoutError):
        return "connecting to upstream took too long"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect to upstream: {error.strerror or type(error.os_error).__name__}"
    return f"the connection to upstream failed ({type(error).__name__})"
