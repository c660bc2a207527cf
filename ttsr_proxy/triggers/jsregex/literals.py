"""Strings that every match contains, for a prefilter.

Only mandatory text counts: nothing from lookarounds, optional parts or backreferences. Where a match must
contain one of several strings, they form a group; each group holds independently of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from ttsr_proxy.triggers.jsregex import charset
from ttsr_proxy.triggers.jsregex.charset import Ranges
from ttsr_proxy.triggers.jsregex.measure import walk
from ttsr_proxy.triggers.jsregex.nodes import (
    Alt,
    Backref,
    Chars,
    Group,
    NamedBackref,
    Node,
    Repeat,
    Seq,
)

MAX_STRINGS: Final = 32
MAX_STRING: Final = 64
MAX_SET: Final = 8

Strings: TypeAlias = frozenset[str]

_NOTHING: Final[Strings] = frozenset({""})


@dataclass(frozen=True, slots=True)
class _Found:
    whole: Strings | None
    """All texts the node can read, if they are few."""
    groups: tuple[Strings, ...] = ()
    """If not: groups of which the node's text contains one string each."""

    def all_groups(self) -> tuple[Strings, ...]:
        if self.whole is None:
            return self.groups
        return () if "" in self.whole or not self.whole else (self.whole,)


def find_literals(node: Node) -> tuple[tuple[tuple[str, ...], ...], bool]:
    """Groups of mandatory strings, and whether they are in lower case for a case-insensitive search."""
    folded = any(
        isinstance(part, Chars) and charset.ascii_letter_pair(part.ranges) is not None for part in walk(node)
    )
    found = _Finder(folded).find(node).all_groups()
    groups = sorted({tuple(sorted(_shortest(group))) for group in found})
    return tuple(groups), folded


@dataclass(frozen=True, slots=True)
class _Finder:
    folded: bool

    def find(self, node: Node) -> _Found:
        match node:
            case Chars(ranges=ranges):
                return _Found(self._characters(ranges))
            case Group(item=item):
                return self.find(item)
            case Seq(items=items):
                return self._sequence(items)
            case Alt(options=options):
                return self._alternatives([self.find(option) for option in options])
            case Repeat():
                return self._repeat(node)
            case Backref() | NamedBackref():
                return _Found(None)
            case _:
                return _Found(_NOTHING)

    def _characters(self, ranges: Ranges) -> Strings | None:
        if sum(high - low + 1 for low, high in ranges) > MAX_SET:
            return None
        characters = {chr(code) for low, high in ranges for code in range(low, high + 1)}
        if not self.folded:
            return frozenset(characters)
        # Lower case and JavaScript's folding agree within ASCII only.
        return frozenset(map(str.lower, characters)) if all(map(str.isascii, characters)) else None

    def _sequence(self, items: tuple[Node, ...]) -> _Found:
        groups: list[Strings] = []
        current: Strings = _NOTHING
        complete = True
        for item in items:
            found = self.find(item)
            joined = None if found.whole is None else _joined(current, found.whole)
            if joined is not None:
                current = joined
                continue
            complete = False
            groups.extend(_Found(current).all_groups())
            groups.extend(found.groups)
            current = _NOTHING if found.whole is None else found.whole
        if complete:
            return _Found(current)
        groups.extend(_Found(current).all_groups())
        return _Found(None, tuple(groups))

    def _alternatives(self, found: list[_Found]) -> _Found:
        wholes = [option.whole for option in found if option.whole is not None]
        whole = frozenset[str]().union(*wholes)
        if len(wholes) == len(found) and len(whole) <= MAX_STRINGS:
            return _Found(whole)
        best: set[str] = set()
        for option in found:
            groups = option.all_groups()
            if not groups:
                return _Found(None)
            best.update(sorted(groups, key=_worth)[-1])
        return _Found(None, (frozenset(best),) if len(best) <= 4 * MAX_STRINGS else ())

    def _repeat(self, node: Repeat) -> _Found:
        found = self.find(node.item)
        if node.low == 0:
            if node.high == 1 and found.whole is not None:
                return _Found(found.whole | _NOTHING)
            return _Found(None)
        if found.whole is None:
            return found
        # As many turns as stay within the limits; if that is all of them, adjacent text can be joined.
        text, turns = found.whole, 1
        while turns < node.low:
            longer = _joined(text, found.whole)
            if longer is None:
                break
            text, turns = longer, turns + 1
        if turns == node.high:
            return _Found(text)
        return _Found(None, _Found(text).all_groups())


def _joined(left: Strings, right: Strings) -> Strings | None:
    if len(left) * len(right) > MAX_STRINGS:
        return None
    joined = frozenset(a + b for a in left for b in right)
    return None if any(len(string) > MAX_STRING for string in joined) else joined


def _worth(group: Strings) -> tuple[int, int]:
    return min(map(len, group)), -len(group)


def _shortest(group: Strings) -> list[str]:
    """The strings of a group that contain no other one of it."""
    return [s for s in group if not any(other != s and other in s for other in group)]
