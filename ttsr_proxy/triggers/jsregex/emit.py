"""Nodes written as a pattern for the `regex` package.

The output relies on three flags: V0 (no set operations), DOTALL (`.` is any character) and ASCII (`\\b` and
`(?i:...)` stay within ASCII, as in JavaScript, where K and k are equal but the Kelvin sign is neither). Sets
are written out with their case variants; `(?i:...)` appears around ASCII words only, where it is quicker.
"""

from __future__ import annotations

from dataclasses import dataclass

import regex

from ttsr_proxy.triggers.jsregex import charset
from ttsr_proxy.triggers.jsregex.charset import Ranges
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

FLAGS = regex.V0 | regex.ASCII | regex.DOTALL

_SHORT: dict[Ranges, str] = {
    charset.ANY: ".",
    charset.DIGIT: r"\d",
    charset.complement(charset.DIGIT): r"\D",
    charset.WORD: r"\w",
    charset.NOT_WORD: r"\W",
}
_LOOK = {(True, False): "(?=", (True, True): "(?!", (False, False): "(?<=", (False, True): "(?<!"}
_LINE_END = charset.to_class(charset.LINE_TERMINATORS)
# Equivalent to "at the start, or after a line terminator", in one assertion.
_LINE_START = f"(?<!{charset.to_class(charset.NOT_LINE_TERMINATORS)})"


def emit(node: Node) -> str:
    """The pattern's text; groups are renumbered in the order they are written."""
    numbers: dict[int, int] = {}
    _number(node, numbers)
    return _Emitter(numbers).emit(node)


def _number(node: Node, numbers: dict[int, int]) -> None:
    match node:
        case Group(item=item, index=index):
            # A lookaround that is written twice has its groups twice; only the first is ever referred to.
            numbers.setdefault(index, len(numbers) + 1)
            _number(item, numbers)
        case Seq(items=parts) | Alt(options=parts):
            for part in parts:
                _number(part, numbers)
        case Repeat(item=item) | Look(item=item):
            _number(item, numbers)


@dataclass(slots=True)
class _Emitter:
    numbers: dict[int, int]

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
            case Group(item=item):
                return f"({self.emit(item)})"
            case Backref(indices=indices, ignore_case=ignore_case):
                return self._backref(indices, ignore_case)
            case Start(multiline=multiline):
                return _LINE_START if multiline else r"\A"
            case End(multiline=multiline):
                return rf"(?:\Z|(?={_LINE_END}))" if multiline else r"\Z"
            case WordBoundary(negated=negated):
                return r"\B" if negated else r"\b"
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
            letter = None if chars is None else charset.ascii_letter_pair(chars.ranges)
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
                parts.append(_SHORT.get(chars.ranges) or charset.to_class(chars.ranges))
        return "".join(parts)

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
        return item + count + ("" if node.greedy else "?")

    def _backref(self, indices: tuple[int, ...], ignore_case: bool) -> str:
        text = ""
        for index in reversed(indices):
            number = self.numbers[index]
            # In JavaScript a reference to a group that took no part matches nothing instead of failing.
            text = rf"(?({number})\{number}{'|' + text if text else ''})"
        return f"(?i:{text})" if ignore_case else text


_QUANTIFIERS: dict[tuple[int, int | None], str] = {(0, None): "*", (1, None): "+", (0, 1): "?"}


def compile_node(node: Node) -> regex.Pattern[str]:
    """Compile a tree; raises `regex.error` or RecursionError for what is too large for the engine."""
    return regex.compile(emit(node), FLAGS)
