"""One condition over one growing block of text.

Two facts make this exact whatever the deltas are. A match of the `streaming` pattern in a prefix cannot be
undone by what follows, so the condition fires with the first prefix that has one; that prefix is a property
of the text, not of its split. And a start from which `streaming` does not even match partially is dead for
good, so that each search goes on from the first start that is still alive.

Text is never cut from the left: a pattern looks at what stands before its start (`\\b`, `^`, lookbehind).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import regex

from ttsr_proxy.growing import GrowingText
from ttsr_proxy.triggers.gate import lower
from ttsr_proxy.triggers.jsregex import CompiledCondition

SEARCH_SECONDS = 0.1
"""Limit of one search of a condition that is not proven linear."""

BLOCK_SECONDS = 0.5
"""Limit of all its searches in one block."""

UNTIMED_SPAN = 12
"""Characters that any pattern gets through in no time; arming the limit costs more than such a search."""

FREE_SPAN = 2_048
"""Characters after a live start that are searched again at every delta."""

GROWTH = 8
"""Beyond that, a search waits until the span has grown by one part in this many."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A match: its offsets, and how long the text was when it could no longer be undone."""

    length: int
    start: int
    end: int


class BlockText(GrowingText):
    """The text of one block so far, and its lower case when a condition needs it."""

    __slots__ = ("_lowered",)

    def __init__(self) -> None:
        super().__init__()
        self._lowered = ""

    @property
    def lowered(self) -> str:
        """The text in lower case, with the same offsets."""
        text = self.text
        if len(self._lowered) < len(text):
            lowered = self._lowered
            self._lowered = ""
            lowered += lower(text[len(lowered) :])
            self._lowered = lowered
        return self._lowered


class ConditionScan:
    """Where one condition stands in one block."""

    __slots__ = (
        "_due", "_group_at", "_group_seen", "_spent", "alive_from", "condition", "hit", "muted", "scanned",
    )  # fmt: skip

    def __init__(self, condition: CompiledCondition, groups: tuple[tuple[str, ...], ...]) -> None:
        self.condition = condition
        self.alive_from = 0
        """No match can start before this."""
        self.scanned = 0
        """How much of the text has been searched."""
        self.hit: Hit | None = None
        self.muted = False
        """It ran over its time limit and is left out for the rest of the block."""
        self._due = 0
        self._spent = 0.0
        # For each group of literals: where one of them stands, and how much of the text was looked at.
        self._group_at = [-1] * len(groups)
        self._group_seen = [0] * len(groups)

    @property
    def is_live(self) -> bool:
        """Whether a start before the end of the searched text can still match."""
        return self.alive_from < self.scanned or self.hit is not None

    def begin_at(self, place: int) -> None:
        """Take note that no match can start before `place`."""
        self.alive_from = max(self.alive_from, place)

    def possible(self, block: BlockText, groups: tuple[tuple[str, ...], ...]) -> int:
        """How many of the literal groups, in order, have a literal at or after the first live start.

        A match needs all of them; without the first (index 0) the condition can sleep until the gate sees it.
        """
        text = block.lowered if self.condition.case_insensitive else block.text
        for number, literals in enumerate(groups):
            found = self._group_at[number]
            if found >= self.alive_from:
                continue
            best = -1
            for literal in literals:
                begin = found + 1 if found >= 0 else self._group_seen[number] - len(literal) + 1
                at = text.find(literal, max(begin, self.alive_from, 0))
                if at >= 0 and (best < 0 or at < best):
                    best = at
            self._group_seen[number] = len(text)
            self._group_at[number] = best
            if best < 0:
                return number
            self._due = 0
        return len(groups)

    def advance(self, text: str, *, force: bool = False) -> Hit | None:
        """Search the text as far as it has come; the hit if the condition has fired.

        A start that stays alive over thousands of characters is searched again only when the text has grown
        in proportion or a missing literal has come, unless `force`d: the verdict comes later then, never
        differently.
        """
        length = len(text)
        if self.hit is not None or self.scanned == length or self.muted:
            return self.hit
        if self.alive_from > length or (length < self._due and not force and not self._line_ended(text)):
            return None
        found = self._search(self.condition.streaming, text, length, partial=True)
        if found is None and self.muted:
            return None
        if found is None:
            self.alive_from = length
        elif found.partial:
            self.alive_from = found.start()
        else:
            self.hit = self._earliest(text, found)
            return self.hit
        self.scanned = length
        span = length - self.alive_from
        self._due = length + span // GROWTH if span > FREE_SPAN else 0
        return None

    def conclude(self, text: str) -> Hit | None:
        """The verdict on the complete text."""
        if self.advance(text, force=True) is not None or self.muted:
            return self.hit
        if self.alive_from > len(text) or (self.condition.monotone and text):
            return None
        found = self._search(self.condition.final, text, len(text), partial=False)
        if found is not None:
            self.hit = Hit(len(text), found.start(), found.end())
        return self.hit

    def _line_ended(self, text: str) -> bool:
        return self.condition.line_bound and text.find("\n", self.scanned) >= 0

    def _earliest(self, text: str, found: regex.Match[str]) -> Hit:
        """The match in the shortest prefix that has one: the same whatever the deltas were."""
        low, high = max(self.scanned, self.alive_from - 1), len(text)
        while high - low > 1 and not self.muted:
            middle = (low + high) // 2
            earlier = self._search(self.condition.streaming, text, middle, partial=False)
            if earlier is None:
                low = middle
            else:
                high, found = middle, earlier
        return Hit(high, found.start(), found.end())

    def _search(
        self, pattern: regex.Pattern[str], text: str, end: int, *, partial: bool
    ) -> regex.Match[str] | None:
        if self.condition.linear or end - self.alive_from <= UNTIMED_SPAN:
            return pattern.search(text, self.alive_from, end, partial=partial)
        before = time.perf_counter()
        try:
            return pattern.search(text, self.alive_from, end, partial=partial, timeout=SEARCH_SECONDS)
        except (TimeoutError, MemoryError, RecursionError):
            self.muted = True
            return None
        finally:
            self._spent += time.perf_counter() - before
            self.muted = self.muted or self._spent > BLOCK_SECONDS
