"""Answers an aiohttp request with an ASGI application (https://asgi.readthedocs.io/en/latest/specs/www.html)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from aiohttp import web

Event: TypeAlias = MutableMapping[str, Any]
AsgiApp: TypeAlias = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Event]], Callable[[Event], Awaitable[None]]],
    Awaitable[None],
]


async def answer(request: web.Request, app: AsgiApp) -> web.StreamResponse:
    """Run the application for one request; bodies are streamed in both directions."""
    bridge = _Bridge(request)
    await app(_scope(request), bridge.receive, bridge.send)
    if bridge.response is None:
        raise web.HTTPInternalServerError
    await bridge.response.write_eof()
    return bridge.response


class _Bridge:
    def __init__(self, request: web.Request) -> None:
        self._request = request
        self._ended = False
        self.response: web.StreamResponse | None = None

    async def receive(self) -> Event:
        if self._ended:
            # The handler is cancelled when the client leaves, so that this need not notice it.
            await asyncio.Event().wait()
        chunk = await self._request.content.readany()
        self._ended = self._request.content.at_eof()
        return {"type": "http.request", "body": chunk, "more_body": not self._ended}

    async def send(self, event: Event) -> None:
        if event["type"] == "http.response.start":
            self.response = web.StreamResponse(status=event["status"])
            for name, value in event.get("headers", ()):
                self.response.headers.add(name.decode("latin-1"), value.decode("latin-1"))
            await self.response.prepare(self._request)
        elif event["type"] == "http.response.body" and self.response is not None:
            await self.response.write(event.get("body", b""))


def _scope(request: web.Request) -> MutableMapping[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.scheme,
        "path": request.path,
        "raw_path": request.rel_url.raw_path.encode(),
        "query_string": request.rel_url.raw_query_string.encode(),
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.raw_headers],
        "client": (request.remote or "", 0),
        "server": (request.url.host or "", request.url.port),
    }
