"""The text that an agent reads: how to apply rules, and the complete rules.

The head and the text for no rules are part of the API's contract, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ttsr_proxy.library.model import LibraryRule, Snapshot

_HEAD: Final = """\
# Applicable OpenViking Rules

These Rules are behavioral constraints.

Application protocol:
1. Evaluate every Rule independently against concrete facts from the current task.
2. Check the applicability boundary and exception before applying a Rule. An empty
   applies_when means the Rule applies in every situation except its exception.
   For a non-empty applies_when, topic similarity alone does not establish applicability.
3. Do not infer facts that are absent.
4. Before acting or answering, validate the planned action or answer against every
   returned Rule. Returned Rules are mandatory when their applicability conditions hold.

Matched {count} active Rule(s)."""
_NOTHING: Final = "No active compiled Rule met the current retrieval thresholds."
_FENCE = re.compile(r"`{3,}")


@dataclass(frozen=True, slots=True)
class Match:
    """A rule that the agent is given."""

    rule: LibraryRule
    probability: float


def render(library: Snapshot, matches: Sequence[Match]) -> str:
    """The rules in the order given."""
    head = _HEAD.format(count=len(matches))
    if not matches:
        return f"{head}\n\n{_NOTHING}"
    blocks = [_block(library, match, number, len(matches)) for number, match in enumerate(matches, 1)]
    return "\n\n".join((head, *blocks))


def _block(library: Snapshot, match: Match, number: int, count: int) -> str:
    rule = match.rule
    # Longer than any fence in the rule, so that nothing in it can end the block.
    fence = "`" * (max((len(found[0]) for found in _FENCE.finditer(rule.content)), default=2) + 1)
    return (
        f"## Rule {number} of {count}: {rule.atomic_id} (revision {rule.revision})\n"
        f"Scenario: {rule.scenario_id} | Probability: {match.probability:.2f} | URI: {library.uri(rule)}\n\n"
        f"{fence}markdown\n{rule.content.rstrip()}\n{fence}"
    )
