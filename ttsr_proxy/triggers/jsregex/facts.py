"""Facts about a condition that let the matcher do less."""

from __future__ import annotations

from ttsr_proxy.triggers.jsregex.measure import Measure, walk
from ttsr_proxy.triggers.jsregex.nodes import NEVER, End, Look, Node, Start


def line_bound(node: Node, measure: Measure) -> bool:
    """No match includes or looks at a line terminator other than as the edge of its line."""
    if measure.reads_terminators(node):
        return False
    return not any(isinstance(part, (Start, End)) and not part.multiline for part in walk(node))


def needs_end(streaming: Node) -> bool:
    """The robust variant waits for the end of the text somewhere."""
    return NEVER in walk(streaming)


def open_ended(node: Node, measure: Measure) -> bool:
    return any(isinstance(part, Look) and part.negated and measure.reach(part) is None for part in walk(node))
