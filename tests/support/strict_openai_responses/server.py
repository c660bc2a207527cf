"""The scripted upstream as a server on a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from strict_anthropic import Received, StrictUpstream, Turn, serving
from strict_anthropic.server import TurnWriter

from strict_openai_responses.validate import Kept, validate
from strict_openai_responses.wire import Writer


class StrictResponsesUpstream(StrictUpstream):
    """Serves OpenAI's path and those of Azure. A response that was not written to its end is not kept."""

    path = "/responses"

    def __init__(self) -> None:
        super().__init__()
        self.kept = Kept()

    def app(self) -> web.Application:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/responses", self._messages)
        app.router.add_post("/{prefix:.*}/responses", self._messages)
        app.router.add_post("/{prefix:.*}/responses/input_tokens", self._count_tokens)
        app.router.add_route("*", "/{path:.*}", self._other)
        return app

    @property
    def counts(self) -> list[Received]:
        return [r for r in self.received if r.path.endswith("/responses/input_tokens")]

    def _refuse(self, received: Received, *, counting: bool) -> web.Response | None:
        headers = received.headers
        if not headers.get("authorization", "").startswith("Bearer ") and "api-key" not in headers:
            received.refused = {"message": "You didn't provide an API key.", "type": "invalid_request_error"}
            return self._error(received, 401, received.refused)
        received.refused = validate(received.body, self.kept)
        return self._error(received, 400, received.refused) if received.refused else None

    def _writer(self, turn: Turn, body: dict[str, Any]) -> TurnWriter:
        def keep(writer: Writer) -> None:
            store = body.get("store", True) is not False
            self.kept.keep(writer.response_id, conversation, writer.output, store=store)

        conversation = self.kept.conversation(body)
        return Writer(turn, body, keep)

    def _error(
        self, received: Received, status: int, error: dict[str, str], headers: dict[str, str] | None = None
    ) -> web.Response:
        return web.json_response(
            {"error": {"param": None, "code": None, **error}},
            status=status,
            headers={"x-request-id": received.request_id, **(headers or {})},
        )


@asynccontextmanager
async def strict_responses_upstream() -> AsyncIterator[StrictResponsesUpstream]:
    """A strict upstream on a free port."""
    upstream = StrictResponsesUpstream()
    async with serving(upstream):
        yield upstream
