"""Rules that say nearly what a new one says: a model that adds one more has to say how it differs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from ttsr_proxy.library.compilation.compiler import Recall
from ttsr_proxy.library.compilation.nearest import Nearest
from ttsr_proxy.library.compilation.plan import Plan, PlannedOperation, PlannedRule
from ttsr_proxy.library.compilation.statements import normalised
from ttsr_proxy.library.model import LibraryRule, Snapshot

NEARLY_THE_SAME: Final = 0.90
"""Cosine of two rules' meanings, or share of common words, from which on one may repeat the other.

Changed rules are often nearer to each other than restated ones, so that no figure tells which it is.
"""

_COMPARED: Final = 3
"""Rules that a new one is compared with: the nearest may be one that the plan removes."""


class _Statement(Protocol):
    @property
    def constraint(self) -> str: ...
    @property
    def applies_when(self) -> str: ...
    @property
    def exception(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A rule that a new one nearly repeats."""

    rule: LibraryRule
    likeness: float

    @property
    def fault(self) -> str:
        """What is wrong with the new rule, for the model."""
        name = self.rule.atomic_id
        return (
            f"it says nearly the same as rule {name} (likeness {self.likeness:.2f}): make it an UPDATE or a"
            f" NOOP of {name}, or say in reason how it differs, with the words 'differs from {name}'"
        )


class Neighbours:
    """Compares by meaning where `recall` can, else by words."""

    def __init__(self, recall: Recall | None) -> None:
        self._recall = recall

    async def unexplained(self, plan: Plan, library: Snapshot) -> dict[int, Neighbour]:
        """The new rules of the plan that nearly repeat one of the library, by number of their operation.

        Rules that the plan archives do not count, nor an active one that says exactly the same.
        """
        removed = {one.target_atomic_id for one in plan.operations if one.operation == "ARCHIVE"}
        new = {
            number: operation.rule
            for number, operation in enumerate(plan.operations)
            if operation.operation == "NEW" and operation.rule is not None
        }
        unexplained: dict[int, Neighbour] = {}
        for number, found in (await self._nearest(new, library)).items():
            near = [
                Neighbour(rule, likeness)
                for rule, likeness in found
                if likeness >= NEARLY_THE_SAME and rule.atomic_id not in removed
            ]
            if near and not _is_settled(plan.operations[number], new[number], near[0].rule):
                unexplained[number] = near[0]
        return unexplained

    async def _nearest(
        self, new: Mapping[int, PlannedRule], library: Snapshot
    ) -> dict[int, list[tuple[LibraryRule, float]]]:
        if not new or not library.rules:
            return {}
        if self._recall is not None and self._recall.by_meaning:
            texts = [f"{rule.applies_when} {rule.constraint}".strip() for rule in new.values()]
            answers = await self._recall.similar(library, texts, _COMPARED)
            return dict(zip(new, answers, strict=True))
        words = Nearest(library.rules.values())
        return {number: words.ranked(rule.constraint, _COMPARED) for number, rule in new.items()}


def says_the_same(one: _Statement, other: _Statement) -> bool:
    """Whether two rules are equal but for case, punctuation and white space."""
    first, second = (
        tuple(map(normalised, (rule.constraint, rule.applies_when, rule.exception))) for rule in (one, other)
    )
    return first == second


def _is_settled(operation: PlannedOperation, new: PlannedRule, near: LibraryRule) -> bool:
    """Whether it is clear what the new rule is beside its neighbour: the same rule, or another one."""
    same = near.status == "active" and says_the_same(near, new)
    return same or f"differs from {near.atomic_id}" in operation.reason
