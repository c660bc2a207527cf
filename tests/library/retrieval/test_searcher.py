"""What a search answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from ttsr_proxy.config import JudgeSettings
from ttsr_proxy.jsontext import JsonObject

NOTHING = """\
# Applicable OpenViking Rules

These Rules are behavioral constraints.

Application protocol:
1. Evaluate every Rule independently against concrete facts from the current task.
2. Check the applicability boundary and exception before applying a Rule. An empty
   applies_when means the Rule applies in every situation except its exception.
   For a non-empty applies_when, topic similarity alone does not establish applicability.
3. Do not infer facts that are absent.
4. Before acting or answering, validate the planned action or answer against every
   returned Rule. Returned Rules are mandatory when their applicability conditions hold.

Matched 0 active Rule(s).

No active compiled Rule met the current retrieval thresholds."""

RULES = (
    ("outbound-http", "timeouts", "Every outbound HTTP request sets a timeout."),
    ("outbound-http", "retries", "Retries are bounded."),
    ("logging", "structured", "Log records are structured."),
)


async def test_an_empty_library_gives_the_protocol_and_no_judge(
    make_library: Any, make_searcher: Any
) -> None:
    result = await make_searcher().search(make_library(), "anything", 0.65)
    assert result == {
        "rules": [],
        "scenarios": [],
        "rendered": NOTHING,
        "scenario_selection": None,
        "delivery": {"complete": True, "rule_count": 0, "rendered_chars": 730},
    }


async def test_without_a_judge_every_candidate_passes_with_a_warning(
    make_library: Any, make_searcher: Any
) -> None:
    result = await make_searcher().search(make_library(*RULES), "call a service", 1.0)
    assert result["judge"] == "pass"
    assert "no judge is configured" in result["warning"]
    assert [(rule["atomic_id"], rule["probability"]) for rule in result["rules"]] == [
        ("timeouts", 1.0),
        ("retries", 1.0),
        ("structured", 1.0),
    ]
    assert result["scenario_selection"]["backend"] == "pass"
    assert result["scenario_selection"]["recall"] == "all"
    assert result["scenarios"][0] == {
        "scenario_id": "outbound-http",
        "uri": "viking://user/alice/memories/rules/outbound-http/abstract.md",
        "title": "Outbound-Http",
    }


async def test_a_rule_is_rendered_whole_in_a_fence_that_it_cannot_end(
    make_library: Any, make_searcher: Any
) -> None:
    shelf = make_library(("a", "fenced", "Write\n```\nlike this\n```\n````\nor this\n````"))
    result = await make_searcher().search(shelf, "write", 0.65)
    (rule,) = result["rules"]
    assert f"`````markdown\n{rule['content'].rstrip()}\n`````" in result["rendered"]
    assert (
        "## Rule 1 of 1: fenced (revision 1)\nScenario: a | Probability: 1.00 | URI: viking://"
        in (result["rendered"])
    )
    assert result["delivery"]["rendered_chars"] == len(result["rendered"])


class Jev:
    """A System One endpoint that answers as it is told, by the text of what it is asked about."""

    def __init__(self, *answers: Callable[[JsonObject], web.StreamResponse]) -> None:
        self.answers = list(answers)
        self.asked: list[JsonObject] = []

    def application(self) -> web.Application:
        app = web.Application(client_max_size=10_000_000)
        app.router.add_post("/v1/systemone", self.answer)
        return app

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.asked.append(body)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer(body)


def nouls(**by_word: float) -> Callable[[JsonObject], web.StreamResponse]:
    """Answers 0.9, but what a word in the question says otherwise."""

    def answer(body: JsonObject) -> web.StreamResponse:
        answers = {}
        for name, question in body["questions"].items():
            values = [value for word, value in by_word.items() if word in str(question["instructions"])]
            answers[name] = {"type": "noul", "noul": values[0] if values else 0.9}
        return web.json_response({"model": "m", "answers": answers, "usage": USAGE})

    return answer


USAGE = {"input_tokens": 1, "output_tokens": 0}


def fails(status: int, **headers: str) -> Callable[[JsonObject], web.StreamResponse]:
    return lambda body: web.json_response({"error": "x"}, status=status, headers=headers)


class TestJudgement:
    """By Jev."""

    @pytest.fixture(autouse=True)
    def key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("JEV_KEY", "secret")

    async def search(
        self,
        jev: Jev,
        library: Any,
        make_searcher: Any,
        threshold: float = 0.65,
        context: str = "a task",
        **more: Any,
    ) -> JsonObject:
        async with TestServer(jev.application()) as server:
            url = str(server.make_url("/")).rstrip("/")
            judge = JudgeSettings(provider="jev", base_url=url, api_key_env="JEV_KEY", timeout=1.0, **more)
            result: JsonObject = await make_searcher(judge=judge).search(library, context, threshold)
        return result

    async def test_rules_at_the_threshold_are_returned_the_most_probable_first(
        self, make_library: Any, make_searcher: Any
    ) -> None:
        jev = Jev(nouls(Retries=0.65, Log=0.64))
        result = await self.search(jev, make_library(*RULES), make_searcher)
        assert [(rule["atomic_id"], rule["probability"]) for rule in result["rules"]] == [
            ("timeouts", 0.9),
            ("retries", 0.65),
        ]
        assert result["judge"] == "jev_noul"
        assert "warning" not in result
        assert result["scenario_selection"]["backend"] == "jev_noul"
        scenarios, rules = jev.asked
        assert scenarios["state"] == rules["state"] == {"task_context": "a task"}
        assert len(scenarios["questions"]) == 2
        assert len(rules["questions"]) == 3

    async def test_an_improbable_scenario_is_filtered_with_its_rules(
        self, make_library: Any, make_searcher: Any
    ) -> None:
        result = await self.search(Jev(nouls(Log=0.1)), make_library(*RULES), make_searcher)
        assert [one["scenario_id"] for one in result["scenarios"]] == ["outbound-http"]
        assert result["scenario_selection"]["filtered"] == [{"scenario_id": "logging", "probability": 0.1}]

    @pytest.mark.parametrize(
        ("answer", "told"),
        [
            (lambda body: web.json_response({"model": "m", "answers": {}, "usage": USAGE}), "unanswered"),
            (nouls(Every=math.inf), "judge failed"),
            (fails(500), "judge failed"),
            (fails(400), "judge failed"),
            (fails(401), "refused the key"),
            (lambda body: web.Response(text="no json"), "judge failed"),
        ],
    )
    async def test_what_is_not_judged_passes_with_a_warning(
        self, make_library: Any, make_searcher: Any, answer: Any, told: str
    ) -> None:
        result = await self.search(Jev(nouls(), answer), make_library(*RULES), make_searcher)
        assert len(result["rules"]) == 3
        assert result["judge"] == "pass"
        assert told in result["warning"]
        assert {rule["probability"] for rule in result["rules"]} == {1.0}

    async def test_judged_rules_keep_their_probability_beside_those_that_were_not(
        self, make_library: Any, make_searcher: Any
    ) -> None:
        def half(body: JsonObject) -> web.StreamResponse:
            name = next(iter(body["questions"]))
            return web.json_response(
                {"model": "m", "answers": {name: {"type": "noul", "noul": 0.7}}, "usage": USAGE}
            )

        result = await self.search(Jev(nouls(), half), make_library(*RULES), make_searcher)
        assert sorted(rule["probability"] for rule in result["rules"]) == [0.7, 1.0, 1.0]
        assert result["judge"] == "pass"
        assert "2 of 3 not judged" in result["warning"]

    async def test_a_busy_judge_is_asked_again(self, make_library: Any, make_searcher: Any) -> None:
        jev = Jev(nouls(), fails(429, **{"retry-after-ms": "1"}), nouls())
        result = await self.search(jev, make_library(*RULES), make_searcher)
        assert result["judge"] == "jev_noul"
        assert len(jev.asked) == 3

    async def test_a_context_too_long_for_the_judge_is_not_sent(
        self, make_library: Any, make_searcher: Any
    ) -> None:
        jev = Jev(nouls())
        result = await self.search(jev, make_library(*RULES), make_searcher, context="長" * 30_000)
        assert jev.asked == []
        assert "too long" in result["warning"]

    async def test_many_questions_are_asked_in_requests_that_keep_the_limits(
        self, make_library: Any, make_searcher: Any
    ) -> None:
        jev = Jev(nouls())
        rules = [("s", f"r{number}", f"Rule {number}: " + "x" * 1900) for number in range(12)]
        context = "word " * 15_000
        result = await self.search(jev, make_library(*rules), make_searcher, context=context)
        assert len(result["rules"]) == 12
        sizes = [len(str(body).encode()) / 3 for body in jev.asked]
        assert max(sizes) < 60_000

    async def test_the_same_question_about_the_same_context_is_not_asked_twice(
        self, make_library: Any, make_searcher: Any
    ) -> None:
        jev = Jev(nouls())
        async with TestServer(jev.application()) as server:
            url = str(server.make_url("/")).rstrip("/")
            searcher = make_searcher(judge=JudgeSettings(provider="jev", base_url=url, api_key_env="JEV_KEY"))
            first = await searcher.search(make_library(*RULES), "a task", 0.65)
            assert await searcher.search(make_library(*RULES), "a task", 0.65) == first
            assert len(jev.asked) == 2
            await searcher.search(make_library(*RULES), "another task", 0.65)
            assert len(jev.asked) == 4

    async def test_a_refused_key_is_not_tried_again_at_once(
        self, make_library: Any, make_searcher: Any
    ) -> None:
        jev = Jev(fails(401))
        result = await self.search(jev, make_library(*RULES), make_searcher)
        assert len(jev.asked) == 1
        assert len(result["rules"]) == 3
        assert "refused the key" in result["scenario_selection"]["warning"]

    async def test_a_slow_judge_does_not_hold_the_search(
        self, make_library: Any, make_searcher: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("ttsr_proxy.library.retrieval.searcher.DEADLINE_SECONDS", 0.0)
        result = await self.search(Jev(nouls()), make_library(*RULES), make_searcher)
        assert len(result["rules"]) == 3
        assert "not judged within" in result["warning"]

    async def test_a_missing_key_is_told_and_everything_passes(
        self, make_library: Any, make_searcher: Any
    ) -> None:
        judge = JudgeSettings(provider="jev", api_key_env="NO_SUCH_KEY")
        result = await make_searcher(judge=judge).search(make_library(*RULES), "a task", 0.65)
        assert result["judge"] == "pass"
        assert "NO_SUCH_KEY is not set" in result["warning"]

    async def test_an_answer_about_one_user_s_rule_is_none_about_another_s_of_the_same_name(
        self, make_library: Any, make_searcher: Any
    ) -> None:
        jev = Jev(nouls(Retries=0.1))
        async with TestServer(jev.application()) as server:
            url = str(server.make_url("/")).rstrip("/")
            searcher = make_searcher(judge=JudgeSettings(provider="jev", base_url=url, api_key_env="JEV_KEY"))
            alice = make_library(("s", "same", "Every request sets a timeout."), user="alice")
            bob = make_library(("s", "same", "Retries are bounded."), user="bob")
            assert len((await searcher.search(alice, "a task", 0.65))["rules"]) == 1
            assert (await searcher.search(bob, "a task", 0.65))["rules"] == []
