"""The repeat policy: whether a rule that has already been reminded of may fire again.

It is about turns, judged on the chain of records that a request descends from (reference settings
`repeatMode` and `repeatGap`). Within one response the budgets decide instead.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ttsr_proxy.config import TtsrSettings
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.sessions.record import ResponseRecord


def responses_since(rule: str, chain: Sequence[ResponseRecord]) -> int | None:
    """How many responses ended since the rule's last reminder was placed; None if there was none."""
    for count, record in enumerate(reversed(chain), start=1):
        if rule in record.reminded:
            return count
    return None


def since_reminders(chain: Sequence[ResponseRecord], reminding: Collection[str]) -> dict[str, int]:
    """For each rule how many responses ago the model was reminded of it; those in `reminding` with this
    very request, which is zero."""
    reminded = {name for record in chain for name in record.reminded}
    since = {name: responses_since(name, chain) for name in reminded}
    known = {name: count for name, count in since.items() if count is not None}
    return {**known, **dict.fromkeys(reminding, 0)}


def may_fire(rule: Rule, since: int | None, settings: TtsrSettings) -> bool:
    """Whether the rule may fire, `since` responses after its last reminder (None: never reminded)."""
    mode = rule.repeat_mode or settings.repeat_mode
    if since is None or mode == "always":
        return True
    if mode == "once":
        return False
    gap = settings.repeat_gap if rule.repeat_gap is None else rule.repeat_gap
    return since >= gap
