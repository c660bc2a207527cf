"""The linter of rule files: what is wrong with a rule, where, and what to do about it.

Each family of checks is a module; adding a check is adding a function to `_CHECKS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from ttsr_proxy.config import TtsrSettings
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.triggers.compiled import RuleRejected, compile_rule
from ttsr_proxy.triggers.lint.finding import Finding, Level, Subject
from ttsr_proxy.triggers.lint.patterns import check_breadth, check_cost, check_usable
from ttsr_proxy.triggers.lint.question import check_question
from ttsr_proxy.triggers.lint.reach import check_globs, check_modes, check_scope
from ttsr_proxy.triggers.lint.reading import check_reading
from ttsr_proxy.triggers.lint.words import check_action, check_own_words, check_text

__all__ = ["Finding", "Level", "lint_rule"]

_CHECKS: tuple[Callable[[Subject], Iterator[Finding]], ...] = (
    check_reading,
    check_usable,
    check_scope,
    check_globs,
    check_modes,
    check_question,
    check_breadth,
    check_cost,
    check_action,
    check_own_words,
    check_text,
)


def lint_rule(
    rule: Rule,
    lines: Mapping[str, int],
    ttsr: TtsrSettings,
    tools: Iterable[str] = (),
) -> tuple[Finding, ...]:
    """Everything that the checks find in one rule, by line. Takes up to some seconds for a slow condition.

    `lines` says on which line each key stands; `tools` are the names and kinds of known tools.
    """
    try:
        # A rule that is switched off is to be sound too.
        compiled = compile_rule(replace(rule, enabled=True))
    except RuleRejected:
        compiled = None  # The checks say why.
    known = frozenset(name.strip().lower() for name in tools)
    subject = Subject(rule, compiled, lines, ttsr, known)
    found = [finding for check in _CHECKS for finding in check(subject)]
    return tuple(sorted(found, key=lambda finding: finding.line or 0))
