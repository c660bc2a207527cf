"""What a condition means, as a tree.

The parser resolves flags, escapes and classes, so the tree has no flags: `Chars` holds exactly the characters
it accepts, and the assertions say which of JavaScript's variants they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ttsr_proxy.triggers.jsregex.charset import Ranges


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Seq:
    """Items one after the other; no items match the empty string."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alt:
    """The first option that lets the whole match succeed."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`item` from `low` to `high` times; `high` None is without bound."""

    item: Node
    low: int
    high: int | None
    greedy: bool = True
    possessive: bool = False
    """It gives nothing back. JavaScript has no such loop; ours use it where giving back cannot help."""


@dataclass(frozen=True, slots=True)
class Group:
    """A capturing group, numbered from 1 as its author counts."""

    item: Node
    index: int


@dataclass(frozen=True, slots=True)
class Backref:
    """What one of these groups captured, or nothing if none of them took part.

    Several groups share a name when they stand in different alternatives.
    """

    indices: tuple[int, ...]
    ignore_case: bool


@dataclass(frozen=True, slots=True)
class NamedBackref:
    """A backreference by name, as the parser leaves it; `backrefs.resolve` turns it into a Backref."""

    name: str
    ignore_case: bool


@dataclass(frozen=True, slots=True)
class Start:
    """`^`: the start of the text or, if `multiline`, of any line."""

    multiline: bool


@dataclass(frozen=True, slots=True)
class End:
    """`$`: the very end of the text or, if `multiline`, of any line."""

    multiline: bool


@dataclass(frozen=True, slots=True)
class WordBoundary:
    r"""`\b`, or `\B` if `negated`; word characters are ASCII."""

    negated: bool


@dataclass(frozen=True, slots=True)
class Look:
    """A lookahead or lookbehind."""

    item: Node
    ahead: bool
    negated: bool


Node: TypeAlias = (
    Chars | Seq | Alt | Repeat | Group | Backref | NamedBackref | Start | End | WordBoundary | Look
)

EMPTY = Seq(())
NEVER = Chars(())
"""Matches no character; at the end of an unfinished text the engine calls it a partial match."""


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below a node, in the order they are written."""
    match node:
        case Seq(items=parts) | Alt(options=parts):
            return parts
        case Repeat(item=item) | Group(item=item) | Look(item=item):
            return (item,)
        case _:
            return ()


def seq(*items: Node) -> Node:
    """Items in sequence, flattened."""
    flat: list[Node] = []
    for item in items:
        flat.extend(item.items if isinstance(item, Seq) else (item,))
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def alt(*options: Node) -> Node:
    """One of the options, single ones unwrapped."""
    return options[0] if len(options) == 1 else Alt(options)
