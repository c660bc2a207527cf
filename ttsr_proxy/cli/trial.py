"""Trying rules on a text: which fire, where, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.rules.buckets import Entry
from ttsr_proxy.triggers.compiled import compile_rule
from ttsr_proxy.triggers.globs import path_names
from ttsr_proxy.triggers.inventory import ProjectRules
from ttsr_proxy.triggers.match import Match, StreamContext


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one rule says of the text: a match, or the reason why there is none."""

    entry: Entry
    match: Match | None
    reason: str | None
    interrupts: bool


def try_rules(
    rules: ProjectRules, text: str, context: StreamContext, names: Sequence[str]
) -> Iterator[Verdict]:
    """A verdict for each rule, or for each of `names`; those that fire first."""
    matches = {match.rule.name: match for match in rules.ruleset.check(text, context)}
    verdicts = [
        _verdict(rules, entry, matches.get(entry.rule.name), context)
        for entry in rules.inventory.entries
        if not names or entry.rule.name in names
    ]
    yield from sorted(verdicts, key=lambda verdict: verdict.match is None)


def place(text: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset, both from 1."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def to_dict(verdict: Verdict, text: str) -> JsonObject:
    """The verdict as JSON."""
    found: JsonObject | None = None
    if match := verdict.match:
        line, column = place(text, match.start)
        found = {
            "trigger": match.trigger,
            "pattern": match.pattern,
            "start": match.start,
            "end": match.end,
            "line": line,
            "column": column,
            "text": text[match.start : match.end],
        }
    return {
        "name": verdict.entry.rule.name,
        "path": verdict.entry.rule.path,
        "fires": found is not None,
        "interrupts": verdict.interrupts,
        "match": found,
        "reason": verdict.reason,
    }


def _verdict(rules: ProjectRules, entry: Entry, match: Match | None, context: StreamContext) -> Verdict:
    if entry.bucket != "ttsr":
        return Verdict(entry, None, _not_watching(entry), False)
    if match is None:
        return Verdict(entry, None, _why_not(rules, entry, context), False)
    return Verdict(entry, match, None, rules.ruleset.interrupts(entry.rule, context.source))


def _not_watching(entry: Entry) -> str:
    if entry.bucket is None:
        return f"inactive: {entry.reason}"
    reason = f" ({entry.reason})" if entry.reason else ""
    return f"does not watch the stream: it is in the {entry.bucket} bucket{reason}"


def _why_not(rules: ProjectRules, entry: Entry, context: StreamContext) -> str:
    compiled = compile_rule(entry.rule)
    names = [path_names(path, str(rules.project.path)) for path in context.paths]
    at = ", ".join(context.paths) or "no path"
    here = f"tool {context.tool or 'without a name'}" if context.source == "tool" else context.source
    scope = ", ".join(entry.rule.scope or ())
    if not compiled.scope.reaches(context.source, context.tool, context.kind):
        return f"scope: {scope or 'the default'} does not reach {here}"
    if not compiled.scope.matches(context.source, context.tool, context.kind, names):
        return f"scope: no path glob of {scope} matches {at}"
    if context.source != "tool" and not compiled.conditions:
        return "astCondition: it looks at tool calls only"
    if compiled.globs and not any(name.match(glob) for glob in compiled.globs for name in names):
        return f"globs: none of {', '.join(entry.rule.globs or ())} matches {at}"
    return "no condition matches"
