"""What a judge is asked about a library: does this rule, or this scenario, concern the task?"""

from __future__ import annotations

from collections.abc import Sequence

from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.judges.question import Question
from ttsr_proxy.library.model import LibraryRule, Snapshot

_FIRST_CONSTRAINTS = 5


def task(context: str) -> JsonObject:
    """What the questions are about."""
    return {"task_context": context}


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
