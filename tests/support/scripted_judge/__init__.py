"""A judge on loopback: it answers questions as the test says, in either API's form."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from strict_anthropic import listening

from ttsr_proxy.config import JudgeSettings

__all__ = ["KEY", "ScriptedJudge", "scripted_judge"]

KEY = "sk-judge-0123456789abcdef0123456789abcdef"

_WAIT_SECONDS = 5.0


class ScriptedJudge:
    """Says yes to every question about output with one of the words in `broken`, and no to others.

    `asked` are the requests, each with its `state` and the text of its questions by id. While `go_on` is
    cleared they wait. `failing` answers in place of the judge.
    """

    def __init__(self) -> None:
        self.url = ""
        self.broken: dict[str, float] = {}
        """The probability by word."""
        self.failing: Callable[[], web.StreamResponse] | None = None
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._changed = asyncio.Condition()

    def settings(self, **more: Any) -> JudgeSettings:
        """Settings that lead here; the key is in the variable `JUDGE_KEY`."""
        return JudgeSettings(
            **{"provider": "jev", "base_url": self.url, "api_key_env": "JUDGE_KEY", "timeout": 5.0, **more}
        )

    async def was_asked(self, times: int) -> list[dict[str, Any]]:
        """Wait until it was asked so often: the requests."""
        async with asyncio.timeout(_WAIT_SECONDS), self._changed:
            await self._changed.wait_for(lambda: len(self.asked) >= times)
        return self.asked

    async def jev(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        questions = {name: one["instructions"] for name, one in body["questions"].items()}
        answers = await self._answers(request, body["state"], questions)
        if isinstance(answers, web.StreamResponse):
            return answers
        nouls = {name: {"type": "noul", "noul": value} for name, value in answers.items()}
        usage = {"input_tokens": 1, "output_tokens": 0}
        return web.json_response({"model": "m", "answers": nouls, "usage": usage})

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        told = json.loads(body["messages"][-1]["content"])
        questions = {one["id"]: one["question"] for one in told["questions"]}
        answers = await self._answers(request, told["state"], questions)
        if isinstance(answers, web.StreamResponse):
            return answers
        listed = [{"id": name, "probability": value} for name, value in answers.items()]
        message = {"role": "assistant", "content": json.dumps({"answers": listed})}
        return web.json_response({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    async def _answers(
        self, request: web.Request, state: dict[str, Any], questions: dict[str, dict[str, Any]]
    ) -> dict[str, float] | web.StreamResponse:
        async with self._changed:
            self.asked.append({"state": state, "questions": questions})
            self.headers.append({name.lower(): value for name, value in request.headers.items()})
            self._changed.notify_all()
        await self.go_on.wait()
        if self.failing is not None:
            return self.failing()
        said = json.dumps(state, ensure_ascii=False)
        probability = max((p for word, p in self.broken.items() if word in said), default=0.02)
        return dict.fromkeys(questions, probability)


@asynccontextmanager
async def scripted_judge() -> AsyncIterator[ScriptedJudge]:
    judge = ScriptedJudge()
    app = web.Application(client_max_size=10_000_000)
    app.router.add_post("/v1/systemone", judge.jev)
    app.router.add_post("/v1/chat/completions", judge.chat)
    async with listening(web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)) as url:
        judge.url = url
        yield judge
