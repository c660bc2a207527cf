"""The blocks of an attempt under watch, from their opening event to the verdict on their whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ttsr_proxy.interception.actions import Action, CheckAst, Note
from ttsr_proxy.interception.attempt import Attempt
from ttsr_proxy.interception.blocks import BlockMatch, WatchedBlock
from ttsr_proxy.interception.interrupting import Interrupter
from ttsr_proxy.interception.judging import Judge
from ttsr_proxy.interception.progress import Progress
from ttsr_proxy.interception.rule_reads import RuleReads
from ttsr_proxy.protocols.events import BlockDelta, BlockEnded, BlockStarted
from ttsr_proxy.triggers.ast import AstHit

LONGEST_RUN = 64
"""Deltas that are looked at together. If one of them needs a closer look, all of them get it."""


class Watch:
    """Feeds blocks to their matchers, judges what they find and acts on it."""

    def __init__(self, progress: Progress, judge: Judge, interrupter: Interrupter, reads: RuleReads) -> None:
        self._progress = progress
        self._judge = judge
        self._interrupter = interrupter
        self._reads = reads
        self._omission_noted = False

    def begin(self, attempt: Attempt, event: BlockStarted, now: float) -> Iterator[Action]:
        """A block opens, perhaps with its first text."""
        progress = self._progress
        setup = progress.setup
        block = WatchedBlock(
            event,
            progress.permission.reach(event),
            setup.ruleset,
            setup.families,
            setup.requester.project_root,
            whole=setup.request.structured_output and event.kind == "text",
        )
        attempt.add(block)
        if progress.interrupted and not attempt.heard:
            yield from progress.journal.retried(now)
        attempt.heard = True
        found = block.feed(setup.protocol.initial_text(event))
        self._reads.begin(block)
        progress.hold(attempt, event, block, now)
        if found:
            yield from self._judged(attempt, found, block, now)
        if progress.current(attempt):
            attempt.delivery.judged(block)

    def grow(self, attempt: Attempt, event: BlockDelta, now: float) -> Iterator[Action]:
        """More of a block."""
        block = attempt.blocks.get(event.index)
        found = block.feed(event.text) if block is not None else []
        if block is not None:
            self._reads.grow(block)
        self._progress.hold(attempt, event, block, now)
        if block is None:
            return
        if found or block.waiting:
            yield from self._judged(attempt, found, block, now)
        if self._progress.current(attempt):
            attempt.delivery.judged(block)

    def skim(self, attempt: Attempt, now: float) -> int:
        """Take in the deltas of one block that wait first in the inbox, if none of them needs a look.

        Returns how many have to be looked at one by one instead.
        """
        run = attempt.first_deltas(LONGEST_RUN)
        if len(run) < 2 or attempt.whole_body is not None:
            return len(run)
        block = attempt.blocks.get(run[0].index)
        if block is None:
            return len(run)
        end = block.received
        if not block.skim("".join([event.text for event in run])):
            return len(run)
        push = attempt.delivery.push
        for event in run:
            attempt.inbox.popleft()
            end += len(event.text)
            push(event, block, end, now)
        attempt.delivery.judged(block)
        return 0

    def end(self, attempt: Attempt, event: BlockEnded, now: float) -> Iterator[Action]:
        """The block is complete."""
        block = attempt.blocks.get(event.index)
        if block is not None:
            attempt.complete(block, event.value)
            yield from self._reads.end(block, now)
        self._progress.hold(attempt, event, block, now)
        if block is not None:
            if block.watched and block.kind == "thinking" and not block.text and not self._omission_noted:
                # Newer models send only the signature unless the client asks for more.
                self._omission_noted = True
                yield Note("not_inspected", {"reason": "omitted thinking"})
            yield from self._check_whole(attempt, block, now)

    def cut_off(self, attempt: Attempt, now: float) -> Iterator[Action]:
        """Upstream says no more: what is still open is judged as it is."""
        for block in list(attempt.blocks.values()):
            del attempt.blocks[block.index]
            block.undecided = False
            # A failed retry is ended by the proxy, which can close neither half a call nor a blank text.
            block.abandoned = (
                self._progress.interrupted
                and not block.begun
                and (block.kind == "tool" or block.first_visible is None)
            )
            yield from self._check_whole(attempt, block, now)
            if not self._progress.current(attempt) or self._progress.checking:
                return

    def give_up(self) -> Iterator[Action]:
        """What is withheld until it is complete has waited too long for this client: it goes uninspected."""
        attempt = self._progress.attempt
        for block in list(attempt.blocks.values()) if attempt is not None else ():
            if block.withheld:
                block.unwatch()
                yield Note("not_inspected", {"reason": "held too long", "tool": block.start.tool})

    def ast_checked(self, results: Sequence[tuple[AstHit, ...] | None], now: float) -> Iterator[Action]:
        """The answers of ast-grep on one block; None where a job was not done."""
        progress, attempt = self._progress, self._progress.attempt
        jobs, progress.checking = progress.checking, []
        if not jobs or attempt is None or not progress.current(attempt):
            return
        found: list[BlockMatch] = []
        for (block, view), hits in zip(jobs, results, strict=True):
            if hits is None:
                reason = {"reason": "ast-grep did not answer", "tool": block.start.tool}
                yield Note("not_inspected", reason)
            else:
                found.extend(block.apply_ast(view, hits))
        block = jobs[0][0]
        yield from self._judged(attempt, found, block, now, complete=True)
        block.cleared = not attempt.over

    def _check_whole(self, attempt: Attempt, block: WatchedBlock, now: float) -> Iterator[Action]:
        """The block has no further text: what its whole says."""
        if not block.watched:
            block.cleared = True
            return
        yield from self._judged(attempt, block.close(), block, now, complete=True)
        if not self._progress.current(attempt):
            return
        for rule, pattern in block.muted():
            yield Note("condition_muted", {"rule": rule, "pattern": pattern})
        for reason in block.not_inspected():
            yield Note("not_inspected", {"reason": reason})
        jobs = block.ast_jobs()
        if not jobs:
            block.cleared = True
            return
        self._progress.checking = [(block, view) for view, _ in jobs]
        yield CheckAst(tuple(job for _, job in jobs))

    def _judged(
        self,
        attempt: Attempt,
        found: Sequence[BlockMatch],
        block: WatchedBlock,
        now: float,
        *,
        complete: bool = False,
    ) -> Iterator[Action]:
        progress = self._progress
        judgement = self._judge.judge(found, block, now, complete=complete)
        progress.findings.broken(judgement.broken)
        for noticed in judgement.noticed:
            yield from progress.journal.violated_again((noticed.found.match.rule.name,))
            progress.findings.notice(noticed, attempt)
        if judgement.blocking is not None:
            yield from self._interrupter.block(judgement.blocking, block, attempt, now)
        elif judgement.interrupting:
            yield from self._interrupter.interrupt(judgement.interrupting, block, attempt, now)
