"""The library's rules as the stream's rules."""

from __future__ import annotations

from dataclasses import replace

from ttsr_proxy.library.model import LibraryRule, Snapshot
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.rules.providers import LIBRARY


def enforced_rules(snapshot: Snapshot) -> tuple[tuple[str, Rule], ...]:
    """The active rules with triggers, or with a question for a judge, as rules of provider `library`."""
    return tuple(
        (LIBRARY, _enforceable(snapshot, rule))
        for rule in snapshot.active
        if rule.triggers or rule.question is not None
    )


def _enforceable(snapshot: Snapshot, rule: LibraryRule) -> Rule:
    """The rule as the stream's rules are; condition and exception are part of what the model is told."""
    read = Rule.from_markdown(rule.file_name, rule.content)
    parts = (
        rule.constraint,
        f"Applies when: {rule.applies_when}" if rule.applies_when else "",
        f"Exception: {rule.exception}" if rule.exception else "",
    )
    return replace(read, path=snapshot.uri(rule), content="\n\n".join(part for part in parts if part))
