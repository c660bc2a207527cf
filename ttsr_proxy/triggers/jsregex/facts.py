"""Facts about a condition that let the matcher search less text, or tell it what holding would cost."""

from __future__ import annotations

from ttsr_proxy.triggers.jsregex import charset
from ttsr_proxy.triggers.jsregex.charset import Ranges
from ttsr_proxy.triggers.jsregex.measure import Measure, walk
from ttsr_proxy.triggers.jsregex.nodes import (
    NEVER,
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
)

# What any page of prose or code soon contains. A loop over all of it does not end by itself.
_EVERYWHERE = charset.of("etaoinshrdlu \n.,")
# A single character of a set with all of these, or with the blank, narrows no start down.
_LETTERS = charset.of("etaoi")
_BLANK = charset.of(" ")


def line_bound(node: Node, measure: Measure) -> bool:
    """No match includes or looks at a line terminator other than as the edge of its line."""
    if measure.reads_terminators(node):
        return False
    return not any(isinstance(part, (Start, End)) and not part.multiline for part in walk(node))


def needs_end(streaming: Node) -> bool:
    """The robust variant waits for the end of the text somewhere."""
    return any(isinstance(part, Look) and NEVER in walk(part) for part in walk(streaming))


def open_ended(node: Node) -> bool:
    """A match could start nearly anywhere and stay open without bound.

    `foo[\\s\\S]*bar` needs a start; `[^;]*;` and `^(?![\\s\\S]*License)` do not, or have one in every block.
    """
    return _flow(node, True, False)[0]


def _flow(node: Node, loose: bool, awaited: bool) -> tuple[bool, bool]:
    """Whether an endless loop is reached without a start, and whether the node's end is.

    `loose`: the node itself is reached without a start. `awaited`: something must still match after it.
    """
    match node:
        case Chars(ranges=ranges):
            return False, loose and _is_common(ranges)
        case Seq(items=items):
            found = False
            for index, item in enumerate(items):
                own, loose = _flow(item, loose, awaited or _demands(Seq(items[index + 1 :])))
                found = found or own
            return found, loose
        case Alt(options=options):
            flows = [_flow(option, loose, awaited) for option in options]
            return any(own for own, _ in flows), any(after for _, after in flows)
        case Repeat(item=item, low=low, high=high):
            found, after = _flow(item, loose, awaited)
            endless = high is None and awaited and loose and _can_be_everything(item)
            return found or endless, after if low else loose
        case Group(item=item):
            return _flow(item, loose, awaited)
        case Look(item=item, ahead=ahead, negated=negated):
            found, after = _flow(item, loose, False)
            return found and ahead, loose if negated else after
        case _:
            return False, loose


def _is_common(ranges: Ranges) -> bool:
    return charset.is_subset(_BLANK, ranges) or charset.is_subset(_LETTERS, ranges)


def _can_be_everything(node: Node) -> bool:
    """Some way through the node reads one of nearly any characters, so that a loop over it goes on."""
    match node:
        case Chars(ranges=ranges):
            return charset.is_subset(_EVERYWHERE, ranges)
        case Seq(items=items):
            reading = [item for item in items if _demands_text(item)]
            return all(_can_be_everything(item) for item in reading) and any(
                _can_be_everything(item) for item in items
            )
        case Alt(options=options):
            return any(_can_be_everything(option) for option in options) or charset.is_subset(
                _EVERYWHERE, charset.union(*(o.ranges for o in options if isinstance(o, Chars)))
            )
        case Repeat(item=item) | Group(item=item):
            return _can_be_everything(item)
        case _:
            return False


def _demands_text(node: Node) -> bool:
    return not isinstance(node, (Look, Backref)) and _demands(node) and _reads(node)


def _reads(node: Node) -> bool:
    return any(isinstance(part, Chars) for part in walk(node))


def _demands(node: Node) -> bool:
    """The node does not match everywhere."""
    match node:
        case Seq(items=items):
            return any(_demands(item) for item in items)
        case Alt(options=options):
            return all(_demands(option) for option in options)
        case Repeat(item=item, low=low):
            return low > 0 and _demands(item)
        case Group(item=item):
            return _demands(item)
        case _:
            return True
