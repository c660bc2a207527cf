"""An interrupt: abort the attempt, keep what the client has, and make one of three moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ttsr_proxy.interception.actions import AbortAttempt, Action, Log
from ttsr_proxy.interception.attempt import Attempt
from ttsr_proxy.interception.blocks import BlockMatch, WatchedBlock
from ttsr_proxy.interception.endings import Endings
from ttsr_proxy.interception.journal import log
from ttsr_proxy.interception.judging import Judge
from ttsr_proxy.interception.moves import (
    Move,
    estimate_tokens,
    fate,
    keeps,
    next_move,
    open_place,
    split_attempt,
)
from ttsr_proxy.interception.progress import Progress
from ttsr_proxy.interception.reminders import Violation, interrupt
from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.sessions.record import PendingReminder


class Interrupter:
    """Remembers which violations the reminder at the open place names."""

    def __init__(self, progress: Progress, judge: Judge, endings: Endings) -> None:
        self._progress = progress
        self._judge = judge
        self._endings = endings
        self._named: dict[str, Violation] = {}

    def interrupt(
        self, found: Sequence[BlockMatch], block: WatchedBlock, attempt: Attempt, now: float
    ) -> Iterator[Action]:
        """The matches are the first of their attempt, all with the same end."""
        progress = self._progress
        client = progress.client
        rules = frozenset(one.match.rule.name for one in found)
        at = min(one.start for one in found)
        yield AbortAttempt()
        attempt.over = True
        if attempt.whole_body is None:
            yield from progress.send(_cut(attempt, block, at, now) + client.break_off(), now)
        shown = len(client.given_text(block.client_index)) if block.begun and block.kind != "tool" else 0
        if not progress.interrupted:
            progress.interrupted, progress.last_content = True, now
        progress.budget.charge(rules)
        move: Move = "restart" if attempt.whole_body is not None else next_move(client)
        violations = [self._violation(one, block, move, late=shown > one.start) for one in found]
        yield from progress.journal.violated_again(tuple(rules))
        delivered = (client.text_delivered or client.tool_delivered) and attempt.whole_body is None
        progress.findings.give_up(
            attempt,
            lambda one: (
                delivered and one.block.begun and (one.block is not block or one.found.match.end <= at)
            ),
            "discarded by another rule's interrupt",
        )
        yield from progress.findings.log(attempt)
        reminder = interrupt(violations)
        if move != "truncate":
            reminder = self._ask_again(found, violations, block, attempt)
        records = self._records(found, violations, block, attempt, move, reminder, shown, now)
        if move == "truncate":
            progress.findings.reminders += [
                PendingReminder(record.rule, interrupt([violation]), record.id)
                for record, violation in zip(records, violations, strict=True)
            ]
            yield from log(records)
            yield from self._endings.truncated(attempt, now)
            return
        for record in records:
            progress.journal.opened(record, now)
        yield from log(records)
        yield progress.next_attempt()

    def block(self, one: BlockMatch, block: WatchedBlock, attempt: Attempt, now: float) -> Iterator[Action]:
        """The budget is spent and the rule says: better no answer than this one."""
        attempt.over = True
        attempt.delivery.drop()
        entry = self._progress.journal.entry(
            one, block, attempt, now, action="blocked", outcome="undelivered"
        )
        yield AbortAttempt()
        yield Log((entry,))
        yield from self._endings.blocked(one.match.rule.name, now)

    def _ask_again(
        self,
        found: Sequence[BlockMatch],
        violations: Sequence[Violation],
        block: WatchedBlock,
        attempt: Attempt,
    ) -> str:
        """Put what was delivered and the reminder into the draft: the reminder's text."""
        progress = self._progress
        setup, draft = progress.setup, progress.draft
        delivered, kept = split_attempt(
            setup.protocol,
            progress.client,
            attempt,
            block,
            keep=keeps(found, setup.settings),
            replaces=draft.place is not None,
        )
        if delivered:
            self._named = {}
        self._named.update({one.rule.name: one for one in violations})
        place = open_place(setup.protocol, attempt, block, tuple(self._named.values()), kept)
        if delivered:
            draft.advance(delivered, place)
        else:
            draft.replace_place(place)
        self._judge.reminded(place.reminder)
        return place.reminder

    def _violation(self, one: BlockMatch, block: WatchedBlock, move: Move, *, late: bool) -> Violation:
        rule, context = one.match.rule, one.context
        return Violation(
            rule=rule,
            rule_path=self._progress.setup.rule_path(rule),
            fate=fate(block, move),
            source=context.source,
            tool=context.tool,
            paths=context.paths,
            late=late,
            times=self._progress.budget.times(rule.name),
        )

    def _records(
        self,
        found: Sequence[BlockMatch],
        violations: Sequence[Violation],
        block: WatchedBlock,
        attempt: Attempt,
        move: Move,
        injected: str,
        shown: int,
        now: float,
    ) -> list[InterruptRecord]:
        """The log's records. The tokens of the aborted attempt stand in the first."""
        started = attempt.usage.input_tokens if attempt.usage else None
        wasted = (started or 0) + estimate_tokens(attempt.received_chars)
        return [
            self._progress.journal.entry(
                one,
                block,
                attempt,
                now,
                action="truncated" if move == "truncate" else "interrupted",
                outcome="pending",
                late=violation.late,
                injected=injected,
                held_chars=block.received - shown,
                tokens_wasted=0 if number else wasted,
            )
            for number, (one, violation) in enumerate(zip(found, violations, strict=True))
        ]


def _cut(attempt: Attempt, block: WatchedBlock, at: int, now: float) -> bytes:
    if block.kind != "tool":
        attempt.reopen(block)
        return attempt.delivery.cut(block, at, now)
    data = attempt.delivery.release(now)
    attempt.delivery.drop()
    return data
