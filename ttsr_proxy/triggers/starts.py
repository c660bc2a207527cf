"""Where could a match begin? Asked for every character of a stream, for many conditions at once.

A condition that looks at most one character to the left can be asked about a start with nothing but that
character and a few that follow. The answers are learned on first use and kept for later streams, so that a
character usually costs one look-up, however many conditions there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import regex

from ttsr_proxy.triggers.conditions import ConditionScan
from ttsr_proxy.triggers.jsregex import CompiledCondition

AHEAD = 2
"""Characters from a start on that are looked at; most conditions tell by two that they do not begin there."""

_CACHED = 20_000
"""Learned answers kept; a full table starts again."""

Pattern = regex.Pattern[str]


class StartTable:
    """For each place in a text, the conditions that could match from there."""

    __slots__ = ("_by_char", "_first", "_looking_back", "_patterns", "_plain", "by_context")

    def __init__(self, conditions: Iterable[tuple[int, CompiledCondition]]) -> None:
        self._patterns: dict[int, Pattern] = {}
        self._plain: list[int] = []
        self._looking_back: list[int] = []
        for index, condition in conditions:
            self._patterns[index] = condition.streaming
            (self._looking_back if condition.max_lookbehind else self._plain).append(index)
        self._by_char: dict[str, tuple[int, ...]] = {}
        self._first: dict[str, tuple[int, ...]] = {}
        """For the beginning of a text, by its first characters."""
        self.by_context: dict[str, tuple[int, ...]] = {}
        """What was learned of starts, by the character before and those from the start on."""

    @staticmethod
    def covers(condition: CompiledCondition) -> bool:
        """Whether one character to the left is all that matters before a match of the condition."""
        return condition.max_lookbehind is not None and condition.max_lookbehind <= 1

    def at(self, text: str, place: int) -> tuple[int, ...]:
        """The conditions that could match from `place`, given the characters around it and an open end."""
        if not place:
            return self._at_the_beginning(text[:AHEAD])
        context = text[place - 1 : place + AHEAD]
        known = self.by_context.get(context)
        return self._learn(context) if known is None else known

    def _at_the_beginning(self, first: str) -> tuple[int, ...]:
        known = self._first.get(first)
        if known is None:
            known = self._matching(tuple(self._patterns), first, 0)
            if len(self._first) >= _CACHED:
                self._first.clear()
            self._first[first] = known
        return known

    def _learn(self, context: str) -> tuple[int, ...]:
        known = self.by_context.get(context)
        if known is not None:
            return known
        if len(context) > 2:
            found = self._matching(self._learn(context[:-1]), context, 1)
        else:
            plain = self._by_char.get(context[1])
            if plain is None:
                plain = self._by_char[context[1]] = self._matching(self._plain, context[1], 0)
            found = plain + self._matching(self._looking_back, context, 1)
        if len(self.by_context) >= _CACHED:
            self.by_context.clear()
            self._by_char.clear()
        self.by_context[context] = found
        return found

    def _matching(self, indices: Sequence[int], context: str, place: int) -> tuple[int, ...]:
        patterns = self._patterns
        return tuple(i for i in indices if patterns[i].match(context, place, partial=True) is not None)


class StartSweep:
    """Goes over one growing text once and keeps the conditions that have a live start in it."""

    __slots__ = ("_dropped", "_seen", "_table", "live")

    def __init__(self, table: StartTable) -> None:
        self._table = table
        self._seen = 0
        self._dropped: set[int] = set()
        self.live: set[int] = set()
        """Conditions with a start that is not known to be dead; whoever finds it dead takes them out."""

    def drop(self, indices: Iterable[int]) -> None:
        """Stop watching some conditions."""
        self._dropped.update(indices)
        self.live.difference_update(self._dropped)

    def advance(self, text: str, scans: Mapping[int, ConditionScan]) -> None:
        """Look at all new text; a condition that had no live start gets the first possible one."""
        self._sweep(text, len(text), scans)

    def settle(self, text: str, scans: Mapping[int, ConditionScan]) -> int:
        """The same for the places that have all their following characters; returns the first other start.

        What follows the last places is all the text there is, so the table's answer for them is exact.
        """
        self._sweep(text, len(text) - AHEAD + 1, scans)
        for place in range(self._seen, len(text)):
            found = self._table.at(text, place)
            if found and not self._dropped.issuperset(found):
                return place
        return len(text)

    def _sweep(self, text: str, end: int, scans: Mapping[int, ConditionScan]) -> None:
        # The table's answers are looked up here, since this runs for every character of a stream.
        table, live, known = self._table, self.live, self._table.by_context
        for place in range(self._seen, end):
            found = known.get(text[place - 1 : place + AHEAD]) if place else None
            if found is None:
                found = table.at(text, place)
            for index in found:
                if index not in live and index not in self._dropped:
                    live.add(index)
                    scans[index].begin_at(place)
        self._seen = max(self._seen, end)
