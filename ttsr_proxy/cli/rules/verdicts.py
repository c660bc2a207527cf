"""Trying rules on a text: which fire, where, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ttsr_proxy.interception.repeat import may_fire
from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.rules.buckets import Entry
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.triggers.ast import language_of, usable
from ttsr_proxy.triggers.compiled import CompiledRule, compile_rule
from ttsr_proxy.triggers.globs import path_names
from ttsr_proxy.triggers.inventory import Effect, ProjectRules
from ttsr_proxy.triggers.match import Match, StreamContext
from ttsr_proxy.triggers.occurrences import occurrences
from ttsr_proxy.triggers.ruleset import NEEDS_JUDGE
from ttsr_proxy.triggers.screening import Screening

_AROUND = 60
"""Characters on either side of a match that are shown of its lines."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The circumstances of a text."""

    context: StreamContext
    agent: str | None = None
    fired: Mapping[str, int] | None = None
    """Rules that have fired before, each with how many answers ago."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one rule says of the text: its matches, or the reason why it does not fire.

    A rule that matches and is kept from firing has both.
    """

    entry: Entry
    matches: tuple[Match, ...]
    reason: str | None
    effect: Effect | None = None
    """What a rule that fires brings about."""

    @property
    def fires(self) -> bool:
        return self.reason is None


def try_rules(rules: ProjectRules, text: str, trial: Trial, names: Sequence[str]) -> Iterator[Verdict]:
    """A verdict for each rule, or for each of `names`; those that fire first."""
    found = occurrences(rules.ruleset, text, trial.context)
    watching = (rules.ruleset, rules.judged)
    for_agent = frozenset(name for ruleset in watching for name in ruleset.for_agent(trial.agent).registered)
    asking = {rule.name for rule in _asking(rules, text, trial.context)}
    by_rule: dict[str, list[Match]] = {}
    for match in found.matches:
        by_rule.setdefault(match.rule.name, []).append(match)
    verdicts = [
        _verdict(
            rules, entry, tuple(by_rule.get(entry.rule.name, ())), trial, for_agent, entry.rule.name in asking
        )
        for entry in rules.inventory.entries
        if not names or entry.rule.name in names
    ]
    yield from sorted(verdicts, key=lambda verdict: not verdict.fires)


def place(text: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset, both from 1."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def surroundings(text: str, match: Match) -> tuple[str, str, str]:
    """What stands before the match in its line, the match, and what stands after it in its line."""
    line_start = text.rfind("\n", 0, match.start) + 1
    line_end = text.find("\n", match.end)
    line_end = len(text) if line_end < 0 else line_end
    return (
        text[max(line_start, match.start - _AROUND) : match.start],
        text[match.start : match.end],
        text[match.end : min(line_end, match.end + _AROUND)],
    )


def to_dict(verdict: Verdict, text: str) -> JsonObject:
    """The verdict as JSON. `match` is the first of `matches`."""
    matches = [_match_to_dict(match, text) for match in verdict.matches]
    return {
        "name": verdict.entry.rule.name,
        "path": verdict.entry.rule.path,
        "fires": verdict.fires,
        "interrupts": verdict.effect == "interrupts",
        "effect": verdict.effect,
        "match": matches[0] if matches else None,
        "matches": matches,
        "reason": verdict.reason,
    }


def _match_to_dict(match: Match, text: str) -> JsonObject:
    line, column = place(text, match.start)
    before, inside, after = surroundings(text, match)
    return {
        "trigger": match.trigger,
        "pattern": match.pattern,
        "start": match.start,
        "end": match.end,
        "line": line,
        "column": column,
        "text": inside,
        "before": before,
        "after": after,
    }


def _asking(rules: ProjectRules, text: str, context: StreamContext) -> list[Rule]:
    """The judged rules whose question would be asked about the text."""
    screening = Screening(rules.judged, text, context)
    hits = screening.ast_check.run() if screening.ast_check is not None else ()
    return [rule for rule, _ in screening.occasions(hits)]


def _verdict(
    rules: ProjectRules,
    entry: Entry,
    matches: tuple[Match, ...],
    trial: Trial,
    for_agent: frozenset[str],
    asks: bool,
) -> Verdict:
    rule = entry.rule
    if entry.bucket != "ttsr":
        return Verdict(entry, (), _not_watching(entry))
    if rule.name not in for_agent:
        agents = ", ".join(rule.agents or ())
        reason = f"agents: it is for {agents}, not for {trial.agent or 'main'}"
        return Verdict(entry, matches, reason)
    if asks:
        return Verdict(entry, (), f"{NEEDS_JUDGE}, and this command asks none: {rule.question}")
    if not matches:
        return Verdict(entry, (), _why_not(rules, entry, trial.context))
    since = (trial.fired or {}).get(rule.name)
    if not may_fire(rule, since, rules.project.ttsr):
        holds = rules.effective(entry)
        mode = holds["repeatMode"]
        gap = f" with repeatGap {holds['repeatGap']}" if mode == "after-gap" else ""
        ago = "in the last answer" if since == 1 else f"{since} answers ago"
        return Verdict(entry, matches, f"repeat: it matches, but fired {ago} (repeatMode {mode}{gap})")
    return Verdict(entry, matches, None, rules.effect(rule, trial.context.source))


def _not_watching(entry: Entry) -> str:
    if entry.bucket is None:
        return f"inactive: {entry.reason}"
    reason = f" ({entry.reason})" if entry.reason else ""
    return f"does not watch the stream: it is in the {entry.bucket} bucket{reason}"


def _why_not(rules: ProjectRules, entry: Entry, context: StreamContext) -> str:
    compiled = compile_rule(entry.rule)
    names = [path_names(path, str(rules.project.path)) for path in context.paths]
    at = ", ".join(context.paths) or "no path"
    if context.paths and all(name.outside for name in names):
        at += " (outside the project, where only absolute globs reach)"
    here = f"tool {context.tool or 'without a name'}" if context.source == "tool" else context.source
    scope = ", ".join(entry.rule.scope or ())
    if not compiled.scope.reaches(context.source, context.tool, context.kind):
        return f"scope: {scope or 'the default (text, tool)'} does not reach {here}"
    if not compiled.scope.matches(context.source, context.tool, context.kind, names):
        return f"scope: no path glob of {scope} matches {at}"
    if context.source != "tool" and compiled.ast_patterns and not compiled.conditions:
        return "astCondition: it looks at tool calls only"
    if compiled.globs and not any(name.match(glob) for glob in compiled.globs for name in names):
        return f"globs: none of {', '.join(entry.rule.globs or ())} matches {at}"
    return _no_match(compiled, context)


def _no_match(compiled: CompiledRule, context: StreamContext) -> str:
    if compiled.ast_patterns:
        language = language_of(context.paths) if context.source == "tool" else None
        at = f"of {', '.join(context.paths)}" if context.paths else "without a path"
        if language is None:
            note = f"; astCondition: no language known for the file name {at}"
        elif not any(usable(language, pattern) for pattern in compiled.ast_patterns):
            note = f"; astCondition: no pattern is one piece of {language} code"
        else:
            note = f"; astCondition: searched as {language}"
    else:
        note = ""
    return f"no condition matches{note}"
