"""Every place where the rules match a complete text, for people who read files rather than streams.

A stream needs each rule's first match only. Here each condition is searched to the end of the text, with the
same gates before it and the same verdict: a rule has a place here if and only if it fires on the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ttsr_proxy.triggers.ast import MAX_SOURCE, every_hit, language_of, may_match
from ttsr_proxy.triggers.compiled import CompiledRule, Condition
from ttsr_proxy.triggers.gate import lower
from ttsr_proxy.triggers.globs import path_names
from ttsr_proxy.triggers.match import Match, StreamContext
from ttsr_proxy.triggers.ruleset import RuleSet

SEARCH_SECONDS = 2.0
"""Limit for one condition in one text. A live stream gives it less."""

MOST_PLACES = 1_000
"""Places of one condition in one text that are told."""


@dataclass(frozen=True, slots=True)
class Occurrences:
    """The matches by start, then rule order, and what was left out of the search and why."""

    matches: tuple[Match, ...]
    not_inspected: tuple[str, ...] = ()


def occurrences(ruleset: RuleSet, text: str, context: StreamContext) -> Occurrences:
    """Search a complete text for every place of every rule that applies to it."""
    rules = _Rules(ruleset, context)
    places: list[tuple[int, int, Match]] = []
    skipped: list[str] = []
    lowered: str | None = None
    patterns: list[tuple[int, CompiledRule, str]] = []
    for order, compiled in enumerate(ruleset.compiled):
        for condition in compiled.conditions:
            if condition.compiled.case_insensitive and lowered is None:
                lowered = lower(text)
            if not _is_possible(condition, text, lowered or "") or not rules.admit(order, compiled):
                continue
            try:
                places += ((match.start, order, match) for match in _places(compiled, condition, text))
            except TimeoutError:
                skipped.append(
                    f"{compiled.rule.name}: condition {condition.pattern!r} ran over {SEARCH_SECONDS:g} s"
                )
        if rules.language is not None:
            patterns += (
                (order, compiled, pattern)
                for pattern in compiled.ast_patterns
                if may_match(pattern, text) and rules.admit(order, compiled)
            )
    if patterns and rules.language is not None:
        if len(text) > MAX_SOURCE:
            skipped.append(f"ast conditions: the text is longer than {MAX_SOURCE:,} characters")
        else:
            hits = every_hit(rules.language, text, [pattern for _, _, pattern in patterns])
            for order, compiled, pattern in patterns:
                places += (
                    (start, order, Match(compiled.rule, "ast", pattern, start, end))
                    for start, end in hits.get(pattern, ())[:MOST_PLACES]
                )
    places.sort(key=lambda place: place[:2])
    return Occurrences(tuple(match for _, _, match in places), tuple(skipped))


class _Rules:
    """Which rules admit the context; asked only for rules whose literals are in the text."""

    def __init__(self, ruleset: RuleSet, context: StreamContext) -> None:
        self._context = context
        self._names = [path_names(path, ruleset.project_root) for path in context.paths]
        self._known: dict[int, bool] = {}
        self.language = language_of(context.paths) if context.source == "tool" else None

    def admit(self, order: int, compiled: CompiledRule) -> bool:
        known = self._known.get(order)
        if known is None:
            context = self._context
            known = compiled.admits(context.source, context.tool, context.kind, self._names)
            self._known[order] = known
        return known


def _is_possible(condition: Condition, text: str, lowered: str) -> bool:
    haystack = lowered if condition.compiled.case_insensitive else text
    return all(
        any(literal in haystack for literal in group)
        for group in condition.compiled.literals
        # Lower case and JavaScript's case folding agree on ASCII only.
        if not condition.compiled.case_insensitive or all(literal.isascii() for literal in group)
    )


def _places(compiled: CompiledRule, condition: Condition, text: str) -> Iterator[Match]:
    found = condition.compiled.final.finditer(text, timeout=SEARCH_SECONDS)
    for count, hit in enumerate(found):
        # A condition that matches the empty text matches everywhere: its first place says it all.
        if count == MOST_PLACES or (count and hit.start() == hit.end()):
            return
        yield Match(compiled.rule, "regex", condition.pattern, hit.start(), hit.end())


def without_overlaps(matches: Sequence[Match]) -> tuple[Match, ...]:
    """The matches without those that begin inside an earlier match of the same rule."""
    ends: dict[str, int] = {}
    kept: list[Match] = []
    for match in matches:
        if match.start >= ends.get(match.rule.name, 0):
            kept.append(match)
            ends[match.rule.name] = max(match.end, match.start + 1)
    return tuple(kept)
