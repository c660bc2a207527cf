"""The plan that a model writes: its shape, and the JSON Schema that the model is held to.

Flat on purpose, every field there and nullable where it may be absent: both OpenAI's strict mode and
Anthropic's structured output accept that subset. What a schema cannot say is checked in `validation`.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.modes import InterruptMode

Verb: TypeAlias = Literal[
    "NEW", "UPDATE", "REPLACE", "NOOP", "UNCERTAIN", "REJECT", "PAUSE", "RESTORE", "ARCHIVE"
]

WRITING: tuple[Verb, ...] = ("NEW", "UPDATE", "REPLACE")
"""Operations that carry a rule's text."""

MAX_OPERATIONS = 200
"""Operations of one batch."""


class PlannedScenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The situation that a new rule is for."""

    scenario_id: str
    title: str
    summary: str


class PlannedRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule's text."""

    slug: str
    title: str
    constraint: str
    applies_when: str
    exception: str


class Evidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the input says it."""

    block: str
    quote: str


class PlannedTrigger(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pattern, and texts that it must and must not match."""

    kind: Literal["condition", "astCondition"]
    pattern: str
    scope: list[str]
    positive_examples: list[str]
    negative_examples: list[str]


class PlannedOperation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One operation."""

    operation: Verb
    target_atomic_id: str | None
    scenario: PlannedScenario | None
    rule: PlannedRule | None
    evidence: list[Evidence]
    authorization_quote: str | None
    reason: str
    triggers: list[PlannedTrigger]
    interrupt_mode: InterruptMode | None


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be done with one batch."""

    plan_reason: str
    operations: list[PlannedOperation]


class PlanError(ValueError):
    """Text that is no plan, in words for the model."""


def read_plan(text: str) -> Plan:
    """The plan in a model's answer; a fence or prose around the JSON is passed over. Raises PlanError."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        raise PlanError("the answer holds no JSON object")
    try:
        plan = msgspec.json.decode(text[start : end + 1], type=Plan)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise PlanError(f"the answer is no plan: {error}") from error
    if len(plan.operations) > MAX_OPERATIONS:
        raise PlanError(f"the plan has more than {MAX_OPERATIONS} operations")
    return plan


def plan_schema() -> JsonObject:
    """The JSON Schema of a plan."""
    _, components = msgspec.json.schema_components([Plan], ref_template="#/$defs/{name}")
    definitions: dict[str, Any] = {name: _plain(schema) for name, schema in components.items()}
    return {**definitions.pop("Plan"), "$defs": definitions}


def _plain(schema: Any) -> Any:
    """A schema without the docstrings and names of our classes. Properties keep theirs."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    typed = {"type": "string"} if "enum" in schema else {}
    return typed | {
        key: {name: _plain(part) for name, part in value.items()} if key == "properties" else _plain(value)
        for key, value in schema.items()
        if key not in ("description", "title")
    }
