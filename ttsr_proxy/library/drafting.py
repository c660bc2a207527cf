"""A change to a library while it is put together: operations in, new file contents and a report out.

The nine operations of the reference ("The Compiler generates mutations"). What an operation may not do here
becomes UNCERTAIN with the reason, never an error: one wrong line must not cost the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from ttsr_proxy.library.errors import Exhausted
from ttsr_proxy.library.model import LibraryRule, Origin, Scenario, Snapshot, Triggers
from ttsr_proxy.library.slugs import MAX_SLUG
from ttsr_proxy.library.storage.rule_file import write_rule
from ttsr_proxy.library.storage.scenario_card import write_card
from ttsr_proxy.library.storage.user_library import STATE, Changes
from ttsr_proxy.library.uris import CARD

MAX_RULES = 5_000
"""Active and paused rules of one user."""

Operation: TypeAlias = dict[str, Any]
"""One entry of a compile result's `operations`."""

StatusChange: TypeAlias = Literal["PAUSE", "RESTORE"]


@dataclass(frozen=True, slots=True)
class RuleText:
    """What a rule says, without its identity."""

    title: str
    constraint: str
    applies_when: str = ""
    exception: str = ""
    triggers: Triggers = field(default_factory=Triggers)
    question: str | None = None
    origin: Origin = field(default_factory=Origin)
    warnings: tuple[str, ...] = ()


