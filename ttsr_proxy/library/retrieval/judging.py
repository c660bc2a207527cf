"""What a judge is asked and answers: does this rule, or this scenario, concern the task?"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ttsr_proxy.jsontext import JsonObject, canonical
from ttsr_proxy.library.model import LibraryRule, Snapshot

_FIRST_CONSTRAINTS = 5


@dataclass(frozen=True, slots=True)
class Question:
    """One yes/no question and what either answer means."""

    instructions: JsonObject
    if_true: str
    if_false: str

    @property
    def digest(self) -> str:
        """Equal for equal questions only, whoever's rules they are about: for answers that are kept."""
        text = canonical([self.instructions, self.if_true, self.if_false])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Answers:
    """A probability for each question in their order; None where there is no answer, and then why."""

    probabilities: tuple[float | None, ...]
    warning: str | None = None


class Judge(Protocol):
    """Never raises: what goes wrong is in the answers' warning."""

    @property
    def name(self) -> str:
        """As the API's field `judge` has it."""

    async def ask(self, context: str, questions: Sequence[Question]) -> Answers:
        """The answers about one task."""

    async def close(self) -> None:
        """Close its connections."""


class PassJudge:
    """Judges nothing, so that everything passes, and says why."""

    name = "pass"

    def __init__(self, reason: str) -> None:
        self._reason = reason

    async def ask(self, context: str, questions: Sequence[Question]) -> Answers:
        return Answers((None,) * len(questions), self._reason)

    async def close(self) -> None:
        pass


def about_rule(rule: LibraryRule) -> Question:
    """Does the rule govern the task?"""
    return Question(
        instructions={
            "rule": {
                "constraint": rule.constraint,
                "applies_when": rule.applies_when,
                "exception": rule.exception,
            },
            "question": (
                "Do facts stated in task_context show that this rule governs the task, and that its "
                "exception does not hold?"
            ),
        },
        if_true=(
            "What the task describes, does or plans falls under the rule's condition; a rule without a "
            "condition concerns what the task does."
        ),
        if_false=(
            "Only the topic is alike, a needed fact is not stated, the exception holds, or the task does "
            "something else."
        ),
    )


def about_scenario(library: Snapshot, scenario_id: str, rules: Sequence[LibraryRule]) -> Question:
    """Could the scenario's active rules matter to the task?"""
    scenario = library.scenarios.get(scenario_id)
    return Question(
        instructions={
            "scenario": {
                "title": scenario.title if scenario else scenario_id,
                "summary": scenario.summary if scenario else "",
                "rules": [rule.constraint for rule in rules[:_FIRST_CONSTRAINTS]],
            },
            "question": "Could the rules of this scenario matter to the task in task_context?",
        },
        if_true="The task does, plans or touches something that this scenario is about.",
        if_false="The task has nothing to do with this scenario.",
    )
