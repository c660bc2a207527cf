"""An upstream for Chat Completions and Responses that plays a model's plan and refuses illegal histories."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

from aiohttp import web
from strict_anthropic import listening

from scripted_model import chat, responses
from scripted_model.plan import Model

_MAX_BODY = 64 * 2**20
_APIS = {"/v1/chat/completions": chat, "/v1/responses": responses}


class OpenAiUpstream:
    """Plays a model; remembers what it refused."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.url = ""
        self.calls: list[dict[str, Any]] = []
        """The bodies of all requests for an answer."""
        self.upgrades = 0
        """Requests for a WebSocket."""
        self.refusals: list[str] = []

    def app(self) -> web.Application:
        app = web.Application(client_max_size=_MAX_BODY)
        for path, api in _APIS.items():
            app.router.add_post(path, self._handler(api))
        app.router.add_route("*", "/{path:.*}", self._other)
        return app

    def _handler(self, api: ModuleType) -> Any:
        async def handle(request: web.Request) -> web.StreamResponse:
            body = await request.json()
            self.calls.append(body)
            refused = api.refusal(body)
            if refused is not None:
                self.refusals.append(refused)
                error = {"message": refused, "type": "invalid_request_error", "param": None, "code": None}
                return web.json_response({"error": error}, status=400)
            if not body.get("stream"):
                return web.json_response(api.whole(body, self.model))
            response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
            await response.prepare(request)
            for event in api.answer(body, self.model):
                await response.write(event)
                await asyncio.sleep(0)
            await response.write_eof()
            return response

        return handle

    async def _other(self, request: web.Request) -> web.Response:
        if request.headers.get("upgrade", "").lower() == "websocket":
            self.upgrades += 1
        if request.path == "/v1/models":
            return web.json_response({"object": "list", "data": []})
        error = {"message": f"Not found: {request.path}", "type": "invalid_request_error"}
        return web.json_response({"error": error}, status=404)


@asynccontextmanager
async def openai_upstream(model: Model) -> AsyncIterator[OpenAiUpstream]:
    """Such an upstream on a free port."""
    upstream = OpenAiUpstream(model)
    runner = web.AppRunner(upstream.app(), handler_cancellation=True, shutdown_timeout=0.1)
    async with listening(runner) as url:
        upstream.url = url
        yield upstream
