"""One client request and its upstream attempts, as a state machine: events in, actions out.

The driver feeds what upstream and the client do and carries out the actions in order. `now` is a monotonic
time in seconds. After any call, `deadline` tells when `tick` is due.

An attempt's events go through the matchers (`watching`) and the delivery queue (`delivery`). A match that
may interrupt (`judging`) aborts the attempt, and by what the client already has one of three moves follows
(`interrupting`):

- *restart*: no text and no call was delivered; the request goes out again with a reminder;
- *continue*: text was delivered; the retry carries it, the reminder follows, and its blocks continue the
  same response;
- *truncate*: a tool call was delivered; the response ends there and the reminder travels with the result.

A call that reads a rule is answered by the proxy (`rule_reads`), and the model goes on in the same response.

`failures` says what becomes of attempts that fail, `endings` how the response ends. All of them work on one
`Progress` and yield the actions that follow. What was delivered may then be put to a judge (`inquiry`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ttsr_proxy.interception.actions import Action, Finish, Note, Save, Send
from ttsr_proxy.interception.attempt import Attempt
from ttsr_proxy.interception.echo import Exemptions
from ttsr_proxy.interception.endings import Endings
from ttsr_proxy.interception.failures import Failures
from ttsr_proxy.interception.interrupting import Interrupter
from ttsr_proxy.interception.judging import Judge
from ttsr_proxy.interception.progress import Ending, Progress
from ttsr_proxy.interception.remembering import Lineage
from ttsr_proxy.interception.rule_reads import RuleReads
from ttsr_proxy.interception.setup import Setup
from ttsr_proxy.interception.watching import Watch
from ttsr_proxy.protocols.events import (
    BlockDelta,
    BlockEnded,
    BlockStarted,
    Other,
    ProtocolEvent,
    ResponseEnded,
    ResponseEnding,
    ResponseStarted,
    StreamFailed,
)
from ttsr_proxy.triggers.ast import AstHit

KEEPALIVE_SECONDS = 10.0
"""How often a client is told that a silent response is alive. Clients give up after 300 s or more."""

MAX_KEPT_BYTES = 1 << 26
"""More than any model writes: an answer of so many bytes is not inspected any further."""


class Exchange:
    """Feed it; do what it says. It is over when it said `Finish` or `Relay`."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._progress = progress = Progress(setup)
        self.answered: Attempt | None = None
        """The latest attempt that upstream answered, also when it is over."""
        exempt = Exemptions((*progress.memory.reminders_before, *progress.draft.reminders))
        judge = Judge(progress.permission, progress.budget, exempt)
        self._endings = Endings(progress)
        self._failures = Failures(progress, self._endings)
        self._reads = RuleReads(progress)
        self._watch = Watch(progress, judge, Interrupter(progress, judge, self._endings), self._reads)

    # What the driver feeds.

    def start(self, now: float) -> list[Action]:
        """Begin: the first upstream call, or a refusal for the retry of a response that was blocked."""
        self._progress.last_sent = self._progress.last_content = now
        left = self._setup.left
        if left is not None and left.blocked_by is not None:
            return list(self._endings.blocked_before(left.blocked_by))
        return [*self._progress.passed_over(), self._progress.next_attempt()]

    def attempt_answered(self, request_id: str, now: float) -> list[Action]:
        """Upstream accepted the request and answers with something that can be inspected."""
        progress, setup = self._progress, self._setup
        self.answered = Attempt(setup.protocol, progress.client, setup.settings.hold, progress.attempts)
        progress.open(self.answered)
        if request_id:
            progress.journal.upstream_requests.append(request_id)
        return []

    def attempt_refused(
        self, status: int, body: bytes, retry_after: float | None, now: float
    ) -> list[Action]:
        """Upstream answered with an error. `retry_after` in seconds, if it gave one."""
        return list(self._failures.refused(status, body, retry_after, now))

    def attempt_uninspectable(self, reason: str, now: float) -> list[Action]:
        """Upstream's answer is nothing that can be read: it passes as it came, and the log says so."""
        return list(self._failures.uninspectable(reason, now))

    def data(self, data: bytes, now: float) -> list[Action]:
        """A piece of the streamed answer."""
        attempt = self._progress.attempt
        if attempt is None:
            return []
        if attempt.passing:
            return [Send(data)]
        attempt.inbox.extend(attempt.reader.feed(data))
        actions = list(self._run(now))
        if attempt.kept_bytes > MAX_KEPT_BYTES and self._goes_on(attempt):
            actions += self._too_long(attempt, now)
        return actions

    def body(self, status: int, body: bytes, now: float) -> list[Action]:
        """A complete answer that was not streamed."""
        attempt = self._progress.attempt
        events = self._setup.protocol.read_message(body)
        if events is None or attempt is None:
            return list(self._failures.no_message(status, body, now))
        attempt.whole_body = (status, body)
        attempt.inbox.extend(events)
        return list(self._run(now))

    def attempt_ended(self, now: float) -> list[Action]:
        """Upstream closed its answer in order."""
        attempt = self._progress.attempt
        if attempt is None:
            return []
        if attempt.passing:
            return [Finish()]
        return list(self._upstream_over(attempt, "end", now))

    def attempt_lost(self, reason: str, now: float) -> list[Action]:
        """The connection to upstream failed, before or within its answer."""
        attempt = self._progress.attempt
        if attempt is None:
            return list(self._failures.unreachable(reason, now))
        if attempt.passing:
            return [Finish(broken=True)]
        return list(self._upstream_over(attempt, reason, now))

    def ast_checked(self, results: Sequence[tuple[AstHit, ...] | None], now: float) -> list[Action]:
        """The answers to `CheckAst`, in its order; None where a job was not done."""
        return [*self._watch.ast_checked(results, now), *self._run(now)]

    def tick(self, now: float) -> list[Action]:
        """The time of `deadline` has come."""
        progress = self._progress
        if progress.over:
            return []
        if progress.interrupted and now >= self._failures.bound:
            return list(self._failures.timed_out(now))
        actions: list[Action] = []
        if (bound := self._silence_bound) is not None and now >= bound:
            actions = list(self._watch.give_up())
        actions += progress.release(now)
        if self._silent and now >= progress.last_sent + KEEPALIVE_SECONDS:
            progress.last_sent = now
            active = self._setup.requester.activity != "bytes"
            actions.append(Send(progress.client.keepalive(active)))
        return actions

    def client_gone(self, now: float) -> list[Action]:
        """The client closed its connection. Not an abort if it already has the terminal event."""
        return [] if self._progress.over else list(self._endings.client_left(now))

    @property
    def lineage(self) -> Lineage:
        return self._progress.memory.lineage

    @property
    def ending(self) -> Ending | None:
        """How the response ended; None as long as it goes on, and for one that was relayed."""
        return self._progress.ending

    @property
    def held_bytes(self) -> int:
        """Bytes of the current attempt that wait for a verdict."""
        attempt = self._progress.attempt
        return attempt.delivery.held_bytes if attempt is not None else 0

    @property
    def deadline(self) -> float | None:
        """When `tick` has to be called, if ever."""
        progress = self._progress
        if progress.over:
            return None
        times = []
        if progress.attempt is not None and (release := progress.attempt.delivery.deadline()) is not None:
            times.append(release)
        if self._silent:
            times.append(progress.last_sent + KEEPALIVE_SECONDS)
        if progress.interrupted and not progress.client.ended:
            times.append(self._failures.bound)
        elif (bound := self._silence_bound) is not None:
            times.append(bound)
        return min(times, default=None)

    @property
    def _silent(self) -> bool:
        """The client waits for something that is held or asked for again, and keep-alives are possible."""
        progress = self._progress
        if progress.client.stage == "unsent" or progress.client.ended:
            return False
        attempt = progress.attempt
        return attempt is None or attempt.delivery.holding or (progress.interrupted and not attempt.heard)

    @property
    def _silence_bound(self) -> float | None:
        """When a first attempt's held call has to go uninspected: no keep-alive works for this client."""
        progress = self._progress
        attempt = progress.attempt
        if attempt is None or progress.interrupted or self._setup.requester.activity != "content":
            return None
        return self._failures.bound if any(block.withheld for block in attempt.blocks.values()) else None

    # One event of an attempt after the other.

    def _run(self, now: float) -> Iterator[Action]:
        progress = self._progress
        attempt = progress.attempt
        if attempt is None:
            return
        singly = 0
        while self._goes_on(attempt) and attempt.inbox:
            if not singly and len(attempt.inbox) > 1 and not attempt.over:
                singly = self._watch.skim(attempt, now)
                if not attempt.inbox:
                    break
            singly = max(singly - 1, 0)
            yield from self._handle(attempt, attempt.inbox.popleft(), now)
        if self._goes_on(attempt):
            yield from progress.release(now)
            if attempt.closed is not None:
                yield from self._closed(attempt, now)

    def _upstream_over(self, attempt: Attempt, how: str, now: float) -> Iterator[Action]:
        rest = attempt.reader.finish()
        if self._progress.interrupted:
            # Then the proxy ends the stream, and nothing can follow an event that was cut off.
            rest = [event for event in rest if not isinstance(event, Other)]
        attempt.inbox.extend(rest)
        attempt.closed = how
        yield from self._run(now)

    def _too_long(self, attempt: Attempt, now: float) -> Iterator[Action]:
        """The answer would fill memory. A first answer passes from here on, a retry has failed."""
        progress, reason = self._progress, "the answer is too long"
        if progress.interrupted:
            yield from self._failures.too_long(reason, now)
            return
        yield Note("not_inspected", {"reason": reason})
        for block in attempt.order:
            block.unwatch()
        yield from progress.release(now)
        yield from progress.findings.log(attempt)
        for event in attempt.reader.finish():
            yield Send(event.raw)
        progress.over = attempt.passing = True

    def _goes_on(self, attempt: Attempt) -> bool:
        return self._progress.current(attempt) and not self._progress.checking

    def _handle(self, attempt: Attempt, event: ProtocolEvent, now: float) -> Iterator[Action]:
        progress = self._progress
        if attempt.over:
            yield from progress.send(event.raw, now)
            return
        match event:
            case ResponseStarted():
                attempt.usage, attempt.model = event.usage, event.model
                attempt.response_id = event.response_id
                if attempt.number == 1 or not progress.client.begun:
                    progress.hold(attempt, event, None, now)
            case BlockStarted():
                attempt.kept_bytes += len(event.raw)
                yield from self._watch.begin(attempt, event, now)
            case BlockDelta():
                attempt.kept_bytes += len(event.raw)
                yield from self._watch.grow(attempt, event, now)
            case BlockEnded():
                yield from self._watch.end(attempt, event, now)
            case ResponseEnding() | ResponseEnded() | StreamFailed():
                yield from self._last_word(attempt, event, now)
            case Other() if attempt.last_words:
                attempt.last_words += progress.client.other(event)
            case Other():
                progress.hold(attempt, event, None, now)

    def _ending(self, attempt: Attempt, event: ResponseEnding, now: float) -> Iterator[Action]:
        progress = self._progress
        attempt.ending = event
        if attempt.whole_body is not None:
            return
        held = attempt.delivery.release(now)
        if any(block.answer is not None for block in attempt.order):
            # The next request may come once the client knows why the answer stopped, and it lacks the reads.
            blocks = attempt.whole(self._setup.protocol)
            yield Save(progress.memory.record(blocks, (), now=now, final=False, upstream=attempt.response_id))
        if attempt.number == 1:
            yield from progress.send(held + progress.client.ending(event, None), now)
            return
        yield from progress.send(held, now)
        attempt.last_words += progress.client.ending(event, progress.usage(attempt))

    def _last_word(
        self, attempt: Attempt, event: ResponseEnding | ResponseEnded | StreamFailed, now: float
    ) -> Iterator[Action]:
        """Nothing follows this event that could close a block: what is open is judged as it is."""
        yield from self._watch.cut_off(attempt, now)
        if not self._goes_on(attempt):
            attempt.inbox.appendleft(event)
            return
        if not isinstance(event, StreamFailed):
            yield from self._reads.go_on(attempt, now)
            if not self._progress.current(attempt):
                return
            if attempt.whole_body is None:
                yield from self._progress.release(now)
                yield from self._progress.send(attempt.delivery.close_leftover(), now)
        match event:
            case ResponseEnding():
                yield from self._ending(attempt, event, now)
            case ResponseEnded() if self._progress.interrupted and attempt.ending is None:
                yield from self._failures.unexplained(now)
            case ResponseEnded():
                yield from self._progress.release(now)
                yield from self._endings.completed(attempt, event, now)
            case StreamFailed():
                yield from self._progress.release(now)
                yield from self._failures.reported(event, now)

    def _closed(self, attempt: Attempt, now: float) -> Iterator[Action]:
        """Upstream's answer is over, whether in order or not."""
        if attempt.over:
            self._progress.over = True
            yield Finish()
            return
        yield from self._watch.cut_off(attempt, now)
        if self._goes_on(attempt):
            yield from self._progress.release(now)
            yield from self._failures.ended_early(attempt, now)
