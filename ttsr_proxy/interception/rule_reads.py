"""`rule://<name>`: calls that read a rule are answered by the proxy, and the model goes on.

The client sees nothing of them. An answer that only reads rules is not over: the next attempt continues it
with their results. Where the client has calls of its own to carry out, the results wait in the response's
record and go upstream together with those of the client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ttsr_proxy.interception.actions import Action
from ttsr_proxy.interception.attempt import Attempt
from ttsr_proxy.interception.blocks import RuleAnswer, WatchedBlock
from ttsr_proxy.interception.progress import Progress
from ttsr_proxy.protocols.protocol import WireProtocol
from ttsr_proxy.sessions.record import ShadowBlock
from ttsr_proxy.toolcalls.rule_reads import can_read_rules, may_read_rule, rule_read

MAX_READS = 8
"""Reads in one response that get their rule. Later ones get an error, and then reach the client."""


class RuleReads:
    """Finds the calls that read a rule, and answers them."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._reads = 0
        self._refused = False
        """The model was told that it has read enough."""

    def begin(self, block: WatchedBlock) -> None:
        """A block opens, perhaps with arguments."""
        # A call that has no id cannot be answered.
        block.undecided = (
            bool(block.kind == "tool" and block.start.call_id)
            and self._active
            and can_read_rules(self._kinds(block))
        )
        self.grow(block)

    def grow(self, block: WatchedBlock) -> None:
        """A call that is seen to be another one is not held for this any longer."""
        if block.undecided:
            block.undecided = may_read_rule(self._kinds(block), block.text)

    def end(self, block: WatchedBlock, now: float) -> Iterator[Action]:
        """The call is complete."""
        if not block.undecided:
            return
        block.undecided = False
        name = rule_read(self._kinds(block), block.text)
        if name is None or not self._active:
            return
        self._reads += 1
        block.abandoned = True
        yield from self._progress.send(self._progress.client.leave_out(), now)
        if self._reads <= MAX_READS:
            block.answer = _answer(name, self._progress.setup.readable)
        else:
            told = f"Not read: this answer has read {MAX_READS} rules already. Go on with what you have."
            block.answer = RuleAnswer(told, is_error=True)

    def go_on(self, attempt: Attempt, now: float) -> Iterator[Action]:
        """The attempt is whole. If it only reads rules, ask upstream to go on with their contents."""
        calls = [block for block in attempt.order if block.kind == "tool"]
        if not calls or any(block.answer is None for block in calls):
            return
        progress = self._progress
        yield from progress.release(now)
        if attempt.whole_body is None:
            yield from progress.send(progress.client.break_off(), now)
        yield from progress.findings.log(attempt)
        attempt.over = True
        self._refused = self._reads > MAX_READS
        protocol = progress.setup.protocol
        said = [block for block in attempt.finished(protocol) if not _is_blank(protocol, block)]
        progress.draft.advance([*said, *attempt.answers(protocol)], None)
        if not progress.interrupted:
            progress.interrupted, progress.last_content = True, now
        yield progress.next_attempt()

    @property
    def _active(self) -> bool:
        progress = self._progress
        return (
            bool(progress.setup.readable)
            and progress.draft.form == "reminded"
            and progress.setup.request.choices == 1
            and not self._refused
        )

    def _kinds(self, block: WatchedBlock) -> frozenset[str | None]:
        return self._progress.setup.families.family_of(block.start.tool or "").kinds


def _is_blank(protocol: WireProtocol, block: ShadowBlock) -> bool:
    """Upstream takes no text without text, though it may write some before a call."""
    return block.kind == "text" and not protocol.item_of_block(block.value, block.role).text.strip()


def _answer(name: str, readable: Mapping[str, str]) -> RuleAnswer:
    content = readable.get(name)
    if content is not None:
        return RuleAnswer(content or "(this rule has no text)", is_error=False)
    return RuleAnswer(f"There is no rule {name!r}. Rules: {', '.join(readable)}", is_error=True)
