"""The scripted upstream as a server on a real socket."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from aiohttp import web

from strict_anthropic import signing
from strict_anthropic.canonical import merged
from strict_anthropic.script import Drop, HttpError, Reply, ReplyOf, Stall, Turn, fresh_id
from strict_anthropic.validate import drops_unbound, validate
from strict_anthropic.wire import Act, Writer

_MAX_BODY = 64 * 2**20
_MODELS = {
    "data": [{"type": "model", "id": "claude-opus-5-5", "display_name": "Claude Opus 5.5"}],
    "has_more": False,
}


@dataclass(slots=True)
class Received:
    """One request as it arrived, and what became of it."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    """Lower-case names."""
    raw: bytes
    body: Any
    """The parsed JSON, None without one."""
    request_id: str
    refused: dict[str, str] | None = None
    """The error that the request was refused with."""
    aborted: asyncio.Event = field(default_factory=asyncio.Event)
    """The caller closed the connection before the answer was written."""
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    """The answer was written completely."""
    wrote: bytearray = field(default_factory=bytearray)
    """The answer's body as far as it has been written (streams only)."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body["messages"])


class TurnWriter(Protocol):
    """What writes one turn in an API's form."""

    def stream(self) -> Iterator[Act]:
        """The turn as server-sent events with what happens between them."""

    def message(self) -> dict[str, Any]:
        """The turn as one JSON document."""


