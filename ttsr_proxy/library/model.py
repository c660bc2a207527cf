"""What the library holds: rules in scenarios, and a user's library at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from ttsr_proxy.library.uris import card_uri, rule_uri, rules_root
from ttsr_proxy.modes import InterruptMode

Status: TypeAlias = Literal["active", "paused", "archived"]

STATUSES: tuple[Status, ...] = ("active", "paused", "archived")


@dataclass(frozen=True, slots=True)
class Triggers:
    """What makes a rule be enforced on the stream. The fields are those of a rule file."""

    condition: tuple[str, ...] = ()
    ast_condition: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()
    interrupt_mode: InterruptMode | None = None

    def __bool__(self) -> bool:
        return bool(self.condition or self.ast_condition)

    @property
    def kinds(self) -> list[str]:
        """The keys under which conditions stand."""
        kinds = {"condition": self.condition, "astCondition": self.ast_condition}
        return [key for key, patterns in kinds.items() if patterns]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a rule came from. `anchor` finds its place again when the same source is compiled later."""

    uri: str = ""
    """The source's URI; empty for an instruction."""
    sha256: str = ""
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class LibraryRule:
    """One compiled rule. Its identity is `atomic_id`, unique in a user's library."""

    atomic_id: str
    scenario_id: str
    constraint: str
    title: str
    revision: int = 1
    status: Status = "active"
    applies_when: str = ""
    """When it holds; empty: always, but for the exception."""
    exception: str = ""
    triggers: Triggers = field(default_factory=Triggers)
    question: str | None = None
    """Asked of a judge about completed output (judged rules)."""
    created_at: str = ""
    updated_at: str = ""
    origin: Origin = field(default_factory=Origin)
    compiler: str = ""
    """Which compiler wrote it: `deterministic`, or a model's name."""
    extra: Mapping[str, object] = field(default_factory=dict)
    """Other keys of the rule's file, added by hand."""
    content: str = ""
    """The rule's file, verbatim; empty for a rule that is not stored yet."""

    @property
    def file_name(self) -> str:
        return f"{self.atomic_id}.md"

    @property
    def search_text(self) -> str:
        """What recall looks at."""
        return f"{self.applies_when} {self.constraint}".strip()


@dataclass(frozen=True, slots=True)
class Scenario:
    """A situation that rules are for."""

    scenario_id: str
    title: str
    summary: str = ""


@dataclass(frozen=True)
class Snapshot:
    """A user's library at one moment. Changes make a new snapshot."""

    user: str
    generation: int = 0
    """Counts the commits."""
    rules: Mapping[str, LibraryRule] = field(default_factory=dict)
    """Active and paused rules by id, in order of scenario and id."""
    scenarios: Mapping[str, Scenario] = field(default_factory=dict)
    archived: frozenset[str] = frozenset()
    """Ids of archived rules, which are never given again."""

    @cached_property
    def active(self) -> tuple[LibraryRule, ...]:
        return tuple(rule for rule in self.rules.values() if rule.status == "active")

    @property
    def root(self) -> str:
        return rules_root(self.user)

    def uri(self, rule: LibraryRule) -> str:
        return rule_uri(self.user, rule.scenario_id, rule.atomic_id)

    def card(self, scenario_id: str) -> str:
        """The URI of the scenario's card."""
        return card_uri(self.user, scenario_id)

    def in_scenario(self, scenario_id: str) -> tuple[LibraryRule, ...]:
        """The scenario's active and paused rules."""
        return tuple(rule for rule in self.rules.values() if rule.scenario_id == scenario_id)
