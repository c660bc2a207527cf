"""How far a node reads: lengths, reach to the right and to the left, first and last characters.

`None` always means "without bound".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from ttsr_proxy.triggers.jsregex import charset
from ttsr_proxy.triggers.jsregex.charset import Ranges
from ttsr_proxy.triggers.jsregex.nodes import (
    Alt,
    Backref,
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

T = TypeVar("T")


def largest(values: Iterable[int | None]) -> int | None:
    """The maximum, 0 for none; unbounded wins."""
    most = 0
    for value in values:
        if value is None:
            return None
        most = max(most, value)
    return most


def total(values: Iterable[int | None]) -> int | None:
    """The sum; unbounded wins."""
    result = 0
    for value in values:
        if value is None:
            return None
        result += value
    return result


def walk(node: Node) -> Iterator[Node]:
    """The node and all nodes below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def size(node: Node) -> int:
    """The nodes that are left when loops are written out as the engine does it.

    It copies the body for each mandatory turn, and once more if there may be others.
    """
    below = 1 + sum(size(child) for child in children(node))
    return below * copies(node.low, node.high) if isinstance(node, Repeat) else below


def copies(low: int, high: int | None) -> int:
    """How often the engine writes out the body of a loop."""
    return 1 if low == 0 else low + (low != high)


class Measure:
    """Measures of the nodes of one tree; backreferences are measured by the groups they refer to."""

    def __init__(self, root: Node) -> None:
        self._groups: defaultdict[int, list[Node]] = defaultdict(list)
        for node in walk(root):
            if isinstance(node, Group):
                self._groups[node.index].append(node.item)
        self._open: set[int] = set()

    def min_length(self, node: Node) -> int:
        match node:
            case Chars():
                return 1
            case Seq(items=items):
                return sum(self.min_length(item) for item in items)
            case Alt(options=options):
                return min(self.min_length(option) for option in options)
            case Repeat(item=item, low=low):
                return low * self.min_length(item)
            case Group(item=item):
                return self.min_length(item)
            case _:
                return 0

    def max_length(self, node: Node) -> int | None:
        match node:
            case Chars():
                return 1
            case Seq(items=items):
                return total(self.max_length(item) for item in items)
            case Alt(options=options):
                return largest(self.max_length(option) for option in options)
            case Repeat(item=item, high=high):
                longest = self.max_length(item)
                return 0 if longest == 0 else None if high is None or longest is None else high * longest
            case Group(item=item):
                return self.max_length(item)
            case Backref():
                return largest(self._referred(node, self.max_length, None))
            case _:
                return 0

    def reach(self, node: Node) -> int | None:
        """How many characters right of where the node starts decide whether it matches there."""
        match node:
            case Chars() | WordBoundary() | End():
                return 1
            case Seq(items=items):
                before: int | None = 0
                reached: list[int | None] = []
                for item in items:
                    own = self.reach(item)
                    reached.append(own if own == 0 else total((before, own)))
                    before = total((before, self.max_length(item)))
                return largest(reached)
            case Alt(options=options):
                return largest(self.reach(option) for option in options)
            case Repeat(item=item, high=high):
                longest = self.max_length(item)
                if longest == 0:
                    return self.reach(item)
                if high is None or longest is None:
                    return None
                return total(((high - 1) * longest, self.reach(item)))
            case Group(item=item):
                return self.reach(item)
            case Look(item=item, ahead=ahead):
                return self.reach(item) if ahead else self.overhang(item)
            case Backref():
                return self.max_length(node)
            case _:
                return 0

    def overhang(self, node: Node) -> int | None:
        """How many characters right of where the node *ends* can matter; it may reach from further left."""
        match node:
            case WordBoundary() | End():
                return 1
            case Look(item=item, ahead=True):
                return self.reach(item)
            case _:
                return largest(self.overhang(child) for child in children(node))

    def reads_terminators(self, node: Node) -> bool:
        """Whether any part of the node, lookarounds included, can read a line terminator."""
        match node:
            case Chars(ranges=ranges):
                return not charset.is_disjoint(ranges, charset.LINE_TERMINATORS)
            case Backref():
                return any(self._referred(node, self.reads_terminators, True))
            case _:
                return any(self.reads_terminators(child) for child in children(node))

    def lookbehind(self, node: Node) -> int | None:
        """How many characters left of where the node starts can matter."""
        match node:
            case WordBoundary() | Start():
                return 1
            case Look(item=item, ahead=False):
                return total((self.max_length(item), self.lookbehind(item)))
            case _:
                return largest(self.lookbehind(child) for child in children(node))

    def first(self, node: Node) -> Ranges | None:
        """The characters with which the node's own text can begin; None if it may be empty."""
        match node:
            case Chars(ranges=ranges):
                return ranges
            case Seq(items=items):
                return self._edge(items, self.first)
            case Alt(options=options):
                return _joined(self.first(option) for option in options)
            case Group(item=item):
                return self.first(item)
            case Repeat(item=item, low=low):
                return self.first(item) if low else None
            case _:
                return None

    def last(self, node: Node) -> Ranges | None:
        """The characters with which the node's own text can end; None if it may be empty."""
        match node:
            case Chars(ranges=ranges):
                return ranges
            case Seq(items=items):
                return self._edge(items[::-1], self.last)
            case Alt(options=options):
                return _joined(self.last(option) for option in options)
            case Group(item=item):
                return self.last(item)
            case Repeat(item=item, low=low):
                return self.last(item) if low else None
            case _:
                return None

    def possible_first(self, node: Node) -> Ranges:
        """A superset of the characters with which the node's own text begins when it is not empty."""
        match node:
            case Chars(ranges=ranges):
                return ranges
            case Backref():
                return charset.ANY
            case Look():
                return charset.EMPTY
            case Seq(items=items):
                found: Ranges = ()
                for item in items:
                    found = charset.union(found, self.possible_first(item))
                    if self.min_length(item):
                        break
                return found
            case _:
                return charset.union(*(self.possible_first(child) for child in children(node)))

    def _edge(self, items: tuple[Node, ...], edge: Callable[[Node], Ranges | None]) -> Ranges | None:
        passed: Ranges = ()
        for item in items:
            own = edge(item)
            if own is not None:
                return charset.union(passed, own)
            if self.max_length(item) != 0:
                passed = charset.union(passed, self._readable(item))
        return None

    def _readable(self, node: Node) -> Ranges:
        if isinstance(node, Backref):
            return charset.ANY
        return charset.union(*(n.ranges for n in walk(node) if isinstance(n, Chars)))

    def _referred(self, node: Backref, measure: Callable[[Node], T], endless: T) -> list[T]:
        measured: list[T] = []
        for index in node.indices:
            if index in self._open:
                measured.append(endless)
                continue
            self._open.add(index)
            measured.extend(measure(group) for group in self._groups[index])
            self._open.discard(index)
        return measured


def _joined(sets: Iterable[Ranges | None]) -> Ranges | None:
    joined: Ranges = ()
    for ranges in sets:
        if ranges is None:
            return None
        joined = charset.union(joined, ranges)
    return joined
