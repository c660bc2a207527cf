"""The exchange's entries in the interrupt log, from the match to what came of it."""

from __future__ import annotations

from collections.abc import Sequence

from ttsr_proxy.interception.actions import Log, UpdateLog
from ttsr_proxy.interception.attempt import Attempt
from ttsr_proxy.interception.blocks import BlockMatch, WatchedBlock
from ttsr_proxy.interception.setup import Setup
from ttsr_proxy.interrupts.record import Action, InterruptRecord, Outcome

CONTEXT_CHARS = 160
MATCHED_CHARS = 2_000
VIOLATION_CHARS = 20_000


class Journal:
    """`exchange` is the id of this exchange; open interrupts are settled when their retry is known."""

    def __init__(self, setup: Setup, exchange: str, conversation: str, turn: int) -> None:
        self._setup = setup
        self._exchange = exchange
        self._conversation = conversation
        self._turn = turn
        self._open: dict[str, tuple[str, float]] = {}
        """Interrupts of this response whose outcome is open: log id to rule and time of the abort."""
        self.upstream_requests: list[str] = []

    def entry(
        self,
        found: BlockMatch,
        block: WatchedBlock,
        attempt: Attempt,
        now: float,
        *,
        action: Action,
        outcome: Outcome,
        detail: str = "",
        late: bool = False,
        injected: str = "",
        held_chars: int = 0,
        tokens_wasted: int = 0,
    ) -> InterruptRecord:
        """A log record of one match."""
        setup, match = self._setup, found.match
        requester = setup.requester
        start, end = match.start, match.end
        return InterruptRecord(
            id=setup.new_id(),
            time=now + setup.wall_offset,
            project=requester.project,
            conversation=self._conversation,
            request=self._exchange,
            turn=self._turn,
            attempt=attempt.number,
            client=requester.client,
            agent=requester.agent,
            model=attempt.model or setup.request.model,
            protocol=setup.protocol.name,
            rule=match.rule.name,
            rule_path=setup.rule_path(match.rule),
            trigger=match.trigger,
            pattern=match.pattern,
            source=found.context.source,
            tool=found.context.tool,
            paths=found.context.paths,
            matched=found.text[start:end][:MATCHED_CHARS],
            before=found.text[max(0, start - CONTEXT_CHARS) : start],
            after=found.text[end : end + CONTEXT_CHARS],
            violation=block.text[:VIOLATION_CHARS],
            action=action,
            late=late,
            outcome=outcome,
            detail=detail,
            held_chars=held_chars,
            tokens_wasted=tokens_wasted,
            tokens_estimated=True,
            injected=injected,
            upstream_requests=tuple(self.upstream_requests),
        )

    def opened(self, record: InterruptRecord, now: float) -> None:
        """The record's outcome will be known when its retry is."""
        self._open[record.id] = (record.rule, now)

    def violated_again(self, rules: Sequence[str]) -> list[UpdateLog]:
        """These rules were broken once more in a retry."""
        again = [log_id for log_id, (rule, _) in self._open.items() if rule in rules]
        updates = []
        for log_id in again:
            del self._open[log_id]
            updates.append(UpdateLog(log_id, {"outcome": "violated again"}))
        return updates

    def retried(self, now: float) -> list[UpdateLog]:
        """The retry's first content arrived: the time that the interrupts cost is known."""
        return [
            UpdateLog(log_id, {"seconds_added": round(now - since, 3)})
            for log_id, (_, since) in self._open.items()
        ]

    def settled(self, outcome: Outcome, *, correction: str = "", detail: str = "") -> list[UpdateLog]:
        """What came of all interrupts that are still open."""
        changes: dict[str, object] = {"outcome": outcome, "upstream_requests": tuple(self.upstream_requests)}
        if correction:
            changes["correction"] = correction[:VIOLATION_CHARS]
        if detail:
            changes["detail"] = detail
        updates = [UpdateLog(log_id, changes) for log_id in self._open]
        self._open.clear()
        return updates


def log(records: Sequence[InterruptRecord]) -> list[Log]:
    """The action that logs these records, if there are any."""
    return [Log(tuple(records))] if records else []
