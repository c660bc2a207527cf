"""From a condition's text to a compiled condition."""

from __future__ import annotations

import regex

from ttsr_proxy.triggers.jsregex import facts
from ttsr_proxy.triggers.jsregex.backrefs import resolve
from ttsr_proxy.triggers.jsregex.condition import CompiledCondition
from ttsr_proxy.triggers.jsregex.emit import compile_node
from ttsr_proxy.triggers.jsregex.errors import PatternError
from ttsr_proxy.triggers.jsregex.measure import Measure
from ttsr_proxy.triggers.jsregex.parser import parse
from ttsr_proxy.triggers.jsregex.robust import robust


def compile_condition(pattern: str) -> CompiledCondition:
    """Compile one condition; raises PatternError, and nothing else, for one that cannot be."""
    try:
        return _compile(pattern)
    except RecursionError:
        raise PatternError("pattern nested too deeply", 0) from None
    except (regex.error, OverflowError, MemoryError) as error:
        raise PatternError(f"the engine refuses the pattern: {error}", 0) from error


def _compile(pattern: str) -> CompiledCondition:
    parsed = parse(pattern)
    node = resolve(parsed.node, parsed.names)
    measure = Measure(node)
    streaming = robust(node, measure)
    final = compile_node(node)
    return CompiledCondition(
        source=pattern,
        warnings=(),
        portable=True,
        final=final,
        streaming=final if streaming == node else compile_node(streaming),
        line_bound=facts.line_bound(node, measure),
        needs_end=facts.needs_end(streaming),
        monotone=streaming == node,
        max_lookbehind=measure.lookbehind(node),
        open_ended=facts.open_ended(node, measure),
        literals=(),
        case_insensitive=False,
        nullable=measure.min_length(node) == 0,
        min_length=measure.min_length(node),
        max_length=measure.max_length(node),
        linear=False,
    )
