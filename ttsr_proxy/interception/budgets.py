"""How often a response and its conversation may still be interrupted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ttsr_proxy.config import BudgetSettings
from ttsr_proxy.modes import OnExhausted
from ttsr_proxy.rules.model import Rule


class Budget:
    """Counts interrupts of one response against three limits: per rule, per response, per conversation.

    `inherited` are the counts of an unfinished exchange that this one retries.
    """

    def __init__(
        self,
        settings: BudgetSettings,
        spent_before: int = 0,
        inherited: Mapping[str, int] | None = None,
        inherited_total: int = 0,
    ) -> None:
        self._settings = settings
        self._spent_before = spent_before
        self._per_rule: Counter[str] = Counter(inherited or {})
        self.total = inherited_total
        self._last: frozenset[str] | None = None

    def allows(self, rule: Rule) -> bool:
        """Whether this rule may interrupt now."""
        limit = rule.interrupt_budget(self._settings.per_rule)
        return self.times(rule.name) < limit and not self.response_spent

    @property
    def untouched(self) -> bool:
        """Every rule without a budget of its own may still interrupt, as often as its budget says."""
        return not (self.total or self.per_rule or self.response_spent) and self._settings.per_rule > 0

    @property
    def response_spent(self) -> bool:
        """No rule may interrupt this response any more."""
        total = self._spent_before + self.total
        return self.total >= self._settings.per_response or total >= self._settings.per_conversation

    def charge(self, names: frozenset[str]) -> None:
        """One interrupt by these rules."""
        self._per_rule.update(names)
        self.total += 1
        self._last = names

    def refund(self) -> None:
        """The retry of the last interrupt failed: it does not count. Without one, nothing happens."""
        if self._last is not None:
            self._per_rule.subtract(self._last)
            self.total -= 1
            self._last = None

    def times(self, rule: str) -> int:
        """How often the rule interrupted this response."""
        return self._per_rule.get(rule, 0)

    @property
    def per_rule(self) -> dict[str, int]:
        return {name: count for name, count in self._per_rule.items() if count > 0}

    def on_exhausted(self, rule: Rule) -> OnExhausted:
        return rule.on_exhausted or self._settings.on_exhausted
