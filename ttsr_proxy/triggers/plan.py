"""What must be watched in one kind of block: the same for every block with this source, tool and paths."""

from __future__ import annotations

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


class Plan:
    """The rules that apply to a block, in rule order, with their conditions and the gate before them."""

    __slots__ = (
        "_start_tables", "always", "ast", "by_start", "conditions", "gate", "language", "of_rule", "rules",
        "source",
    )  # fmt: skip

    def __init__(self, rules: tuple[CompiledRule, ...], context: StreamContext) -> None:
        self.rules = rules
        self.source = context.source
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
        self.by_start = tuple(i for i in ungated if StartTable.covers(self.conditions[i].compiled))
        """Conditions without literals, searched where a match could start."""
        self.always = tuple(i for i in ungated if not StartTable.covers(self.conditions[i].compiled))
        """Conditions that are searched at every delta."""
        self._start_tables: dict[tuple[int, ...], StartTable] = {}
        self.language = language_of(context.paths) if context.source == "tool" else None
        self.ast = tuple(
            number for number, rule in enumerate(rules) if self.language is not None and rule.ast_patterns
        )
        """The rules whose ast patterns are to be searched."""

    def start_table(self, indices: tuple[int, ...]) -> StartTable:
        """The table of some conditions. What it learns is kept with the plan."""
        table = self._start_tables.get(indices)
        if table is None:
            table = StartTable((index, self.conditions[index].compiled) for index in indices)
            if len(self._start_tables) >= _TABLES:
                self._start_tables.clear()
            self._start_tables[indices] = table
        return table


_TABLES = 16
"""Start tables of one plan: one for each set of rules that text is held for."""

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
