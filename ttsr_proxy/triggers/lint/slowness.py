"""Finds conditions that are slow on some text: by their form, and by trying texts made from their loops.

A loop is slow when a long run of what it reads is followed by what it cannot go on with. So for each loop
some way to what comes before it, many turns of it, and a character that fits nowhere are searched, under a
limit of time and in growing length. What this does not find may still be slow; what it finds is.

Loops within loops are found by form too: the engine here remembers where such a loop has failed, but
JavaScript's engines take time exponential in the text.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ttsr_proxy.triggers.jsregex import CompiledCondition, PatternError, charset
from ttsr_proxy.triggers.jsregex.backrefs import resolve
from ttsr_proxy.triggers.jsregex.measure import Measure, walk
from ttsr_proxy.triggers.jsregex.nodes import (
    Alt,
    Chars,
    End,
    Group,
    Look,
    Node,
    Repeat,
    Seq,
    Start,
    WordBoundary,
    children,
)
from ttsr_proxy.triggers.jsregex.parser import parse

SEARCH_SECONDS = 0.1
"""The limit of one search in a live stream."""

LENGTHS = (40, 1_000, 10_000)
"""Characters of the texts."""

_TOTAL_SECONDS = 2.0
_MANY_TURNS = 8
"""A loop bounded below this is no loop here."""
_TASTES = ("a0_", " \t", "\n ", ".-,/", "0a")
"""Which characters a text is made of where there is a choice, the preferred ones first."""
_MISFIT = "\x01"


@dataclass(frozen=True, slots=True)
class Slow:
    """A text of about this length on which the search did not finish, and how such a text begins."""

    characters: int
    seconds: float
    sample: str


@lru_cache(maxsize=2_048)
def slowest(condition: CompiledCondition) -> Slow | None:
    """The shortest such text that was found; None when there is none, or the condition is proven linear."""
    if condition.linear:
        return None
    try:
        parsed = parse(condition.source)
        node = resolve(parsed.node, parsed.names)
    except (PatternError, RecursionError):
        return None
    pumps = list(dict.fromkeys(_pumps(node)))
    until = time.monotonic() + _TOTAL_SECONDS
    for length in LENGTHS:
        for pump in pumps:
            if time.monotonic() > until:
                return None
            text = pump.text(length)
            try:
                condition.final.search(text, timeout=SEARCH_SECONDS)
            except TimeoutError:
                return Slow(length, SEARCH_SECONDS, text[:40])
    return None


def nested_loop(condition: str) -> bool:
    """Whether a loop within a loop can share out the same text in exponentially many ways, and then fail."""
    try:
        parsed = parse(condition)
        node = resolve(parsed.node, parsed.names)
    except (PatternError, RecursionError):
        return False
    return _shares(node, Measure(node), demanded=False)


def _shares(node: Node, measure: Measure, demanded: bool) -> bool:
    """`demanded`: something after the node can fail, so that its loops are tried in every way."""
    if isinstance(node, Seq):
        return any(
            _shares(item, measure, demanded or any(map(_can_fail, node.items[index + 1 :])))
            for index, item in enumerate(node.items)
        )
    if isinstance(node, Repeat) and node.high is None and demanded and _is_shared(node.item, measure):
        return True
    return any(_shares(child, measure, demanded and not isinstance(node, Look)) for child in children(node))


def _is_shared(body: Node, measure: Measure) -> bool:
    """Whether one turn of the body can be nothing but an endless loop, which two turns could share out."""
    match body:
        case Repeat(item=item, low=low, high=None):
            return measure.max_length(item) != 0 and low <= 1
        case Group(item=item):
            return _is_shared(item, measure)
        case Alt(options=options):
            return any(_is_shared(option, measure) for option in options)
        case Seq(items=items):
            return any(
                _is_shared(item, measure)
                and all(measure.min_length(other) == 0 for other in items if other is not item)
                and not any(_asserts(other) for other in items if other is not item)
                for item in items
            )
        case _:
            return False


def _asserts(node: Node) -> bool:
    return any(isinstance(part, Look | Start | End | WordBoundary) for part in walk(node))


def _can_fail(node: Node) -> bool:
    return not (isinstance(node, Repeat) and node.low == 0)


@dataclass(frozen=True, slots=True)
class _Pump:
    """A text of any length around one loop."""

    required: str
    """What comes after the loop: put before it, since an engine gives up early where it is missing."""
    before: str
    turn: str

    def text(self, length: int) -> str:
        turns = self.turn * (length // len(self.turn))
        return f"{self.required}{_MISFIT}{self.before}{turns}{_MISFIT}"


def _pumps(node: Node) -> Iterator[_Pump]:
    """One for each loop in each taste, and one that repeats nearly the whole."""
    for taste in _TASTES:
        for before, loop, after in _loops(node, "", "", taste):
            turn = _example(loop.item, taste)
            if turn:
                yield _Pump(after[-_MANY_TURNS:], before, turn)
        whole = _example(node, taste)
        if len(whole) > 1:
            yield _Pump(whole[-1], "", whole[:-1])


def _loops(node: Node, before: str, after: str, taste: str) -> Iterator[tuple[str, Repeat, str]]:
    if isinstance(node, Seq):
        examples = [_example(item, taste) for item in node.items]
        for index, item in enumerate(node.items):
            earlier, later = "".join(examples[:index]), "".join(examples[index + 1 :])
            yield from _loops(item, before + earlier, later + after, taste)
        return
    if isinstance(node, Repeat) and (node.high is None or node.high > _MANY_TURNS):
        yield before, node, after
    for child in children(node):
        yield from _loops(child, before, after, taste)


def _example(node: Node, taste: str) -> str:
    """A short text that the node reads; assertions are not looked at."""
    match node:
        case Chars(ranges=ranges):
            return _character(ranges, taste)
        case Seq(items=items):
            return "".join(_example(item, taste) for item in items)
        case Alt(options=options):
            return next((text for option in options if (text := _example(option, taste))), "")
        case Repeat(item=item, low=low, high=high):
            # One turn where none is needed: an optional part is part of what a loop reads.
            return _example(item, taste) * (0 if high == 0 else min(max(low, 1), 100))
        case Group(item=item):
            return _example(item, taste)
        case _:
            return ""


def _character(ranges: charset.Ranges, taste: str) -> str:
    for preferred in taste:
        if charset.contains(ranges, ord(preferred)):
            return preferred
    return chr(ranges[0][0]) if ranges else ""
