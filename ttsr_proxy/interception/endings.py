"""How a response ends: as upstream ended it, behind a call, refused, failed, or without its client."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from ttsr_proxy.interception.actions import AbortAttempt, Action, Finish, LeaveUnfinished, Reply, Send
from ttsr_proxy.interception.attempt import Attempt
from ttsr_proxy.interception.moves import without_loose_thinking
from ttsr_proxy.interception.progress import Progress
from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.protocols.events import ResponseEnded
from ttsr_proxy.sessions.record import ShadowBlock
from ttsr_proxy.sessions.store import Unfinished

JSON = (("content-type", "application/json"),)


class Endings:
    """Each method ends the response, except that a streamed one goes on until upstream has closed."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def completed(self, attempt: Attempt, event: ResponseEnded, now: float) -> Iterator[Action]:
        """The attempt's terminal event: the response is whole."""
        progress = self._progress
        attempt.over, progress.ending = True, "completed"
        if attempt.whole_body is not None:
            progress.client.response_id = attempt.response_id
            for position, block in enumerate(attempt.order):
                if (value := attempt.values.get(position)) is not None and block.answer is None:
                    index = progress.client.take(value, block.start.choice)
                    block.begun, block.client_index = True, index
        yield from self._whole(attempt, now)
        if attempt.whole_body is None:
            yield from progress.send(attempt.last_words + progress.client.end(event), now)
            return
        progress.over = progress.client.ended = True
        status, body = attempt.whole_body
        ours = {block.start.call_id or "" for block in attempt.order if block.answer is not None}
        setup = progress.setup
        prompt = progress.draft.prompt
        yield Reply(status, setup.protocol.without_hidden(body, setup.request, call_ids=ours, prompt=prompt))
        yield Finish()

    def truncated(self, attempt: Attempt, now: float) -> Iterator[Action]:
        """A call was delivered: end here, legally; the reminder travels with its result."""
        progress = self._progress
        protocol = progress.setup.protocol
        progress.over, progress.ending = True, "truncated"
        blocks = without_loose_thinking(attempt.delivered(protocol, progress.client, {}))
        usage = progress.usage(attempt, whole=True)
        yield from progress.save(blocks, now)
        yield Send(progress.client.finish(protocol.stops.tool, usage))
        yield Finish()

    def blocked(self, rule: str, now: float) -> Iterator[Action]:
        """The rule's budget is spent and nothing more may be shown."""
        progress = self._progress
        left = yield from self._leave("the answer was blocked", keeps=progress.client.stage == "content")
        progress.ending = "blocked"
        yield from progress.journal.settled("violated again")
        match progress.client.stage:
            case "unsent":
                yield self._refusal(rule)
                yield self.unfinished(now, blocked_by=rule)
            case "opened":
                yield Send(progress.client.error(self._refusal_error(rule)))
                yield self.unfinished(now, blocked_by=rule)
            case "content":
                yield from self._short_end(left, now)
        yield Finish()

    def blocked_before(self, rule: str) -> Iterator[Action]:
        """The client retries a response that was blocked: refused without asking upstream."""
        self._progress.over, self._progress.ending = True, "blocked"
        yield self._refusal(rule)
        yield Finish()

    def failed(self, error: JsonObject, reply: Reply | None, reason: str, now: float) -> Iterator[Action]:
        """A retry failed for good: end by stage. It does not count against the rules."""
        progress = self._progress
        progress.budget.refund()
        progress.ending = "failed"
        left = yield from self._leave("the retry failed", keeps=progress.client.stage == "content")
        yield from progress.journal.settled("failed", detail=reason)
        match progress.client.stage:
            case "unsent":
                protocol = progress.setup.protocol
                yield reply or Reply(protocol.error_status(error), protocol.error_body(error), JSON)
                yield self.unfinished(now)
            case "content" if not progress.client.call_open:
                yield from self._short_end(left, now)
            case _:
                yield Send(progress.client.error(error))
                yield self.unfinished(now)
        yield Finish()

    def passed_on(self, reply: Reply, now: float) -> Iterator[Action]:
        """Upstream gave no answer to the first attempt: the client gets what upstream said."""
        self._progress.over = True
        self._progress.ending = "completed" if reply.status < 400 else "upstream_failed"
        yield reply
        yield self.unfinished(now)
        yield Finish()

    def broken_off(self, attempt: Attempt, reason: str, now: float) -> Iterator[Action]:
        """Upstream's first answer ended early: so does the client's. `reason` is `end` for a clean close."""
        progress = self._progress
        progress.over, progress.ending = True, "broken_off"
        yield from progress.findings.log(attempt)
        if progress.client.given:
            yield from progress.save(progress.left_blocks(), now)
        yield self.unfinished(now)
        yield Finish(broken=reason != "end")

    def client_left(self, now: float) -> Iterator[Action]:
        """The client closed its connection. No abort if it already has the terminal event."""
        progress = self._progress
        progress.over = True
        yield AbortAttempt()
        if progress.client.ended:
            return
        if progress.attempt is not None and progress.attempt.ending is not None:
            # Chat clients take the reason to stop for the end and do not wait for what follows it.
            progress.ending = "completed"
            yield from self._whole(progress.attempt, now)
            return
        progress.ending = "client_left"
        left = yield from self._leave("the client left", keeps=bool(progress.client.given))
        yield from progress.journal.settled("undelivered", detail="the client left")
        if progress.client.given:
            yield from progress.save(left, now)
        yield self.unfinished(now)

    def unfinished(self, now: float, *, blocked_by: str | None = None) -> LeaveUnfinished:
        """What a retry of this request by the client inherits."""
        progress = self._progress
        ended = now + progress.setup.wall_offset
        budget = progress.budget
        return LeaveUnfinished(Unfinished(ended, budget.per_rule, budget.total, blocked_by))

    def _whole(self, attempt: Attempt, now: float) -> Iterator[Action]:
        """The client has the whole answer: log what came of it, and remember it."""
        progress = self._progress
        yield from progress.findings.log(attempt)
        yield from progress.journal.settled("clean", correction=_plain(attempt))
        yield from progress.findings.outcomes(progress.draft)
        yield from progress.save_whole(attempt.whole(progress.setup.protocol), attempt, now)

    def _leave(self, why: str, *, keeps: bool) -> Generator[Action, None, list[ShadowBlock]]:
        """The current attempt comes to nothing. Logs what it noticed; gives what it left with the client.

        `keeps`: the client makes use of what it was given so far.
        """
        progress = self._progress
        attempt, left = progress.attempt, progress.left_blocks()
        progress.attempt, progress.over = None, True
        if attempt is not None:
            progress.findings.give_up(attempt, lambda one: keeps and one.block.begun, why)
        yield from progress.findings.log(None)
        return left

    def _short_end(self, left: Sequence[ShadowBlock], now: float) -> Iterator[Action]:
        """A clean end of what was delivered: clients take that better than any error."""
        progress = self._progress
        usage = progress.usage(None, whole=True)
        yield from progress.save(left, now)
        stops = progress.setup.protocol.stops
        reason = stops.tool if progress.client.tool_delivered else stops.done
        yield Send(progress.client.finish(reason, usage))

    def _refusal(self, rule: str) -> Reply:
        return Reply(400, self._progress.setup.protocol.error_body(self._refusal_error(rule)), JSON)

    def _refusal_error(self, rule: str) -> JsonObject:
        return self._progress.setup.protocol.error_object(
            400,
            f"ttsr-proxy stopped this answer: it kept breaking the rule {rule!r}, whose budget is spent",
        )


def _plain(attempt: Attempt) -> str:
    """The attempt's output as text, for the log."""
    return "\n\n".join(block.text for block in attempt.order if block.kind in ("text", "tool") and block.text)
