"""The rules of a project, with their states, and those that watch the stream, compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ttsr_proxy.config import ProjectSettings, TtsrSettings
from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.rules.buckets import Entry, Inventory, bucket_rules
from ttsr_proxy.rules.discovery import Discovery
from ttsr_proxy.rules.display import display_path
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.rules.providers import RuleDirectories
from ttsr_proxy.rules.watch import RuleSource
from ttsr_proxy.triggers.match import Source
from ttsr_proxy.triggers.rulebook import Rulebook
from ttsr_proxy.triggers.ruleset import NEEDS_JUDGE, RuleSet

Effect: TypeAlias = Literal["interrupts", "reminds", "would interrupt", "would remind"]
"""What comes of a match. What a rule `would` do is only logged: it is observed."""


@dataclass(frozen=True, slots=True)
class ProjectRules:
    """Every rule with its state, those that watch the stream, compiled, and those for prompts."""

    project: ProjectSettings
    inventory: Inventory
    ruleset: RuleSet
    rulebook: Rulebook
    judged: RuleSet
    """The rules with a question; empty without a judge."""
    no_judge: str | None
    """Why nobody can be asked, so that rules with a question are off."""

    def shown_path(self, rule: Rule) -> str:
        """The rule's file as people know it: relative to the project or to home, never absolute."""
        return display_path(rule.path, self.project.path, self.project.home)

    def to_dict(self, entry: Entry) -> JsonObject:
        """The entry as JSON, with the modes and the budget that hold for it."""
        warnings = [*entry.rule.warnings, *self.warnings(entry)]
        return {
            **entry.to_dict(),
            "warnings": warnings,
            "effective": self.effective(entry),
        }

    def effective(self, entry: Entry) -> JsonObject:
        """What holds for a rule in this project; see the function of this name."""
        return effective(entry.rule, self.project.ttsr)

    def effect(self, rule: Rule, source: Source) -> Effect:
        """What a match of the rule in this source brings about, as long as its budget lasts."""
        observed = self.project.ttsr.observe or rule.observe
        if self.ruleset.interrupts(rule, source):
            return "would interrupt" if observed else "interrupts"
        return "would remind" if observed else "reminds"

    def warnings(self, entry: Entry) -> Sequence[str]:
        """What compiling the rule had to say."""
        ruleset = self.ruleset if entry.rule.question is None else self.judged
        return ruleset.warnings.get(entry.rule.name, ()) if entry.bucket == "ttsr" else ()


class ProjectCatalog:
    """The rules of one project, read again when something on disk has changed.

    `no_judge` says why nobody can be asked, so that judged rules are off; None if there is a judge.
    """

    def __init__(self, project: ProjectSettings, no_judge: str | None) -> None:
        self._project = project
        self._no_judge = no_judge
        self._source = RuleSource(
            RuleDirectories(project.path, project.home, project.rules, project.extensions)
        )
        self._discovery: Discovery | None = None
        self._rules: ProjectRules | None = None

    def current(self, extra: Sequence[tuple[str, Rule]] = ()) -> ProjectRules:
        """Today's rules as one snapshot: the same object as long as nothing has changed.

        `extra` adds rules that are no files, each with its provider's name.
        """
        discovery = self._source.current(extra)
        if self._rules is None or discovery is not self._discovery:
            self._rules = _compile(self._project, discovery, self._no_judge)
            self._discovery = discovery
        return self._rules


def project_rules(
    project: ProjectSettings, no_judge: str | None, extra: Sequence[tuple[str, Rule]] = ()
) -> ProjectRules:
    """Find, sort and compile a project's rules and `extra` ones that are no files; see `ProjectCatalog`.

    Problems are part of the inventory, never raised.
    """
    return ProjectCatalog(project, no_judge).current(extra)


def _compile(project: ProjectSettings, discovery: Discovery, no_judge: str | None) -> ProjectRules:
    ttsr = project.ttsr
    root = str(project.path)
    ruleset = RuleSet((), ttsr.interrupt_mode, root)
    judged = RuleSet((), ttsr.interrupt_mode, root, judged=True)

    def register(rules: Sequence[Rule]) -> Mapping[str, str]:
        nonlocal ruleset, judged
        asking = [rule for rule in rules if rule.question is not None]
        ruleset = RuleSet([rule for rule in rules if rule.question is None], ttsr.interrupt_mode, root)
        if no_judge is not None:
            return {**ruleset.rejected, **{rule.name: f"{NEEDS_JUDGE}; {no_judge}" for rule in asking}}
        judged = RuleSet(asking, ttsr.interrupt_mode, root, judged=True)
        return {**ruleset.rejected, **judged.rejected}

    inventory = bucket_rules(
        discovery,
        enabled=ttsr.enabled,
        disabled_rules=ttsr.disabled_rules,
        builtin_rules=ttsr.builtin_rules,
        register=register,
    )
    return ProjectRules(project, inventory, ruleset, Rulebook(inventory), judged, no_judge)


def effective(rule: Rule, ttsr: TtsrSettings) -> JsonObject:
    """The rule's own scope, modes and budget where it has them, else what holds without them.

    `overrides` names the keys for which the rule sets something else than the configuration. Prose has no
    paths, so that a rule with globs watches tool calls only, and so does one with ast patterns alone.
    A judged rule never interrupts.
    """
    budget = ttsr.budget
    configured: JsonObject = {
        "interruptMode": ttsr.interrupt_mode,
        "contextMode": ttsr.context_mode,
        "repeatMode": ttsr.repeat_mode,
        "repeatGap": ttsr.repeat_gap,
        "maxInterrupts": budget.per_rule,
        "onExhausted": budget.on_exhausted,
        "observe": ttsr.observe,
    }
    own: JsonObject = {
        "interruptMode": rule.interrupt_mode if rule.question is None else "never",
        "contextMode": rule.context_mode,
        "repeatMode": rule.repeat_mode,
        "repeatGap": rule.repeat_gap,
        "maxInterrupts": rule.interrupt_budget(budget.per_rule),
        "onExhausted": rule.on_exhausted,
        "observe": ttsr.observe or rule.observe,
    }
    holds = {key: value if own[key] is None else own[key] for key, value in configured.items()}
    scope = list(rule.scope or _DEFAULT_SCOPE)
    if rule.globs or (rule.ast_condition and not rule.condition):
        scope = [token for token in scope if token.strip().lower() not in ("text", "thinking")]
    return {
        "scope": scope,
        "globs": list(rule.globs or ()),
        **holds,
        "overrides": [key for key, value in holds.items() if value != configured[key]],
    }


_DEFAULT_SCOPE = ("text", "tool")