class Draft:
    """Operations on a snapshot, in order; each sees what those before it did."""

    def __init__(self, base: Snapshot, now: str, compiler: str) -> None:
        self._base = base
        self._now = now
        self._compiler = compiler
        self._rules = dict(base.rules)
        self._scenarios = dict(base.scenarios)
        self._files: dict[str, str | None] = {}
        self._touched: dict[str, None] = {}
        self._written: dict[str, None] = {}
        self._taken = set(base.archived)
        self.operations: list[Operation] = []

    @property
    def rules(self) -> dict[str, LibraryRule]:
        """Active and paused rules as the operations so far leave them."""
        return self._rules

    def new(self, slug: str, text: RuleText, scenario: Scenario) -> LibraryRule:
        """NEW: an active rule under a new id, in an existing or a new scenario."""
        rule = self._create(slug, text, scenario)
        self._report("NEW", rule, triggers=text.triggers.kinds, warnings=list(text.warnings))
        return rule

    def update(self, atomic_id: str, text: RuleText) -> None:
        """UPDATE: the next revision of a rule, which keeps its identity, its scenario and its status.

        A text without triggers keeps the rule's: enforcement must not end unnoticed.
        """
        old = self._rules[atomic_id]
        warnings = list(text.warnings)
        if old.triggers and not text.triggers:
            warnings.append(f"the trigger of revision {old.revision} is kept; check that it still fits")
        self._keep_history(old)
        rule = replace(
            old,
            revision=old.revision + 1,
            title=text.title,
            constraint=text.constraint,
            applies_when=text.applies_when,
            exception=text.exception,
            triggers=text.triggers or old.triggers,
            question=text.question or old.question,
            origin=text.origin,
            compiler=self._compiler,
            updated_at=self._now,
        )
        self._store(rule)
        self._report(
            "UPDATE",
            rule,
            previous_revision=old.revision,
            triggers=rule.triggers.kinds,
            warnings=warnings,
        )

    def replace(self, atomic_id: str, slug: str, text: RuleText, scenario: Scenario | None = None) -> None:
        """REPLACE: a new rule under a new id; the old one is archived."""
        old = self._rules[atomic_id]
        rule = self._create(slug, text, scenario or self._scenarios[old.scenario_id], avoid=atomic_id)
        self._put_away(old, f"replaced by {rule.atomic_id}")
        replaced = {"atomic_id": old.atomic_id, "revision": old.revision, "status": "archived"}
        self._report(
            "REPLACE", rule, replaced=replaced, triggers=text.triggers.kinds, warnings=list(text.warnings)
        )

    def set_status(self, operation: StatusChange, atomic_id: str) -> None:
        """PAUSE an active rule or RESTORE a paused one; archived rules are out of reach."""
        rule = self._rules.get(atomic_id)
        if rule is None:
            self.uncertain(self._unknown(atomic_id), atomic_id=atomic_id)
            return
        status: Literal["active", "paused"] = "paused" if operation == "PAUSE" else "active"
        if rule.status == status:
            self.noop(atomic_id, f"the rule is {status} already")
            return
        changed = replace(rule, status=status, updated_at=self._now)
        self._store(changed)
        self._report(operation, changed, previous_status=rule.status, status=status)

    def archive(self, atomic_id: str, reason: str) -> None:
        """ARCHIVE: the rule leaves the library for good; its file is kept."""
        rule = self._rules.get(atomic_id)
        if rule is None:
            self.uncertain(self._unknown(atomic_id), atomic_id=atomic_id)
            return
        self._put_away(rule, reason)
        self._report("ARCHIVE", rule, previous_status=rule.status, status="archived")

    def noop(self, atomic_id: str, reason: str) -> None:
        """NOOP: the rule covers the input already."""
        rule = self._rules[atomic_id]
        uri = self._base.uri(rule)
        self.operations.append({"operation": "NOOP", "atomic_id": atomic_id, "uri": uri, "reason": reason})

    def uncertain(self, reason: str, **details: Any) -> None:
        """UNCERTAIN: nothing is written, since it is not clear what is meant."""
        self.operations.append({"operation": "UNCERTAIN", "reason": reason, **details})

    def reject(self, reason: str, **details: Any) -> None:
        """REJECT: nothing is written, since this is no rule."""
        self.operations.append({"operation": "REJECT", "reason": reason, **details})

    def changes(self) -> Changes:
        """The files to write, the cards of touched scenarios included."""
        files = dict(self._files)
        for scenario_id in self._touched:
            rules = [rule for rule in self._rules.values() if rule.scenario_id == scenario_id]
            card = f"{scenario_id}/{CARD}"
            files[card] = (
                write_card(self._scenarios[scenario_id], sorted(rules, key=lambda rule: rule.atomic_id))
                if rules
                else None
            )
        return Changes(files)

    @property
    def written_uris(self) -> list[str]:
        """URIs of the rules and cards that are written, cards first."""
        cards = [
            self._base.card(scenario_id)
            for scenario_id in self._touched
            if any(rule.scenario_id == scenario_id for rule in self._rules.values())
        ]
        return [*cards, *(self._base.uri(self._rules[name]) for name in self._written if name in self._rules)]

    def counts(self) -> dict[str, int]:
        """How many rules were created, updated (their status included) and archived."""
        names = [operation["operation"] for operation in self.operations]
        return {
            "created": names.count("NEW") + names.count("REPLACE"),
            "updated": sum(names.count(name) for name in ("UPDATE", "PAUSE", "RESTORE")),
            "archived": names.count("ARCHIVE") + names.count("REPLACE"),
        }

    def _create(self, slug: str, text: RuleText, scenario: Scenario, avoid: str = "") -> LibraryRule:
        if len(self._rules) >= MAX_RULES:
            raise Exhausted(f"the library is full: a user may have {MAX_RULES:,} rules")
        scenario = self._scenarios.setdefault(scenario.scenario_id, scenario)
        atomic_id = self._free_id(slug, avoid)
        rule = LibraryRule(
            atomic_id=atomic_id,
            scenario_id=scenario.scenario_id,
            constraint=text.constraint,
            title=text.title,
            applies_when=text.applies_when,
            exception=text.exception,
            triggers=text.triggers,
            question=text.question,
            created_at=self._now,
            updated_at=self._now,
            origin=text.origin,
            compiler=self._compiler,
        )
        self._store(rule)
        return rule

    def _free_id(self, slug: str, avoid: str) -> str:
        # `abstract` is the card's file name.
        taken = {*self._taken, *self._rules, avoid, CARD.removesuffix(".md")}
        number, candidate = 1, slug
        while candidate in taken:
            number += 1
            candidate = f"{slug[: MAX_SLUG - len(str(number)) - 1]}-{number}"
        return candidate

    def _store(self, rule: LibraryRule) -> None:
        text = write_rule(rule)
        self._rules[rule.atomic_id] = replace(rule, content=text)
        self._written[rule.atomic_id] = None
        self._touch(rule, text)

    def _touch(self, rule: LibraryRule, text: str | None) -> None:
        self._files[f"{rule.scenario_id}/{rule.file_name}"] = text
        self._touched[rule.scenario_id] = None

    def _keep_history(self, rule: LibraryRule) -> None:
        name = f"{STATE}/history/{rule.atomic_id}/{rule.revision:04}.md"
        self._files[name] = rule.content

    def _put_away(self, rule: LibraryRule, reason: str) -> None:
        del self._rules[rule.atomic_id]
        self._taken.add(rule.atomic_id)
        away = replace(
            rule,
            status="archived",
            extra={**rule.extra, "archived_at": self._now, "archived_because": reason},
        )
        self._files[f"{STATE}/archive/{rule.atomic_id}@{rule.revision:04}.md"] = write_rule(away)
        self._touch(rule, None)

    def _report(self, operation: str, rule: LibraryRule, **details: Any) -> None:
        self.operations.append(
            {
                "operation": operation,
                "atomic_id": rule.atomic_id,
                "scenario_id": rule.scenario_id,
                "revision": rule.revision,
                "uri": self._base.uri(rule),
                **details,
            }
        )

    def _unknown(self, atomic_id: str) -> str:
        if atomic_id in self._taken:
            return f"rule {atomic_id} is archived; archived rules cannot be brought back"
        return f"there is no rule {atomic_id}"
