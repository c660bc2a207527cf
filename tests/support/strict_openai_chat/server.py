"""The scripted upstream as a server on a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from strict_anthropic import Received, StrictUpstream, Turn, serving
from strict_anthropic.server import TurnWriter

from strict_openai_chat.validate import validate
from strict_openai_chat.wire import OPENAI, Dialect, Writer


class StrictChatUpstream(StrictUpstream):
    """Serves the path of OpenAI and those of Azure; `dialect` may change between requests."""

    path = "/chat/completions"

    def __init__(self) -> None:
        super().__init__()
        self.dialect: Dialect = OPENAI

    def app(self) -> web.Application:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/{prefix:.*}/chat/completions", self._messages)
        app.router.add_route("*", "/{path:.*}", self._other)
        return app

    def _refuse(self, received: Received, *, counting: bool) -> web.Response | None:
        if (
            not received.headers.get("authorization", "").startswith("Bearer ")
            and "api-key" not in received.headers
        ):
            received.refused = {"message": "You didn't provide an API key.", "type": "invalid_request_error"}
            return self._error(received, 401, received.refused)
        received.refused = validate(received.body, reasoning=self.dialect.takes_reasoning)
        return self._error(received, 400, received.refused) if received.refused else None

    def _writer(self, turn: Turn, body: dict[str, Any]) -> TurnWriter:
        return Writer(turn, body, self.dialect)

    def _error(
        self, received: Received, status: int, error: dict[str, str], headers: dict[str, str] | None = None
    ) -> web.Response:
        return web.json_response(
            {"error": {"param": None, "code": None, **error}},
            status=status,
            headers={"x-request-id": received.request_id, **(headers or {})},
        )


@asynccontextmanager
async def strict_chat_upstream() -> AsyncIterator[StrictChatUpstream]:
    """A strict upstream on a free port."""
    upstream = StrictChatUpstream()
    async with serving(upstream):
        yield upstream
