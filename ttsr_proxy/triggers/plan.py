"""What must be watched in one kind of block: the same for every block with this source, tool and paths."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ttsr_proxy.triggers.ast import language_of
from ttsr_proxy.triggers.compiled import CompiledRule
from ttsr_proxy.triggers.gate import RUN, GateKey, LiteralGate
from ttsr_proxy.triggers.jsregex import CompiledCondition
from ttsr_proxy.triggers.match import StreamContext
from ttsr_proxy.triggers.starts import StartTable


@dataclass(frozen=True, slots=True)
class PlannedCondition:
    """One condition of one rule in a plan."""

    rule: int
    """Which of the plan's rules."""
    pattern: str
    compiled: CompiledCondition
    groups: tuple[tuple[str, ...], ...]
    """Its groups of literals, the best one for the gate first; none: it is searched at every delta."""


@dataclass(frozen=True, slots=True)
class Holding:
    """What text is held for: some of a plan's rules, with those of their conditions that count."""

    rules: frozenset[int]
    by_start: StartTable | None
    """Their conditions that can be asked where they begin."""
    searched: tuple[int, ...]
    """The others."""
    ast: bool
    """Whether one of the rules has ast patterns to be searched."""


class Plan:
    """The rules that apply to a block, in rule order, with their conditions and the gate before them."""

    __slots__ = (
        "_holdings", "always", "ast", "by_start", "conditions", "gate", "interrupting", "language", "of_rule",
        "rules", "source", "start_table",
    )  # fmt: skip

    def __init__(
        self, rules: tuple[CompiledRule, ...], context: StreamContext, interrupting: frozenset[str]
    ) -> None:
        self.rules = rules
        self.source = context.source
        self.interrupting = interrupting
        """The names of the rules whose match interrupts."""
        self.conditions = tuple(
            PlannedCondition(number, condition.pattern, condition.compiled, _by_rarity(condition.compiled))
            for number, rule in enumerate(rules)
            for condition in rule.conditions
        )
        of_rule: list[list[int]] = [[] for _ in rules]
        for index, planned in enumerate(self.conditions):
            of_rule[planned.rule].append(index)
        self.of_rule = tuple(tuple(indices) for indices in of_rule)
        """For each rule, its conditions."""
        self.gate = LiteralGate(
            GateKey(index, planned.groups[0], planned.compiled.case_insensitive)
            for index, planned in enumerate(self.conditions)
            if planned.groups
        )
        ungated = [index for index, planned in enumerate(self.conditions) if not planned.groups]
        self.by_start, self.always = self._by_coverage(ungated)
        """Conditions without literals: searched where a match could begin, and searched at every delta."""
        self.start_table = self._table(self.by_start)
        self._holdings: dict[frozenset[str], Holding] = {}
        self.language = language_of(context.paths) if context.source == "tool" else None
        self.ast = tuple(
            number for number, rule in enumerate(rules) if self.language is not None and rule.ast_patterns
        )
        """The rules whose ast patterns are to be searched."""

    def holding(self, names: frozenset[str]) -> Holding:
        """What holding text for the rules of these names means. Kept, with all that its table learns."""
        holding = self._holdings.get(names)
        if holding is None:
            rules = frozenset(number for number, rule in enumerate(self.rules) if rule.rule.name in names)
            by_start, searched = self._by_coverage(
                index
                for index, planned in enumerate(self.conditions)
                # Prose would be held whole for a condition that is open from anywhere.
                if planned.rule in rules and not (planned.compiled.open_ended and self.source != "tool")
            )
            holding = Holding(rules, self._table(by_start), searched, not rules.isdisjoint(self.ast))
            if len(self._holdings) >= _HOLDINGS:
                self._holdings.clear()
            self._holdings[names] = holding
        return holding

    def _by_coverage(self, indices: Iterable[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        covered: list[int] = []
        others: list[int] = []
        for index in indices:
            (covered if StartTable.covers(self.conditions[index].compiled) else others).append(index)
        return tuple(covered), tuple(others)

    def _table(self, indices: tuple[int, ...]) -> StartTable | None:
        return StartTable((i, self.conditions[i].compiled) for i in indices) if indices else None


_HOLDINGS = 16
"""Kept per plan: rules that have used up their budget are left out of what text is held for."""

_COMMON = frozenset(" \t\netaoinsrhldcu_.(),;:=\"'")


def _by_rarity(condition: CompiledCondition) -> tuple[tuple[str, ...], ...]:
    """The groups that can be used as a gate, the one that wakes the condition least often first."""
    usable = [group for group in condition.literals if group and all(group)]
    if condition.case_insensitive:
        # Lower case and JavaScript's case folding agree on ASCII only.
        usable = [group for group in usable if all(literal.isascii() for literal in group)]
    return tuple(sorted(usable, key=_how_common))


def _how_common(group: tuple[str, ...]) -> float:
    """An estimate of how often one of the group's runs turns up in text."""
    total = 0.0
    for literal in group:
        estimate = 1.0
        for char in literal[-RUN:]:
            estimate *= 0.06 if char in _COMMON else 0.01
        total += estimate
    return total
