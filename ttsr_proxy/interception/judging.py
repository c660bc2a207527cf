"""What the matches of a block lead to: an interrupt, the end of the response, a reminder, or a log entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ttsr_proxy.interception.attempt import Noticed
from ttsr_proxy.interception.blocks import BlockMatch, WatchedBlock
from ttsr_proxy.interception.budgets import Budget
from ttsr_proxy.interception.echo import Exemptions
from ttsr_proxy.interception.permission import Permission


@dataclass(frozen=True, slots=True)
class Judgement:
    """`blocking` outweighs `interrupting`; `noticed` stands besides either."""

    broken: frozenset[str] = frozenset()
    """All rules that were broken."""
    noticed: tuple[Noticed, ...] = ()
    interrupting: tuple[BlockMatch, ...] = ()
    """The matches that came first, character by character, of rules that may interrupt."""
    blocking: BlockMatch | None = None
    """A match of a rule that would rather have no answer than one that breaks it."""


class Judge:
    """Asks of each match whether it only repeats a reminder, and what its rule may do."""

    def __init__(self, permission: Permission, budget: Budget, exempt: Exemptions) -> None:
        self._permission = permission
        self._budget = budget
        self._exempt = exempt

    def reminded(self, reminder: str) -> None:
        """The model is shown one more reminder, which it may repeat."""
        self._exempt.add(reminder)

    def judge(
        self, found: Sequence[BlockMatch], block: WatchedBlock, now: float, *, complete: bool
    ) -> Judgement:
        """`complete`: no more text of the block follows."""
        violations = self.violations(found, block, complete=complete)
        noticed: list[Noticed] = []
        interrupting: list[BlockMatch] = []
        blocking = None
        for one in violations:
            if interrupting and not together(one, interrupting[0]):
                break
            verdict = self._permission.judge(one.match.rule, one.context.source)
            if verdict.decision == "interrupt":
                interrupting.append(one)
            elif verdict.decision == "exhausted" and self._budget.on_exhausted(one.match.rule) == "block":
                blocking = one
                break
            else:
                noticed.append(Noticed(one, block, verdict.decision, verdict.detail, now))
        broken = frozenset(one.match.rule.name for one in violations)
        return Judgement(broken, tuple(noticed), tuple(interrupting), blocking)

    def violations(
        self, found: Sequence[BlockMatch], block: WatchedBlock, *, complete: bool
    ) -> list[BlockMatch]:
        """The matches that do not only repeat a reminder, in the order of their ends."""
        violations: list[BlockMatch] = []
        work = [*block.waiting, *found]
        block.waiting = []
        while work:
            one = work.pop(0)
            if one.context.source == "tool":
                violations.append(one)
                continue
            answer, line_end = self._exempt.judge(one.match, block.view_text(one.view), complete=complete)
            if answer == "wait":
                block.waiting.append(one)
            elif answer == "yes":
                work.extend(block.exempt(one, line_end))
            else:
                violations.append(one)
        return sorted(violations, key=lambda one: (one.view, one.match.end, one.match.start))


def together(one: BlockMatch, first: BlockMatch) -> bool:
    """Whether both interrupt: what matched first, character by character; later text would never come."""
    return one.view == first.view and one.match.end == first.match.end
