"""One rule, ready to be matched: its conditions compiled, its scope and globs parsed."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ttsr_proxy.rules.model import Rule
from ttsr_proxy.triggers.ast import LANGUAGES, AstPatternError, check_pattern, usable
from ttsr_proxy.triggers.globs import Glob, GlobError, PathNames, compile_glob
from ttsr_proxy.triggers.jsregex import CompiledCondition, PatternError, compile_condition
from ttsr_proxy.triggers.match import Source
from ttsr_proxy.triggers.scope import Scope, parse_scope

_EXTENSION = re.compile(r"[.{,](\w+)(?=[},)]|$)")


class RuleRejected(ValueError):
    """Why a rule cannot be matched against a stream, in words for its author."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One `condition` of a rule: as its author wrote it, and compiled."""

    pattern: str
    compiled: CompiledCondition


@dataclass(frozen=True, slots=True, eq=False)
class CompiledRule:
    """A rule with at least one usable condition, or a question, and a scope that reaches some stream."""

    rule: Rule
    scope: Scope
    globs: tuple[Glob, ...]
    """Path gate for every source; empty when the rule has none."""
    conditions: tuple[Condition, ...]
    ast_patterns: tuple[str, ...]
    warnings: tuple[str, ...]

    def reaches(self, source: Source, tool: str | None, kind: str | None) -> bool:
        """Whether a block of this source and tool could match for some paths and text.

        Prose has no paths, so a rule with globs does not reach it; ast patterns speak of tool calls only.
        """
        if source != "tool" and (self.globs or (self.ast_patterns and not self.conditions)):
            return False
        return self.scope.reaches(source, tool, kind)

    def admits(self, source: Source, tool: str | None, kind: str | None, paths: Sequence[PathNames]) -> bool:
        """Whether scope and globs let a block with exactly these paths be matched."""
        if self.globs and not any(path.match(glob) for glob in self.globs for path in paths):
            return False
        return self.scope.matches(source, tool, kind, paths)


def compile_rule(rule: Rule) -> CompiledRule:
    """Compile one rule. Parts that cannot be used are left out with a warning.

    Raises RuleRejected when the rule is disabled, has no usable condition, or watches no stream. A rule with
    a question needs no condition.
    """
    if not rule.enabled:
        raise RuleRejected("disabled in its frontmatter (enabled: false)")
    has_conditions = bool(rule.condition or rule.ast_condition)
    if not has_conditions and rule.question is None:
        raise RuleRejected("has no condition and no astCondition")
    scope, warnings = parse_scope(rule.scope)
    conditions, condition_faults, notes = _compile_conditions(rule.condition or ())
    ast_patterns, ast_faults, ast_notes = _check_ast(rule.ast_condition or (), _languages(rule))
    faults = (*condition_faults, *ast_faults)
    if has_conditions and not conditions and not ast_patterns:
        raise RuleRejected("; ".join(faults))
    if not scope.reachable:
        raise RuleRejected("; ".join(("scope reaches no stream", *warnings)))
    globs, glob_faults = _compile_globs(rule.globs or ())
    return CompiledRule(
        rule, scope, globs, conditions, ast_patterns, (*faults, *warnings, *glob_faults, *notes, *ast_notes)
    )


def _compile_conditions(patterns: Sequence[str]) -> tuple[tuple[Condition, ...], list[str], list[str]]:
    conditions: list[Condition] = []
    faults: list[str] = []
    notes: list[str] = []
    for number, pattern in enumerate(patterns, 1):
        try:
            compiled = compile_condition(pattern)
        except PatternError as error:
            faults.append(f"condition {number} does not compile: {error}")
            continue
        conditions.append(Condition(pattern, compiled))
        notes += [f"condition {number}: {warning}" for warning in compiled.warnings]
    return tuple(conditions), faults, notes


def _languages(rule: Rule) -> frozenset[str]:
    """The languages of the file extensions that a rule's globs and scope name; all if they name none."""
    named = {
        LANGUAGES[extension]
        for text in (*(rule.globs or ()), *(rule.scope or ()))
        for extension in _EXTENSION.findall(text.lower())
        if extension in LANGUAGES
    }
    return frozenset(named or LANGUAGES.values())


def _check_ast(
    patterns: Sequence[str], languages: Collection[str]
) -> tuple[tuple[str, ...], list[str], list[str]]:
    kept: list[str] = []
    faults: list[str] = []
    notes: list[str] = []
    for number, pattern in enumerate(patterns, 1):
        try:
            trimmed = check_pattern(pattern)
        except AstPatternError as error:
            faults.append(f"astCondition {number} is not used: {error}")
            continue
        kept.append(trimmed)
        if not any(usable(language, trimmed) for language in languages):
            notes.append(
                f"astCondition {number} never matches: it is not one piece of code in any language of the"
                " rule's files"
            )
    return tuple(kept), faults, notes


def _compile_globs(texts: Sequence[str]) -> tuple[tuple[Glob, ...], list[str]]:
    globs: list[Glob] = []
    faults: list[str] = []
    for text in texts:
        if not (trimmed := text.strip()):
            continue
        try:
            globs.append(compile_glob(trimmed))
        except GlobError as error:
            faults.append(f"glob {trimmed[:60]!r} matches nothing: {error}")
            globs.append(_NO_PATH)
    return tuple(globs), faults


_NO_PATH = compile_glob("@()/")
"""Stands for a glob that cannot be used: leaving it out would widen the rule to every path."""
