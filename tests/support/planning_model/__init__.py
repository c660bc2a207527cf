"""A model server for plans: it answers with what the test scripted, in either API's form."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from strict_anthropic import listening

__all__ = ["ScriptedModel", "new_rule", "operation", "plan", "scripted_model"]


class ScriptedModel:
    """Answers in order, the last one again and again; what was asked is in `asked`.

    An answer is a plan (a dictionary), a text, or a response as a function makes it.
    """

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""

    def script(self, *answers: Any) -> None:
        self.answers = list(answers)

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The compiler's first message of each call, parsed."""
        return [
            json.loads(next(m for m in body["messages"] if m["role"] == "user")["content"])
            for body in self.asked
        ]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.asked.append(body)
        self.headers.append({key.lower(): value for key, value in request.headers.items()})
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if callable(answer):
            answer = answer(body)
        if asyncio.iscoroutine(answer):
            answer = await answer
        if isinstance(answer, web.StreamResponse):
            return answer
        text = answer if isinstance(answer, str) else json.dumps(answer)
        if request.path.endswith("/chat/completions"):
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            return web.json_response({"choices": [choice]})
        content = [{"type": "text", "text": text}]
        return web.json_response({"type": "message", "content": content, "stop_reason": "end_turn"})


@asynccontextmanager
async def scripted_model() -> AsyncIterator[ScriptedModel]:
    model = ScriptedModel()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", model.handle)
    app.router.add_post("/v1/messages", model.handle)
    async with listening(web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)) as url:
        model.url = url
        yield model


def plan(*operations: dict[str, Any], reason: str = "As asked.") -> dict[str, Any]:
    return {"plan_reason": reason, "operations": list(operations)}


def operation(verb: str, **fields: Any) -> dict[str, Any]:
    """An operation with every field that a plan must have."""
    return {
        "operation": verb,
        "target_atomic_id": None,
        "scenario": None,
        "rule": None,
        "evidence": [],
        "authorization_quote": None,
        "reason": "because",
        "triggers": [],
        "interrupt_mode": None,
        **fields,
    }


def new_rule(constraint: str, *, block: str = "B1.L1-L1", verb: str = "NEW", **fields: Any) -> dict[str, Any]:
    """An operation that writes a rule whose constraint is quoted from a block."""
    slug = "-".join(constraint.lower().rstrip(".").split()[:4])
    rule = {
        "slug": slug,
        "title": constraint[:40],
        "constraint": constraint,
        "applies_when": "",
        "exception": "",
    }
    scenario = {"scenario_id": "general", "title": "General", "summary": "Everything."}
    return operation(
        verb,
        rule=rule,
        scenario=scenario,
        evidence=[{"block": block, "quote": constraint}],
        **fields,
    )
