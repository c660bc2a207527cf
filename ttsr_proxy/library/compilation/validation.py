"""What is wrong with a plan, beyond its shape.

Faults go back to the model. Some cannot be repaired into existence: an operation without the user's
authority becomes UNCERTAIN, whatever the model says about it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ttsr_proxy.library.compilation.blocks import Block
from ttsr_proxy.library.compilation.plan import WRITING, Plan, PlannedOperation, PlannedRule
from ttsr_proxy.library.compilation.statements import normalised
from ttsr_proxy.library.model import LibraryRule

MAX_TITLE = 120
MAX_CONSTRAINT = 2_000
MAX_CONDITION = 1_000
"""Characters of applies_when and of exception."""

AUTHORISED = ("PAUSE", "RESTORE", "ARCHIVE", "REPLACE")
"""Operations that the instruction must ask for."""

_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_MAX_SLUG = 64
_STATUSES = {
    "UPDATE": ("active", "paused"),
    "REPLACE": ("active", "paused"),
    "NOOP": ("active",),
    "PAUSE": ("active",),
    "RESTORE": ("paused",),
    "ARCHIVE": ("active", "paused"),
}
"""The statuses that each operation's target may have."""

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_SECRETS = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{16,}|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{20,}|xox[abprs]-[A-Za-z0-9-]{10,})"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a plan is checked against."""

    instruction: str
    """Empty where the plan may not act on it."""
    blocks: Mapping[str, Block]
    rules: Mapping[str, LibraryRule]


def hard_faults(plan: Plan, inputs: Inputs) -> list[str]:
    """Faults with which a plan cannot be carried out at all."""
    targets = Counter(
        operation.target_atomic_id
        for operation in plan.operations
        if operation.target_atomic_id is not None
        and operation.operation not in ("UNCERTAIN", "REJECT", "NOOP")
    )
    faults = [f"rule {target} is the target of several operations" for target, n in targets.items() if n > 1]
    for number, operation in enumerate(plan.operations):
        faults += (
            f"operation {number} ({operation.operation}): {fault}" for fault in _hard(operation, inputs)
        )
    return faults


def evidence_faults(operation: PlannedOperation, inputs: Inputs) -> list[str]:
    """What is wrong with an operation's evidence: every quote must stand in its block."""
    if operation.operation not in WRITING:
        return []
    if not operation.evidence:
        return ["evidence is missing"]
    faults = []
    for evidence in operation.evidence:
        block = inputs.blocks.get(evidence.block)
        if block is None:
            faults.append(f"there is no block {evidence.block!r}")
        elif not evidence.quote.strip() or not _holds(block.text, evidence.quote):
            faults.append(f"the quote {evidence.quote[:80]!r} is not in block {evidence.block}")
    return faults


def is_authorised(operation: PlannedOperation, inputs: Inputs) -> bool:
    """Whether the instruction asks for an operation that needs it to, and names the rule."""
    if operation.operation not in AUTHORISED:
        return True
    quote = operation.authorization_quote
    rule = inputs.rules.get(operation.target_atomic_id or "")
    if not quote or not quote.strip() or rule is None or not _holds(inputs.instruction, quote):
        return False
    return _names(quote, rule)


def _names(quote: str, rule: LibraryRule) -> bool:
    words = normalised(quote)
    if normalised(rule.atomic_id) in words or normalised(rule.title) in words:
        return True
    named = set(normalised(rule.title).split()) or set(normalised(rule.constraint).split())
    return len(named & set(words.split())) / len(named) >= 0.6


def _holds(text: str, quote: str) -> bool:
    return " ".join(quote.split()).casefold() in " ".join(text.split()).casefold()


def _hard(operation: PlannedOperation, inputs: Inputs) -> Iterator[str]:
    verb = operation.operation
    statuses = _STATUSES.get(verb)
    # What nobody authorised becomes UNCERTAIN: its target is not looked at.
    if statuses is not None and is_authorised(operation, inputs):
        target = inputs.rules.get(operation.target_atomic_id or "")
        if target is None:
            yield f"there is no rule {operation.target_atomic_id!r}; use an id of existing_rules"
        elif target.status not in statuses:
            yield f"rule {target.atomic_id} is {target.status}; it must be {' or '.join(statuses)}"
    if verb in WRITING:
        if operation.rule is None:
            yield "rule is missing"
        else:
            yield from _rule(operation.rule)
    if verb == "NEW" or (verb == "REPLACE" and operation.scenario is not None):
        yield from _scenario(operation)


def _scenario(operation: PlannedOperation) -> Iterator[str]:
    scenario = operation.scenario
    if scenario is None:
        yield "scenario is missing"
        return
    if not _is_slug(scenario.scenario_id):
        yield f"scenario_id {scenario.scenario_id[:80]!r} must be lower-case words joined by '-'"
    yield from _texts((("scenario title", scenario.title, MAX_TITLE, True),))
    yield from _texts((("scenario summary", scenario.summary, MAX_CONDITION, False),))


def _rule(rule: PlannedRule) -> Iterator[str]:
    if not _is_slug(rule.slug):
        yield f"slug {rule.slug[:80]!r} must be lower-case words joined by '-', at most {_MAX_SLUG} letters"
    yield from _texts(
        (
            ("title", rule.title, MAX_TITLE, True),
            ("constraint", rule.constraint, MAX_CONSTRAINT, True),
            ("applies_when", rule.applies_when, MAX_CONDITION, False),
            ("exception", rule.exception, MAX_CONDITION, False),
        )
    )


def _texts(fields: Sequence[tuple[str, str, int, bool]]) -> Iterator[str]:
    for name, text, longest, required in fields:
        if required and not text.strip():
            yield f"{name} must not be empty"
        if len(text) > longest:
            yield f"{name} is longer than {longest:,} characters"
        if _CONTROLS.search(text):
            yield f"{name} holds control characters"
        if _SECRETS.search(text):
            yield f"{name} holds what looks like a secret; leave the secret out"


def _is_slug(text: str) -> bool:
    return len(text) <= _MAX_SLUG and bool(_SLUG.fullmatch(text))
