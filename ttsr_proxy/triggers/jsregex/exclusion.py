"""The texts after which a negative lookahead is certain to hold.

`(?!bar)` holds as soon as the text has left every path to "bar": after a character that is not b, or b and
one that is not a, and so on. The paths are those of a deterministic automaton, built with partial derivatives
(Antimirov 1996): a state is the set of what the lookahead's content may still have to read. From a state that
nothing can leave towards certainty one character at a time, because its paths turn back on themselves or
depend on more than the next character, the content that is left is handed to the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from ttsr_proxy.triggers.jsregex import charset
from ttsr_proxy.triggers.jsregex.charset import Ranges
from ttsr_proxy.triggers.jsregex.measure import Measure, walk
from ttsr_proxy.triggers.jsregex.nodes import (
    NEVER,
    Alt,
    Chars,
    End,
    Group,
    Look,
    Node,
    Repeat,
    Seq,
    WordBoundary,
    alt,
    seq,
)

MAX_STATES: Final = 64
MAX_PARTS: Final = 400

Thread: TypeAlias = tuple[Node, ...]
"""What one way through the content has still to match."""
State: TypeAlias = tuple[frozenset[Thread], bool | None]
"""The threads, and whether the last character was a word character, if that is known and matters."""

_MATCHED: Final[frozenset[Thread]] = frozenset({()})


class _Undecidable(Exception):
    """A state whose next character does not settle which state follows."""


class _TooLarge(Exception):
    """The automaton is not worth writing out."""


def excluding(content: Node, measure: Measure, undecided: Callable[[Node], Node]) -> Node:
    """A node that matches, as early as can be, the texts that rule out `content` here.

    `undecided` writes the exclusion of content for which there is no such list of texts.
    """
    if any(isinstance(part, Group) for part in walk(content)):
        return undecided(content)
    automaton = _Automaton(content, measure)
    try:
        automaton.explore()
        return _Writer(automaton, undecided).write(automaton.start)
    except _TooLarge:
        return undecided(content)


class _Automaton:
    def __init__(self, content: Node, measure: Measure) -> None:
        self._measure = measure
        self._tracks_words = any(isinstance(part, WordBoundary) for part in walk(content))
        self.start: State = (frozenset({content.items if isinstance(content, Seq) else (content,)}), None)
        self.edges: dict[State, dict[State, Ranges] | None] = {}
        """Where each state goes on which characters; None for undecidable states."""

    def explore(self) -> None:
        waiting = [self.start]
        while waiting:
            state = waiting.pop()
            if state in self.edges:
                continue
            if len(self.edges) == MAX_STATES:
                raise _TooLarge
            try:
                self.edges[state] = edges = self._leave(state)
            except _Undecidable:
                self.edges[state] = None
                continue
            waiting.extend(target for target in edges if target[0] and target[0] != _MATCHED)

    def _leave(self, state: State) -> dict[State, Ranges]:
        threads, after_word = state
        edges: dict[State, Ranges] = {}
        for ranges in self._partition(threads):
            target: frozenset[Thread] = frozenset()
            for thread in threads:
                target |= self._step(thread, ranges, after_word)
            if () in target:
                target = _MATCHED
            settled = not target or target == _MATCHED
            word = charset.is_subset(ranges, charset.WORD) if self._tracks_words and not settled else None
            key = (target, word)
            edges[key] = charset.union(edges.get(key, ()), ranges)
        return edges

    def _partition(self, threads: frozenset[Thread]) -> list[Ranges]:
        parts = [charset.ANY]
        for ranges in self._read_next(threads):
            split = [(charset.intersection(part, ranges), charset.difference(part, ranges)) for part in parts]
            parts = [part for pair in split for part in pair if part]
            if len(parts) > MAX_STATES:
                raise _TooLarge
        return parts

    def _read_next(self, threads: frozenset[Thread]) -> set[Ranges]:
        found: set[Ranges] = {charset.WORD} if self._tracks_words else set()
        for thread in threads:
            for item in thread:
                found.update(part.ranges for part in walk(item) if isinstance(part, Chars))
                if any(isinstance(part, End) for part in walk(item)):
                    found.add(charset.LINE_TERMINATORS)
                if self._measure.min_length(item):
                    break
        return found

    def _step(self, thread: Thread, ranges: Ranges, after_word: bool | None) -> frozenset[Thread]:
        """What is left of a thread after one character of `ranges`, all of which it treats alike."""
        if not thread:
            return _MATCHED
        head, rest = thread[0], thread[1:]
        match head:
            case Chars(ranges=accepted):
                return frozenset({rest} if charset.is_subset(ranges, accepted) else ())
            case Seq(items=items):
                return self._step(items + rest, ranges, after_word)
            case Alt(options=options):
                return frozenset[Thread]().union(
                    *(self._step((option, *rest), ranges, after_word) for option in options)
                )
            case Repeat(item=item, low=low, high=high):
                if not self._measure.min_length(item):
                    raise _Undecidable
                again = (item, *_fewer(item, low, high), *rest)
                turn = self._step(again, ranges, after_word)
                return turn if low else turn | self._step(rest, ranges, after_word)
            case End(multiline=multiline):
                holds = multiline and charset.is_subset(ranges, charset.LINE_TERMINATORS)
            case WordBoundary(negated=negated) if after_word is not None:
                holds = (charset.is_subset(ranges, charset.WORD) != after_word) != negated
            case Look(item=item, ahead=True, negated=False) if not rest:
                return self._step((item,), ranges, after_word)
            case _:
                raise _Undecidable
        return self._step(rest, ranges, after_word) if holds else frozenset()


def _fewer(item: Node, low: int, high: int | None) -> Thread:
    if high == 1:
        return ()
    return (Repeat(item, max(low - 1, 0), None if high is None else high - 1),)


class _Writer:
    def __init__(self, automaton: _Automaton, undecided: Callable[[Node], Node]) -> None:
        self._edges = automaton.edges
        self._undecided = undecided
        self._turning = _turning_back(automaton)
        self._parts = 0

    def write(self, state: State) -> Node:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise _TooLarge
        edges = self._edges[state]
        if edges is None or state in self._turning:
            # The greed of a repeat does not matter to a yes or no, and the order of options does not either.
            return self._undecided(alt(*(seq(*thread) for thread in sorted(state[0], key=repr))))
        stays = edges.get(state, ())
        exits: list[Node] = []
        for target, ranges in edges.items():
            if target == state or target[0] == _MATCHED:
                continue
            exits.append(seq(Chars(ranges), self.write(target)) if target[0] else Chars(ranges))
        # Without an exit the next character decides against the exclusion, and no character leaves it open.
        way_out = alt(*exits) if exits else NEVER
        return seq(Repeat(Chars(stays), 0, None, possessive=True), way_out) if stays else way_out


def _turning_back(automaton: _Automaton) -> frozenset[State]:
    """States on a cycle of more than one state: those reachable from what they reach, themselves apart."""
    reached: dict[State, set[State]] = {}
    for state in automaton.edges:
        seen: set[State] = set()
        waiting = [target for target in automaton.edges[state] or () if target != state]
        while waiting:
            target = waiting.pop()
            if target in seen or target not in automaton.edges:
                continue
            seen.add(target)
            waiting.extend(automaton.edges[target] or ())
        reached[state] = seen
    return frozenset(state for state, seen in reached.items() if state in seen)
