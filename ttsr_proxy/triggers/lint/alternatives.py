"""The alternatives of a condition, each on its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import regex

from ttsr_proxy.triggers.jsregex import PatternError
from ttsr_proxy.triggers.jsregex.backrefs import resolve
from ttsr_proxy.triggers.jsregex.emit import compile_node
from ttsr_proxy.triggers.jsregex.measure import Measure, walk
from ttsr_proxy.triggers.jsregex.nodes import Alt, Backref, Chars, Group, Node, Seq
from ttsr_proxy.triggers.jsregex.parser import parse


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way for a condition to match; a condition without `|` at its top has one."""

    number: int
    text: str | None
    """As it is written, where that can be told."""
    matches_empty: bool
    pattern: regex.Pattern[str] | None
    """Compiled; None where it refers to a group of another alternative."""


def alternatives(condition: str) -> tuple[Alternative, ...]:
    """Those of a JavaScript condition; none for one that is Python's."""
    try:
        parsed = parse(condition)
        node = resolve(parsed.node, parsed.names)
        options = _options(node)
        texts: list[str | None] = list(_split(condition))
        if len(texts) != len(options):
            texts = [condition] if len(options) == 1 else [None] * len(options)
        measure = Measure(node)
        return tuple(
            Alternative(number, text, _matches_empty(option, measure), _compiled(option))
            for number, (option, text) in enumerate(zip(options, texts, strict=True), 1)
        )
    except (PatternError, regex.error, OverflowError, RecursionError):
        return ()


def _options(node: Node) -> tuple[Node, ...]:
    while isinstance(node, Group) or (isinstance(node, Seq) and len(node.items) == 1):
        node = node.item if isinstance(node, Group) else node.items[0]
    return node.options if isinstance(node, Alt) else (node,)


def _matches_empty(node: Node, measure: Measure) -> bool:
    """Whether the alternative asks for nothing: no character, and no assertion about one."""
    return measure.min_length(node) == 0 and not any(
        not isinstance(part, Chars) and _asserts(part) for part in walk(node)
    )


def _asserts(node: Node) -> bool:
    return not isinstance(node, Alt | Seq | Group) and not hasattr(node, "low")


def _compiled(node: Node) -> regex.Pattern[str] | None:
    groups = {part.index for part in walk(node) if isinstance(part, Group)}
    for part in walk(node):
        if isinstance(part, Backref) and not groups.issuperset(part.indices):
            return None
    return compile_node(node)


def _split(condition: str) -> Iterator[str]:
    """The condition's text at each `|` that stands in no group and no class."""
    depth = start = at = 0
    in_class = False
    while at < len(condition):
        char = condition[at]
        if char == "\\":
            at += 1
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char == "|" and depth == 0:
            yield condition[start:at]
            start = at + 1
        at += 1
    yield condition[start:]
