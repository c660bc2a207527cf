"""A cheap first look at new text: which conditions could have become possible?

Most conditions cannot match without some literal (`console.log`). For each such literal one run of up to four
characters, its last, is kept in a table; new text is looked up in the table run by run, so that the cost of a
delta depends on its length and not on the number of rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

RUN = 4
"""Characters of a run, fewer for a shorter literal."""

CONTEXT = RUN - 1
"""Characters before new text that must be looked at with it."""


@dataclass(frozen=True, slots=True)
class GateKey:
    """One condition in the gate: it wakes when one of the literals may have been completed."""

    index: int
    literals: tuple[str, ...]
    lower: bool
    """The literals are in lower case, and so must the text be."""


class LiteralGate:
    """Finds the conditions whose literals may end in new text. It errs only towards waking too many."""

    __slots__ = ("_exact", "_folded")

    def __init__(self, keys: Iterable[GateKey]) -> None:
        exact: dict[int, dict[str, list[int]]] = {}
        folded: dict[int, dict[str, list[int]]] = {}
        for key in keys:
            tables = folded if key.lower else exact
            for literal in key.literals:
                run = literal[-RUN:]
                tables.setdefault(len(run), {}).setdefault(run, []).append(key.index)
        self._exact = _tables(exact)
        self._folded = _tables(folded)

    def woken(self, window: str, fresh: int) -> list[int]:
        """The conditions that a run wakes which ends within the last `fresh` characters of `window`."""
        hits: list[int] = []
        if self._exact:
            _look_up(self._exact, window, fresh, hits)
        if self._folded:
            _look_up(self._folded, lower(window), fresh, hits)
        return hits


_Tables = Sequence[tuple[int, dict[str, tuple[int, ...]]]]


def _tables(built: dict[int, dict[str, list[int]]]) -> _Tables:
    return tuple((size, {run: tuple(who) for run, who in table.items()}) for size, table in built.items())


def _look_up(tables: _Tables, window: str, fresh: int, hits: list[int]) -> None:
    length = len(window)
    for size, table in tables:
        first = max(length - fresh - size + 1, 0)
        if fresh > len(table):
            for run, who in table.items():
                if window.find(run, first) >= 0:
                    hits += who
            continue
        for start in range(first, length - size + 1):
            who_now = table.get(window[start : start + size])
            if who_now is not None:
                hits += who_now


def lower(text: str) -> str:
    """The text in lower case, character by character, so that offsets stay the same."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)
