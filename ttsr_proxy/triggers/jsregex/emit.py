"""Nodes written as a pattern for the `regex` package.

The output relies on three flags: V0 (no set operations), DOTALL (`.` is any character) and ASCII (`\\b` and
`(?i:...)` stay within ASCII, as in JavaScript, where K and k are equal but the Kelvin sign is neither). Sets
are written out with their case variants; `(?i:...)` appears around ASCII words only, where it is quicker.

A case-insensitive backreference to text that may be outside ASCII needs UNICODE instead, and then nothing
else may rely on the flag.
"""

from __future__ import annotations

from dataclasses import dataclass

import regex

from ttsr_proxy.triggers.jsregex import charset
from ttsr_proxy.triggers.jsregex.charset import Ranges
from ttsr_proxy.triggers.jsregex.measure import size, walk
from ttsr_proxy.triggers.jsregex.nodes import (
    Alt,
    Backref,
    Chars,
    End,
    Group,
    Look,
    NamedBackref,
    Node,
    Repeat,
    Seq,
    Start,
    WordBoundary,
)

MAX_SIZE = 100_000
"""The engine writes loops out: `a{100000}` takes 30 ms to compile, and a larger count all memory."""
TOO_LARGE = f"with its loops written out it has more than {MAX_SIZE} parts"

_SHORT: dict[Ranges, str] = {
    charset.DIGIT: r"\d",
    charset.complement(charset.DIGIT): r"\D",
    charset.WORD: r"\w",
    charset.NOT_WORD: r"\W",
}
_LOOK = {(True, False): "(?=", (True, True): "(?!", (False, False): "(?<=", (False, True): "(?<!"}
_WORD_CLASS = charset.to_class(charset.WORD)
_BOUNDARY = f"(?:(?<={_WORD_CLASS})(?!{_WORD_CLASS})|(?<!{_WORD_CLASS})(?={_WORD_CLASS}))"
_NOT_BOUNDARY = f"(?:(?<={_WORD_CLASS})(?={_WORD_CLASS})|(?<!{_WORD_CLASS})(?!{_WORD_CLASS}))"
_LINE_END = charset.to_class(charset.LINE_TERMINATORS)
# Equivalent to "at the start, or after a line terminator", in one assertion.
_LINE_START = f"(?<!{charset.to_class(charset.NOT_LINE_TERMINATORS)})"


def compile_node(node: Node) -> regex.Pattern[str]:
    """Compile a tree; raises OverflowError, `regex.error` or RecursionError for what is too large."""
    if size(node) > MAX_SIZE:
        raise OverflowError(TOO_LARGE)
    if _folds_beyond_ascii(node):
        return regex.compile(_Emitter(ascii_only=False).emit(node), regex.V0 | regex.UNICODE | regex.DOTALL)
    return regex.compile(_Emitter(ascii_only=True).emit(node), regex.V0 | regex.ASCII | regex.DOTALL)


def _folds_beyond_ascii(node: Node) -> bool:
    folded = {i for n in walk(node) if isinstance(n, Backref) and n.ignore_case for i in n.indices}
    return any(
        isinstance(part, Chars) and part.ranges and part.ranges[-1][1] > 127
        for group in walk(node)
        if isinstance(group, Group) and group.index in folded
        for part in walk(group)
    )


@dataclass(frozen=True, slots=True)
class _Emitter:
    ascii_only: bool

    def emit(self, node: Node) -> str:
        match node:
            case Chars():
                return self._run([node])
            case Seq(items=items):
                return self._sequence(items)
            case Alt(options=options):
                return "(?:" + "|".join(self.emit(option) for option in options) + ")"
            case Repeat():
                return self._repeat(node)
            case Group(item=item, index=index):
                # Groups of one name share one capture, so a group may be written more than once.
                return f"(?P<g{index}>{self.emit(item)})"
            case Backref(indices=indices, ignore_case=ignore_case):
                return self._backref(indices, ignore_case)
            case Start(multiline=multiline):
                return _LINE_START if multiline else r"\A"
            case End(multiline=multiline):
                return rf"(?:\Z|(?={_LINE_END}))" if multiline else r"\Z"
            case WordBoundary(negated=negated) if self.ascii_only:
                return r"\B" if negated else r"\b"
            case WordBoundary(negated=negated):
                return _NOT_BOUNDARY if negated else _BOUNDARY
            case Look(item=item, ahead=ahead, negated=negated):
                return f"{_LOOK[ahead, negated]}{self.emit(item)})"
            case NamedBackref(name=name):
                raise AssertionError(f"unresolved backreference {name!r}")

    def _sequence(self, items: tuple[Node, ...]) -> str:
        parts: list[str] = []
        run: list[Chars] = []
        for item in items:
            if isinstance(item, Chars):
                run.append(item)
                continue
            parts.append(self._run(run))
            run = []
            parts.append(self.emit(item))
        parts.append(self._run(run))
        return "".join(parts)

    def _run(self, run: list[Chars]) -> str:
        parts: list[str] = []
        word = ""
        for chars in [*run, None]:
            letter = (
                charset.ascii_letter_pair(chars.ranges) if chars is not None and self.ascii_only else None
            )
            if letter is not None:
                word += letter
                continue
            other = None if chars is None else charset.single(chars.ranges)
            if word and other is not None and other.isascii() and not other.isalpha():
                word += charset.escape(other)
                continue
            if word:
                parts.append(f"(?i:{word})")
                word = ""
            if chars is not None:
                parts.append(self._set(chars.ranges))
        return "".join(parts)

    def _set(self, ranges: Ranges) -> str:
        if ranges == charset.ANY:
            return "."
        return (_SHORT.get(ranges) if self.ascii_only else None) or charset.to_class(ranges)

    def _repeat(self, node: Repeat) -> str:
        item = self.emit(node.item)
        if not isinstance(node.item, (Chars, Group, Alt)):
            item = f"(?:{item})"
        low, high = node.low, node.high
        if (low, high) in _QUANTIFIERS:
            count = _QUANTIFIERS[low, high]
        elif low == high:
            count = f"{{{low}}}"
        else:
            count = f"{{{low},{'' if high is None else high}}}"
        return item + count + ("+" if node.possessive else "" if node.greedy else "?")

    def _backref(self, indices: tuple[int, ...], ignore_case: bool) -> str:
        text = ""
        for index in reversed(indices):
            # In JavaScript a reference to a group that took no part matches nothing instead of failing.
            text = f"(?(g{index})(?P=g{index}){'|' + text if text else ''})"
        return f"(?i:{text})" if ignore_case else text


_QUANTIFIERS: dict[tuple[int, int | None], str] = {(0, None): "*", (1, None): "+", (0, 1): "?"}
