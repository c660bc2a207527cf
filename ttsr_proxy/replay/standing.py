"""What a conversation has come to, as far as budgets and the repeat policy need to know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ttsr_proxy.config import BudgetSettings
from ttsr_proxy.interception.budgets import Budget


@dataclass(frozen=True, slots=True)
class Standing:
    """At the end of a line. A fork goes on from the standing of the line that it follows."""

    turn: int = -1
    """Responses before this one; -1 before the first."""
    reminded: Mapping[str, int] = field(default_factory=dict)
    """By rule, the turn whose request had its last reminder."""
    spent: int = 0
    """Interrupts in earlier responses."""
    response: str | None = None
    attempt: int = 1
    interrupts: int = 0
    """Interrupts of this response."""
    per_rule: Mapping[str, int] = field(default_factory=dict)
    """The same by rule."""
    noticed: frozenset[str] = frozenset()
    """Rules whose reminders wait for the next request."""
    stopped_by: str | None = None
    """The rule whose interrupt ended this attempt: what follows would not have come."""
    call_delivered: bool = False
    """A tool call of this attempt has reached the client."""

    def at(self, response: str, attempt: int) -> Standing:
        """At the beginning of an output of this response and attempt."""
        if response != self.response:
            return Standing(
                self.turn + 1, self.reminded, self.spent + self.interrupts, response=response, attempt=attempt
            )
        if attempt != self.attempt:
            return replace(self, attempt=attempt, stopped_by=None)
        return self

    @property
    def since(self) -> dict[str, int]:
        """How many responses ago the model was reminded; 0 for a reminder that came with the request.

        What this response has done itself is not in it: within a response the budgets decide.
        """
        return {
            rule: self.turn - turn
            for rule, turn in self.reminded.items()
            if turn <= self.turn and rule not in self.per_rule
        }

    def budget(self, settings: BudgetSettings) -> Budget:
        """What is left of the budgets."""
        return Budget(settings, self.spent, self.per_rule, self.interrupts)

    def interrupted(self, rules: Iterable[str], *, truncated: bool) -> Standing:
        """The rules interrupt; the reminder of a truncated answer travels with the next request."""
        names = sorted(rules)
        turn = self.turn + 1 if truncated else self.turn
        return replace(
            self,
            reminded={**self.reminded, **dict.fromkeys(names, turn)},
            interrupts=self.interrupts + 1,
            per_rule={**self.per_rule, **{name: self.per_rule.get(name, 0) + 1 for name in names}},
            stopped_by=names[0],
        )

    def reminds(self, rule: str) -> Standing:
        """The next request carries a reminder of the rule."""
        reminded = {**self.reminded, rule: self.turn + 1}
        return replace(self, reminded=reminded, noticed=self.noticed | {rule})

    def blocked(self, rule: str) -> Standing:
        """The rule ends the response."""
        return replace(self, stopped_by=rule)

    def delivered_call(self) -> Standing:
        return replace(self, call_delivered=True)
