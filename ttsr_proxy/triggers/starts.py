"""Where could a match begin? Asked for every character of a stream, for many conditions at once.

A condition that looks at most one character to the left can be asked about a start with nothing but that
character and the one it starts with. The answers are learned on first use and kept for all later streams, so
that a character usually costs one look-up, however many conditions there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import regex

from ttsr_proxy.triggers.conditions import ConditionScan
from ttsr_proxy.triggers.jsregex import CompiledCondition

_CACHED = 20_000
"""Learned answers kept; a full table starts again. ASCII text has a few thousand pairs of characters."""

Pattern = regex.Pattern[str]


class StartTable:
    """For each place in a text, the conditions that could match from there."""

    __slots__ = ("_by_char", "_by_pair", "_looking_back", "_plain")

    def __init__(self, conditions: Iterable[tuple[int, CompiledCondition]]) -> None:
        self._plain: list[tuple[int, Pattern]] = []
        self._looking_back: list[tuple[int, Pattern]] = []
        for index, condition in conditions:
            kept = self._looking_back if condition.max_lookbehind else self._plain
            kept.append((index, condition.streaming))
        self._by_char: dict[str, tuple[int, ...]] = {}
        self._by_pair: dict[str, tuple[int, ...]] = {}

    @staticmethod
    def covers(condition: CompiledCondition) -> bool:
        """Whether one character to the left is all that matters before a match of the condition."""
        return condition.max_lookbehind is not None and condition.max_lookbehind <= 1

    def at(self, text: str, place: int) -> tuple[int, ...]:
        """The conditions for which a match could start at `place`, given only what stands around it."""
        found: tuple[int, ...] = ()
        if self._plain:
            char = text[place]
            known = self._by_char.get(char)
            found = self._learn(self._by_char, self._plain, char, 0) if known is None else known
        if self._looking_back:
            pair = text[place - 1 : place + 1] if place else text[0]
            known = self._by_pair.get(pair)
            if known is None:
                known = self._learn(self._by_pair, self._looking_back, pair, len(pair) - 1)
            found = found + known if found else known
        return found

    @staticmethod
    def _learn(
        cache: dict[str, tuple[int, ...]], conditions: Sequence[tuple[int, Pattern]], text: str, place: int
    ) -> tuple[int, ...]:
        if len(cache) >= _CACHED:
            cache.clear()
        cache[text] = found = tuple(
            index for index, pattern in conditions if pattern.match(text, place, partial=True) is not None
        )
        return found


class StartSweep:
    """Goes over one growing text once and keeps the conditions that have a live start in it."""

    __slots__ = ("_seen", "_table", "live")

    def __init__(self, table: StartTable) -> None:
        self._table = table
        self._seen = 0
        self.live: set[int] = set()
        """Conditions with a start that is not known to be dead; whoever finds it dead takes them out."""

    def advance(self, text: str, scans: Sequence[ConditionScan]) -> None:
        """Look at the new text; a condition that had no live start gets the first possible one."""
        at, live = self._table.at, self.live
        for place in range(self._seen, len(text)):
            for index in at(text, place):
                if index not in live:
                    live.add(index)
                    scans[index].begin_at(place)
        self._seen = len(text)