class StrictUpstream:
    """Plays a script to whoever asks legally, and remembers every request."""

    path = "/v1/messages"

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.url = ""
        self._replies: deque[Reply | ReplyOf] = deque()
        self._fallback: ReplyOf | None = None

    def script(self, *replies: Reply | ReplyOf) -> None:
        """Replies for the next accepted requests, in order, after those already there."""
        self._replies.extend(replies)

    def otherwise(self, reply: ReplyOf | None) -> None:
        """What answers when the script is used up (default: a 500 that says so)."""
        self._fallback = reply

    @property
    def calls(self) -> list[Received]:
        """The requests for a message, in order."""
        return [r for r in self.received if r.method == "POST" and r.path.endswith(self.path)]

    @property
    def counts(self) -> list[Received]:
        """The requests for a token count, in order."""
        return [r for r in self.received if r.path == "/v1/messages/count_tokens"]

    @property
    def refusals(self) -> list[dict[str, str]]:
        """The errors of all refused requests."""
        return [r.refused for r in self.received if r.refused is not None]

    @property
    def unused(self) -> int:
        """Replies that nobody asked for yet."""
        return len(self._replies)

    def app(self) -> web.Application:
        app = web.Application(client_max_size=_MAX_BODY)
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_post("/v1/messages/count_tokens", self._count_tokens)
        app.router.add_route("*", "/{path:.*}", self._other)
        return app

    async def _receive(self, request: web.Request) -> Received:
        raw = await request.read()
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            body = None
        received = Received(
            method=request.method,
            path=request.path,
            query=request.query_string,
            headers={name.lower(): value for name, value in request.headers.items()},
            raw=raw,
            body=body,
            request_id=fresh_id("req_"),
        )
        self.received.append(received)
        return received

    def _refuse(self, received: Received, *, counting: bool) -> web.Response | None:
        headers = received.headers
        if "x-api-key" not in headers and "authorization" not in headers:
            received.refused = {"type": "authentication_error", "message": "x-api-key header is required"}
            return _error(received, 401, received.refused)
        if "anthropic-version" not in headers:
            received.refused = {
                "type": "invalid_request_error",
                "message": "anthropic-version: header is required",
            }
            return _error(received, 400, received.refused)
        betas = [beta.strip() for beta in headers.get("anthropic-beta", "").split(",")]
        received.refused = validate(received.body, betas=betas, counting=counting)
        return self._error(received, 400, received.refused) if received.refused else None

    def _writer(self, turn: Turn, body: dict[str, Any]) -> TurnWriter:
        return Writer(turn, body, _dropped(body))

    def _error(
        self, received: Received, status: int, error: dict[str, str], headers: dict[str, str] | None = None
    ) -> web.Response:
        return _error(received, status, error, headers)

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        received = await self._receive(request)
        try:
            response = await self._answer(request, received)
        except (asyncio.CancelledError, ConnectionError):
            received.aborted.set()
            raise
        received.finished.set()
        return response

    async def _answer(self, request: web.Request, received: Received) -> web.StreamResponse:
        refusal = self._refuse(received, counting=False)
        if refusal is not None:
            return refusal
        reply = self._next(received.body)
        if isinstance(reply, HttpError):
            error = {"type": reply.kind, "message": reply.message}
            return self._error(received, reply.status, error, dict(reply.headers))
        writer = self._writer(reply, received.body)
        if not received.body.get("stream"):
            return await self._whole(received, reply, writer)
        return await self._stream(request, received, reply, writer)

    def _next(self, body: dict[str, Any]) -> Reply:
        if self._replies:
            reply = self._replies.popleft()
        elif self._fallback is not None:
            reply = self._fallback
        else:
            return HttpError(status=500, kind="api_error", message="the script has no reply left")
        return reply(body) if callable(reply) else reply

    async def _whole(self, received: Received, turn: Turn, writer: TurnWriter) -> web.Response:
        for step in turn.steps:
            if isinstance(step, Stall):
                step.reached.set()
                await step.until.wait()
        return web.json_response(
            writer.message(), headers={"request-id": received.request_id, **turn.headers}
        )

    async def _stream(
        self, request: web.Request, received: Received, turn: Turn, writer: TurnWriter
    ) -> web.StreamResponse:
        if turn.before is not None:
            turn.before.reached.set()
            await turn.before.until.wait()
        response = web.StreamResponse(
            headers={
                "content-type": "text/event-stream; charset=utf-8",
                "cache-control": "no-cache",
                "request-id": received.request_id,
                **turn.headers,
            }
        )
        await response.prepare(request)
        for act in writer.stream():
            if isinstance(act, Stall):
                act.reached.set()
                await act.until.wait()
            elif isinstance(act, Drop):
                if request.transport is not None:
                    # what was written before the cut must arrive
                    request.transport.close()
                raise ConnectionResetError("dropped by the script")
            else:
                await response.write(act)
                received.wrote += act
                await asyncio.sleep(0)
        await response.write_eof()
        return response

    async def _count_tokens(self, request: web.Request) -> web.Response:
        received = await self._receive(request)
        refusal = self._refuse(received, counting=True)
        if refusal is not None:
            return refusal
        return web.json_response(
            {"input_tokens": len(received.raw) // 4}, headers={"request-id": received.request_id}
        )

    async def _other(self, request: web.Request) -> web.Response:
        received = await self._receive(request)
        headers = {"request-id": received.request_id}
        if request.method == "HEAD":
            return web.Response(headers=headers)
        if request.path == "/v1/models":
            return web.json_response(_MODELS, headers=headers)
        return _error(received, 404, {"type": "not_found_error", "message": f"Not found: {request.path}"})


def _error(
    received: Received, status: int, error: dict[str, str], headers: dict[str, str] | None = None
) -> web.Response:
    body = {"type": "error", "error": error, "request_id": received.request_id}
    return web.json_response(
        body, status=status, headers={"request-id": received.request_id, **(headers or {})}
    )


def _dropped(body: dict[str, Any]) -> list[Any]:
    """What the API says of thinking that it left out because the caller chose so."""
    if not drops_unbound(body):
        return []
    places = signing.misplaced(body)
    messages = merged(body["messages"])
    return [
        {
            "type": "drop_block",
            "block_type": messages[position]["content"][index]["type"],
            "message": position,
        }
        for position, index in places
    ]


@asynccontextmanager
async def listening(runner: web.AppRunner) -> AsyncIterator[str]:
    """Serve an application on a free loopback port; yields its URL."""
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def strict_upstream() -> AsyncIterator[StrictUpstream]:
    """A strict upstream on a free port."""
    upstream = StrictUpstream()
    async with serving(upstream):
        yield upstream


@asynccontextmanager
async def serving(upstream: StrictUpstream) -> AsyncIterator[None]:
    """Serve an upstream on a free port."""
    # a caller that leaves must be noticed while the script stalls
    runner = web.AppRunner(upstream.app(), handler_cancellation=True, shutdown_timeout=0.1)
    async with listening(runner) as url:
        upstream.url = url
        yield
