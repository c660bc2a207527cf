"""Sorts rules into the three buckets and says of each where it is and why (reference, "Split into").

Nothing is left out: a rule that is not active is listed with the reason.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.rules.discovery import Discovery, FoundRule, Problem
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.rules.providers import BUILTIN_DEFAULTS

Bucket: TypeAlias = Literal["ttsr", "always-apply", "rulebook"]
State: TypeAlias = Literal["active", "inactive"]

NO_BUCKET = "no description, alwaysApply or condition"

_LISTED_FIELDS = {
    "description": "description",
    "alwaysApply": "always_apply",
    "condition": "condition",
    "astCondition": "ast_condition",
    "question": "question",
    "globs": "globs",
    "globsKey": "globs_key",
    "scope": "scope",
    "interruptMode": "interrupt_mode",
    "repeatMode": "repeat_mode",
    "repeatGap": "repeat_gap",
    "contextMode": "context_mode",
    "maxInterrupts": "max_interrupts",
    "onExhausted": "on_exhausted",
    "observe": "observe",
    "agents": "agents",
    "warnings": "warnings",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One rule of the inventory. `bucket` is None for a rule that is not active.

    `reason` says why it is inactive, or why it is not in the bucket that it was written for.
    """

    rule: Rule
    provider: str
    bucket: Bucket | None
    state: State
    reason: str | None

    def to_dict(self) -> JsonObject:
        """The entry as JSON: every key always there, None where the author gave nothing."""
        result: JsonObject = {
            "name": self.rule.name,
            "path": self.rule.path,
            "provider": self.provider,
            "bucket": self.bucket,
            "state": self.state,
            "reason": self.reason,
        }
        for key, field in _LISTED_FIELDS.items():
            value = getattr(self.rule, field)
            result[key] = list(value) if isinstance(value, tuple) else value
        return result


@dataclass(frozen=True, slots=True)
class Inventory:
    """Every rule with its state, in order of precedence."""

    entries: tuple[Entry, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def ttsr(self) -> tuple[Rule, ...]:
        """The rules that watch the stream."""
        return self._bucket("ttsr")

    @property
    def always_apply(self) -> tuple[Rule, ...]:
        """The rules whose content is part of the prompt."""
        return self._bucket("always-apply")

    @property
    def rulebook(self) -> tuple[Rule, ...]:
        """The rules that the prompt lists, to be read on demand."""
        return self._bucket("rulebook")

    @property
    def addressable(self) -> tuple[Rule, ...]:
        """The rules that `rule://` finds, in the order in which their names are listed."""
        return self.rulebook + self.always_apply + self.ttsr

    def _bucket(self, bucket: Bucket) -> tuple[Rule, ...]:
        return tuple(entry.rule for entry in self.entries if entry.bucket == bucket)


def bucket_rules(
    discovery: Discovery,
    *,
    enabled: bool,
    disabled_rules: Sequence[str],
    builtin_rules: bool,
    register: Callable[[Sequence[Rule]], Mapping[str, str]],
    disabled_in: str = "ttsr.disabledRules",
) -> Inventory:
    """Assign every discovered rule to its bucket.

    `register` gets the rules with a stream trigger, in order, and answers with the name and reason of those
    that it does not accept; they fall through to the other buckets. It is not called when matching is not
    `enabled`. `disabled_in` is the place to name for `disabled_rules`.
    """
    dropped = [_dropped(found, disabled_rules, builtin_rules, disabled_in) for found in discovery.found]
    active = [found.rule for found, reason in zip(discovery.found, dropped, strict=True) if reason is None]
    triggers = [rule for rule in active if rule.condition or rule.ast_condition or rule.question]
    if enabled:
        refused = dict(register(triggers))
    else:
        refused = {rule.name: "stream matching is off (ttsr.enabled is false)" for rule in triggers}
    accepted = {rule.name for rule in triggers} - refused.keys()
    entries = tuple(
        Entry(found.rule, found.provider, None, "inactive", reason)
        if reason is not None
        else _assign(found, accepted, refused)
        for found, reason in zip(discovery.found, dropped, strict=True)
    )
    names = {found.rule.name for found in discovery.found}
    return Inventory(entries, (*discovery.problems, *_unknown(disabled_rules, names, disabled_in)))


def _dropped(
    found: FoundRule, disabled_rules: Sequence[str], builtin_rules: bool, disabled_in: str
) -> str | None:
    """Why a rule takes no part, or None. Precedence comes first: a winner that is off still has its name."""
    winner = found.shadowed_by
    if winner is not None and found.is_same_file:
        return f"same file as {winner.rule.path} ({winner.provider})"
    if winner is not None:
        return f"shadowed by {winner.rule.path or winner.rule.name} ({winner.provider})"
    if not found.rule.enabled:
        return f"disabled in its file ({found.rule.disabled_by or 'enabled: false'})"
    if found.rule.name in disabled_rules:
        return f"disabled in {disabled_in}"
    if found.provider == BUILTIN_DEFAULTS and not builtin_rules:
        return "shipped rules are off (ttsr.builtinRules is false)"
    return None


def _assign(found: FoundRule, accepted: set[str], refused: Mapping[str, str]) -> Entry:
    rule = found.rule
    bucket: Bucket | None = None
    if rule.name in accepted:
        bucket = "ttsr"
    elif found.provider == BUILTIN_DEFAULTS and rule.name in refused:
        pass  # Nobody asked for a shipped rule in the prompt.
    elif rule.always_apply is True:
        bucket = "always-apply"
    elif rule.description:
        bucket = "rulebook"
    reason = refused.get(rule.name, None if bucket else NO_BUCKET)
    return Entry(rule, found.provider, bucket, "active" if bucket else "inactive", reason)


def _unknown(disabled_rules: Sequence[str], names: set[str], disabled_in: str) -> list[Problem]:
    problems: list[Problem] = []
    for name in disabled_rules:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            problems.append(Problem(disabled_in, f"there is no rule named {name!r}{hint}"))
    return problems
