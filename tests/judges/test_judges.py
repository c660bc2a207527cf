"""Who the judge is, and judgement by a general model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from planning_model import ScriptedModel, scripted_model

from ttsr_proxy.config import JudgeSettings
from ttsr_proxy.judges import make_judge, why_no_judge
from ttsr_proxy.judges.question import Answers, Judge, PassJudge, Question

RUDE = Question({"question": "Is it rude?"}, "yes", "no")
LONG = Question({"question": "Is it long?"}, "yes", "no")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (JudgeSettings(), "no judge is configured"),
        (JudgeSettings("jev"), "TYPESAFE_API_KEY is not set"),
        (JudgeSettings("jev", api_key_env="OTHER_KEY"), "OTHER_KEY is not set"),
        (JudgeSettings("openai"), "library.judge.model is not given"),
        (JudgeSettings("openai", model="m"), "OPENAI_API_KEY is not set"),
        (JudgeSettings("openai", "http://x", "m", "OTHER_KEY"), "OTHER_KEY is not set"),
        (JudgeSettings("openai", "http://127.0.0.1:1", "m"), None),
        (JudgeSettings("jev", api_key_env="JUDGE_KEY"), None),
    ],
)
async def test_a_judge_that_cannot_be_used_says_why(
    monkeypatch: pytest.MonkeyPatch, settings: JudgeSettings, reason: str | None
) -> None:
    for name in ("TYPESAFE_API_KEY", "OPENAI_API_KEY", "OTHER_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JUDGE_KEY", "k")
    told = why_no_judge(settings)
    judge = make_judge(settings)
    if reason is None:
        assert told is None
        assert judge.name == {"jev": "jev_noul", "openai": "llm_noul"}[settings.provider]
    else:
        assert reason in (told or "")
        assert isinstance(judge, PassJudge)
        answers = await judge.ask({}, [RUDE, LONG])
        assert answers == Answers((None, None), told)
    await judge.close()


def test_without_its_package_jev_cannot_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install 'ttsr-proxy[jev]'" in (why_no_judge(JudgeSettings("jev")) or "")


class TestByAModel:
    """An OpenAI-compatible server."""

    @pytest.fixture
    async def server(self) -> AsyncIterator[ScriptedModel]:
        async with scripted_model() as server:
            yield server

    @pytest.fixture
    async def judge(self, server: ScriptedModel) -> AsyncIterator[Judge]:
        judge = make_judge(JudgeSettings("openai", server.url, "m-1", timeout=1.0))
        yield judge
        await judge.close()

    async def test_all_questions_go_in_one_request(self, server: ScriptedModel, judge: Judge) -> None:
        answers = [{"id": "q1", "probability": 0.2}, {"id": "q0", "probability": 0.9}]
        server.script({"answers": answers})
        assert await judge.ask({"output": "x"}, [RUDE, LONG]) == Answers((0.9, 0.2))
        (body,) = server.asked
        told = json.loads(body["messages"][1]["content"])
        assert told["state"] == {"output": "x"}
        assert [one["question"] for one in told["questions"]] == [RUDE.instructions, LONG.instructions]
        assert body["response_format"]["json_schema"]["name"] == "answers"
        assert "authorization" not in server.headers[0]

    async def test_nothing_is_asked_without_a_question(self, server: ScriptedModel, judge: Judge) -> None:
        assert await judge.ask({}, []) == Answers(())
        assert server.asked == []

    @pytest.mark.parametrize(
        ("answer", "found", "told"),
        [
            ({"answers": [{"id": "q0", "probability": 0.4}]}, (0.4, None), "left questions unanswered"),
            ({"answers": [{"id": "q0", "probability": 1.5}]}, (None, None), "left questions unanswered"),
            ('{"answers": [{"id": "q0", "probability": NaN}]}', (None, None), "not of the form"),
            ('{"answers": [{"id": "q0", "probability": true}]}', (None, None), "not of the form"),
            ({"answers": "yes"}, (None, None), "not of the form"),
            ("I think so.", (None, None), "not of the form"),
            ("", (None, None), "not of the form"),
            (lambda body: web.json_response({}, status=500), (None, None), "status 500"),
            (lambda body: web.json_response({"choices": []}), (None, None), "not complete"),
        ],
    )
    async def test_what_is_no_answer_judges_nothing(
        self, server: ScriptedModel, judge: Judge, answer: Any, found: tuple[float | None, ...], told: str
    ) -> None:
        server.script(answer)
        answers = await judge.ask({}, [RUDE, LONG])
        assert answers.probabilities == found
        assert told in (answers.warning or "")
