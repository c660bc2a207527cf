r"""The variant of a condition for a text that may go on.

`final` treats the end of the buffer as the end of the text, so `foo\b`, `foo$` and `foo(?!bar)` match "foo"
although the next delta may undo it. The robust variant asks for the characters that settle each such verdict:
`foo(?=\W)`, `foo(?=[^b]|b[^a]|ba[^r])`. Where only the end of the text can settle it, it asks for a character
that does not exist, which never matches and which the engine reports as a partial match at the end of the
buffer. Two properties follow, and the tests check them by brute force:

* sound: what the robust variant matches in a prefix, `final` matches in every continuation of it;
* holding: wherever some continuation could still bring a match, the robust variant matches or is partial.
"""

from __future__ import annotations

from dataclasses import replace

from ttsr_proxy.triggers.jsregex import charset
from ttsr_proxy.triggers.jsregex.charset import Ranges
from ttsr_proxy.triggers.jsregex.exclusion import excluding
from ttsr_proxy.triggers.jsregex.measure import Measure, walk
from ttsr_proxy.triggers.jsregex.nodes import (
    EMPTY,
    NEVER,
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
    seq,
)

MAX_AWAITED = 1_000
"""A verdict that reaches further than this, in characters, waits for the end of the line or of the text."""

_WORD = Chars(charset.WORD)
_NOT_WORD = Chars(charset.NOT_WORD)
_ANY = Chars(charset.ANY)
_TERMINATOR = Chars(charset.LINE_TERMINATORS)
_IN_LINE = Chars(charset.NOT_LINE_TERMINATORS)

AT_END = Look(NEVER, ahead=True, negated=False)
"""True nowhere; undecided at the end of the buffer."""

AFTER_END: Node = Look(seq(Repeat(_ANY, 0, None, possessive=True), NEVER), ahead=True, negated=False)
"""True nowhere; undecided everywhere until the text has ended."""

OPAQUE: Node = seq(Start(multiline=False), AFTER_END)
"""The robust variant of what cannot be judged before the end: undecided from the start of the text on."""


def robust(node: Node, measure: Measure) -> Node:
    """The robust variant of a condition's tree."""
    return OPAQUE if _captures_what_may_grow(node, measure) else _robust(node, measure)


def means_the_same(node: Node, streaming: Node) -> bool:
    """Whether a tree and its robust variant match the same: nothing waits for a character to settle it."""
    unsettled = any(isinstance(n, End) or (isinstance(n, Look) and n.ahead and n.negated) for n in walk(node))
    # A word boundary after which nothing certain follows has become a lookahead, like every other wait.
    return not unsettled and _lookaheads(node) == _lookaheads(streaming)


def _lookaheads(node: Node) -> int:
    return sum(isinstance(part, Look) and part.ahead for part in walk(node))


def _captures_what_may_grow(root: Node, measure: Measure) -> bool:
    """A lookaround that captures is atomic: with more text it may capture something else, and keep to it."""
    return any(
        isinstance(part, Look)
        and not part.negated
        and any(isinstance(below, Group) for below in walk(part))
        and (part.ahead or measure.overhang(part.item) != 0)
        for part in walk(root)
    )


def _robust(node: Node, measure: Measure) -> Node:
    match node:
        case WordBoundary():
            return _boundary(node, None, None)
        case End(multiline=multiline):
            return _ahead(_TERMINATOR) if multiline else AT_END
        case Seq(items=items):
            return _sequence(items, measure)
        case Alt(options=options):
            return Alt(tuple(_robust(option, measure) for option in options))
        case Group(item=item):
            return replace(node, item=_robust(item, measure))
        case Repeat(item=item):
            # Of `x.*?(?<!b)c` on "xb" the engine says "no match" instead of "partial": it gives up a lazy
            # loop at the end of the buffer when an assertion fails there. Whether there is a match is not a
            # question of greed.
            return replace(node, item=_robust(item, measure), greedy=True)
        case Look(item=item, ahead=ahead, negated=True):
            return _negated(item, ahead, measure)
        case Look(item=item):
            return replace(node, item=_robust(item, measure))
        case _:
            return node


def _sequence(items: tuple[Node, ...], measure: Measure) -> Node:
    rewritten: list[Node] = []
    for index, item in enumerate(items):
        if isinstance(item, WordBoundary):
            before = measure.last(Seq(items[:index]))
            after = measure.first(Seq(items[index + 1 :]))
            rewritten.append(_boundary(item, before, after))
        else:
            rewritten.append(_robust(item, measure))
    return seq(*rewritten)


def _boundary(node: WordBoundary, before: Ranges | None, after: Ranges | None) -> Node:
    """`\\b` with a real character after it; what is known of the neighbours needs no assertion."""
    left, right = _side(before), _side(after)
    if right is not None:
        return _behind(negated=right != node.negated)
    if left is not None:
        return _ahead(_NOT_WORD if left != node.negated else _WORD)
    word_follows, other_follows = _ahead(_WORD), _ahead(_NOT_WORD)
    if node.negated:
        word_follows, other_follows = other_follows, word_follows
    return Alt((seq(_behind(negated=False), other_follows), seq(_behind(negated=True), word_follows)))


def _side(ranges: Ranges | None) -> bool | None:
    """True if only word characters can stand there, False if none can, None if unknown."""
    if not ranges:
        return None
    if charset.is_subset(ranges, charset.WORD):
        return True
    return False if charset.is_disjoint(ranges, charset.WORD) else None


def _negated(item: Node, ahead: bool, measure: Measure) -> Node:
    if ahead:
        return _ahead(excluding(item, measure, lambda rest: _awaited(rest, True, measure)))
    return _awaited(item, False, measure)


def _awaited(item: Node, ahead: bool, measure: Measure) -> Node:
    """A negative lookaround that holds once there is enough text to know."""
    node = Look(_lazily(_robust(item, measure)), ahead, negated=True)
    reach = measure.reach(item) if ahead else measure.overhang(item)
    return node if reach == 0 else seq(node, _settled(reach, measure.reads_terminators(item)))


def _lazily(node: Node) -> Node:
    """The content of a negative lookaround with lazy loops.

    At the end of the buffer the engine takes the content for unmatched, even where another way through it
    would match: a greedy `.*` would get there first and keep `(?!.*bar)` undecided after "bar".
    """
    match node:
        case Repeat(item=item, possessive=possessive):
            return replace(node, item=_lazily(item), greedy=possessive)
        case Group(item=item) | Look(item=item):
            return replace(node, item=_lazily(item))
        case Seq(items=items):
            return Seq(tuple(_lazily(item) for item in items))
        case Alt(options=options):
            return Alt(tuple(_lazily(option) for option in options))
        case _:
            return node


def _settled(reach: int | None, crosses_lines: bool) -> Node:
    """Enough text to the right that a verdict of this reach, in this line or beyond it, is final."""
    if reach is not None and reach > MAX_AWAITED:
        reach = None
    if crosses_lines:
        return AFTER_END if reach is None else _ahead(Repeat(_ANY, reach, reach))
    if reach is None:
        return _ahead(seq(Repeat(_IN_LINE, 0, None, possessive=True), _TERMINATOR))
    short = seq(Repeat(_IN_LINE, 0, reach - 1, possessive=True), _TERMINATOR) if reach > 1 else _TERMINATOR
    return _ahead(Alt((Repeat(_IN_LINE, reach, reach), short)))


def _ahead(item: Node) -> Node:
    return EMPTY if item == EMPTY else Look(item, ahead=True, negated=False)


def _behind(*, negated: bool) -> Node:
    return Look(_WORD, ahead=False, negated=negated)
