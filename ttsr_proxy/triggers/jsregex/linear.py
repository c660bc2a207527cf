"""Proof that a search takes time linear in the text.

It is deliberately narrow: plain sequences (and alternatives of them at the top) whose only loops read one
set of characters, where no two starts run through the same text and no loop leaves a choice to the next.
What does not fit is not slow, just unproven, and runs under a time limit.
"""

from __future__ import annotations

from typing import Final

from ttsr_proxy.triggers.jsregex import charset
from ttsr_proxy.triggers.jsregex.measure import Measure, walk
from ttsr_proxy.triggers.jsregex.nodes import Alt, Backref, Chars, Look, Node, Repeat, Seq

MAX_WAYS: Final = 256
"""Ways to match at one start, of which the engine may try every one."""


def is_linear(node: Node, measure: Measure) -> bool:
    """Whether searching for the node is proven linear in the text."""
    if any(isinstance(part, Backref) for part in walk(node)):
        return False
    options = node.options if isinstance(node, Alt) else (node,)
    ways = 0
    for option in options:
        own = _ways(option.items if isinstance(option, Seq) else (option,), measure, top=True)
        if own is None:
            return False
        ways += own
    return ways <= MAX_WAYS


def _ways(items: tuple[Node, ...], measure: Measure, *, top: bool) -> int | None:
    """How many ways there are to match a sequence at one start; None if that is not proven bounded."""
    ways = 1
    for index, item in enumerate(items):
        own = _ways_of_item(items, index, measure) if _is_endless(item) and top else _ways_of(item, measure)
        if own is None:
            return None
        if isinstance(item, Repeat) and isinstance(item.item, Chars):
            after = measure.first(Seq(items[index + 1 :]))
            if after is not None and charset.is_disjoint(after, item.item.ranges):
                own = 1
        ways *= own
        if ways > MAX_WAYS:
            return None
    return ways


def _is_endless(node: Node) -> bool:
    return isinstance(node, Repeat) and node.high is None


def _ways_of_item(items: tuple[Node, ...], index: int, measure: Measure) -> int | None:
    """An endless loop in a top-level sequence."""
    item = items[index]
    if not isinstance(item, Repeat) or not isinstance(item.item, Chars):
        return None
    before, after = items[:index], items[index + 1 :]
    # A character that the loop cannot read comes before it, so the runs of two starts do not overlap.
    lasts = [measure.last(other) for other in before]
    if not any(last is not None and charset.is_disjoint(last, item.item.ranges) for last in lasts):
        return None
    if not any(_is_endless(other) for other in after):
        return 1
    # Giving back a character never helps: what follows cannot start with one.
    following = measure.first(Seq(after))
    return 1 if following is not None and charset.is_disjoint(following, item.item.ranges) else None


def _ways_of(node: Node, measure: Measure) -> int | None:
    match node:
        case Seq(items=items):
            return _ways(items, measure, top=False)
        case Alt(options=options):
            each = [_ways_of(option, measure) for option in options]
            known = [ways for ways in each if ways is not None]
            if len(known) < len(each):
                return None
            firsts = [measure.first(option) for option in options]
            apart = all(
                a is not None and b is not None and charset.is_disjoint(a, b)
                for i, a in enumerate(firsts)
                for b in firsts[i + 1 :]
            )
            return max(known) if apart else sum(known)
        case Repeat(item=Chars(), low=low, high=int(high)):
            return high - low + 1
        case Repeat(item=item, low=0, high=1):
            ways = _ways_of(item, measure)
            return None if ways is None else ways + 1
        case Repeat():
            return None
        case Look(item=item, ahead=ahead):
            if measure.reach(item) is None or (not ahead and measure.max_length(item) is None):
                return None
            return _ways_of(item, measure)
        case _:
            return 1
