"""From a condition's text to a compiled condition."""

from __future__ import annotations

from functools import lru_cache

import regex

from ttsr_proxy.triggers.jsregex import facts, python
from ttsr_proxy.triggers.jsregex.backrefs import resolve
from ttsr_proxy.triggers.jsregex.condition import CompiledCondition
from ttsr_proxy.triggers.jsregex.emit import MAX_SIZE, TOO_LARGE, compile_node
from ttsr_proxy.triggers.jsregex.errors import PatternError
from ttsr_proxy.triggers.jsregex.linear import is_linear
from ttsr_proxy.triggers.jsregex.literals import find_literals
from ttsr_proxy.triggers.jsregex.measure import Measure
from ttsr_proxy.triggers.jsregex.parser import MAX_LENGTH, Parsed, parse
from ttsr_proxy.triggers.jsregex.robust import OPAQUE, means_the_same, robust

NOT_PORTABLE = "not portable: this is a Python regular expression, JavaScript does not accept it ({error})"
"""The warning for a condition that only Python understands."""


@lru_cache(maxsize=8_192)
def compile_condition(pattern: str) -> CompiledCondition:
    """Compile one condition; raises PatternError, and nothing else, for one that cannot be.

    Results are kept, since an edit of one rule file compiles all rules again.
    """
    try:
        return _compile(pattern)
    except RecursionError:
        raise PatternError("pattern nested too deeply", 0) from None
    except (regex.error, OverflowError, MemoryError) as error:
        raise PatternError(f"the engine refuses the pattern: {error}", 0) from error


def _compile(pattern: str) -> CompiledCondition:
    try:
        return _from_tree(pattern, parse(pattern), ())
    except PatternError as error:
        if len(pattern) > MAX_LENGTH or not python.is_python(pattern):
            raise
        return _from_python(pattern, NOT_PORTABLE.format(error=error))


def _from_python(pattern: str, warning: str) -> CompiledCondition:
    spelling = python.respelled(pattern)
    if spelling is not None:
        try:
            return _from_tree(pattern, parse(spelling), (warning,))
        except PatternError:
            pass  # More than its spelling is Python's, so the engine takes it as it stands.
    engine_pattern = python.for_engine(pattern)
    if python.size(engine_pattern) > MAX_SIZE:
        raise PatternError(TOO_LARGE, 0)
    return CompiledCondition(
        source=pattern,
        warnings=(warning,),
        portable=False,
        final=regex.compile(engine_pattern, regex.V0),
        streaming=compile_node(OPAQUE),
    )


def _from_tree(pattern: str, parsed: Parsed, warnings: tuple[str, ...]) -> CompiledCondition:
    node = resolve(parsed.node, parsed.names)
    measure = Measure(node)
    streaming = robust(node, measure)
    final = compile_node(node)
    literals, case_insensitive = find_literals(node)
    return CompiledCondition(
        source=pattern,
        warnings=warnings,
        portable=not warnings,
        final=final,
        streaming=final if streaming == node else compile_node(streaming),
        line_bound=facts.line_bound(node, measure),
        needs_end=facts.needs_end(streaming),
        monotone=means_the_same(node, streaming),
        max_lookbehind=measure.lookbehind(node),
        open_ended=streaming == OPAQUE or facts.open_ended(node),
        literals=literals,
        case_insensitive=case_insensitive,
        min_length=measure.min_length(node),
        max_length=measure.max_length(node),
        linear=is_linear(node, measure),
    )
