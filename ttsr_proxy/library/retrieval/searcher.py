"""Search: recall scenarios, filter them, judge their rules, render what is left."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ttsr_proxy.config import RecallSettings
from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.judges.question import Answers, Judge, PassJudge, Question
from ttsr_proxy.library.model import LibraryRule, Snapshot
from ttsr_proxy.library.retrieval.judging import about_rule, about_scenario, task
from ttsr_proxy.library.retrieval.recall import NARROW, WIDE, Candidates, Recall
from ttsr_proxy.library.retrieval.rendering import Match, render

DEADLINE_SECONDS: Final = 20.0
"""The judge's share of a search; what it has not answered by then passes."""

SCENARIO_THRESHOLD: Final = 0.35
"""A scenario below this is left out. Low, since a rule that is lost here is never judged."""


class Searcher:
    """Answers what the search endpoint answers. One for the process; nothing in it blocks the event loop."""

    def __init__(self, recall: RecallSettings, judge: Judge, root: Path) -> None:
        """The judge stays its owner's, who closes it."""
        self._recall = Recall(recall, root)
        self._judge = judge
        self.searches: Counter[str] = Counter()
        """Searches by who judged their rules."""
        self.questions: Counter[str] = Counter()
        """Questions to a judge, `answered` or `unanswered`."""

    @property
    def recall(self) -> Recall:
        """For the compiler, which asks what is like a new rule."""
        return self._recall

    async def search(self, library: Snapshot, task_context: str, threshold: float) -> JsonObject:
        """The API's `result`. Rules with at least the threshold's probability are in it, whole."""
        width = NARROW if self._judge.name == "pass" else WIDE
        candidates = await self._recall.candidates(library, task_context, width)
        if not candidates.scenarios:
            self.searches["pass"] += 1
            return _result(library, [], [], None)
        until = asyncio.get_running_loop().time() + DEADLINE_SECONDS
        shelves: dict[str, list[LibraryRule]] = {}
        for rule in library.active:
            shelves.setdefault(rule.scenario_id, []).append(rule)
        questions = [about_scenario(library, name, shelves[name]) for name in candidates.scenarios]
        filtered = await self._ask(task_context, questions, until)
        passed = [
            scenario
            for scenario, probability in zip(candidates.scenarios, filtered.probabilities, strict=True)
            if probability is None or probability >= SCENARIO_THRESHOLD
        ]
        rules = [rule for scenario in passed for rule in shelves[scenario]]
        answers = await self._ask(task_context, [about_rule(rule) for rule in rules], until)
        matches = [
            Match(rule, 1.0 if probability is None else probability)
            for rule, probability in zip(rules, answers.probabilities, strict=True)
            if probability is None or probability >= threshold
        ]
        order = {rule.atomic_id: number for number, rule in enumerate(rules)}
        matches.sort(
            key=lambda match: (
                -match.probability,
                -candidates.rule_scores.get(match.rule.atomic_id, 0.0),
                order[match.rule.atomic_id],
            )
        )
        selection = self._selection(candidates, filtered, passed)
        result = _result(library, matches, passed, selection)
        unjudged = any(probability is None for probability in answers.probabilities)
        result["judge"] = "pass" if unjudged else self._judge.name
        self.searches[result["judge"]] += 1
        if answers.warning:
            result["warning"] = answers.warning
        return result

    async def close(self) -> None:
        """Close models and files."""
        await self._recall.close()

    async def _ask(self, context: str, questions: Sequence[Question], until: float) -> Answers:
        try:
            async with asyncio.timeout_at(until):
                answers = await self._judge.ask(task(context), questions)
        except TimeoutError:
            late = f"not judged within {DEADLINE_SECONDS:.0f} seconds"
            answers = Answers((None,) * len(questions), late)
        if isinstance(self._judge, PassJudge):
            told = f"{self._judge.reason}, so every candidate is returned: check each rule's conditions"
            return Answers(answers.probabilities, told)
        unanswered = answers.probabilities.count(None)
        self.questions["answered"] += len(questions) - unanswered
        self.questions["unanswered"] += unanswered
        return answers

    def _selection(self, candidates: Candidates, filtered: Answers, passed: Sequence[str]) -> JsonObject:
        details = {}
        for scenario, probability in zip(candidates.scenarios, filtered.probabilities, strict=True):
            detail: JsonObject = {"scenario_id": scenario}
            if (score := candidates.scenario_scores.get(scenario)) is not None:
                detail["score"] = round(score, 4)
            if probability is not None:
                detail["probability"] = probability
            details[scenario] = detail
        unjudged = any(probability is None for probability in filtered.probabilities)
        selection: JsonObject = {
            "backend": "pass" if unjudged else self._judge.name,
            "recall": candidates.backend,
            "candidates": len(candidates.scenarios),
            "passed": [details[scenario] for scenario in passed],
            "filtered": [detail for scenario, detail in details.items() if scenario not in set(passed)],
            "context_chunks": candidates.chunks,
            "context_chunks_skipped": candidates.chunks_skipped,
        }
        if warnings := [text for text in (candidates.warning, filtered.warning) if text]:
            selection["warning"] = "; ".join(warnings)
        return selection


def _result(
    library: Snapshot, matches: Sequence[Match], passed: Sequence[str], selection: JsonObject | None
) -> JsonObject:
    rendered = render(library, matches)
    return {
        "rules": [_rule(library, match.rule, match.probability) for match in matches],
        "scenarios": [
            {
                "scenario_id": scenario,
                "uri": library.card(scenario),
                "title": library.scenarios[scenario].title if scenario in library.scenarios else scenario,
            }
            for scenario in passed
        ],
        "rendered": rendered,
        "scenario_selection": selection,
        "delivery": {"complete": True, "rule_count": len(matches), "rendered_chars": len(rendered)},
    }


def _rule(library: Snapshot, rule: LibraryRule, probability: float) -> JsonObject:
    return {
        "atomic_id": rule.atomic_id,
        "revision": rule.revision,
        "scenario_id": rule.scenario_id,
        "probability": probability,
        "uri": library.uri(rule),
        "content": rule.content,
    }
