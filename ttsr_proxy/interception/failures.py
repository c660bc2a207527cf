"""Upstream calls that fail: the next form of a refused request, another try, or the end of the response.

Until an attempt is aborted for a rule, a failure is upstream's own and passes as it came. After that the
client waits for the proxy's retry, and how its failure is told depends on what the client already has.
"""

from __future__ import annotations

from collections.abc import Iterator

from ttsr_proxy.interception.actions import AbortAttempt, Action, Note, Relay, Reply
from ttsr_proxy.interception.attempt import Attempt
from ttsr_proxy.interception.endings import JSON, Endings
from ttsr_proxy.interception.progress import Progress
from ttsr_proxy.protocols.events import StreamFailed

RETRY_BOUND_SECONDS = 240.0
"""How long a response may go without real content once an attempt was aborted, or for a held call."""

_OVERLOADED = frozenset((429, 503, 529))


class Failures:
    """What becomes of an attempt that gives no answer, or none that can be used."""

    def __init__(self, progress: Progress, endings: Endings) -> None:
        self._progress = progress
        self._endings = endings

    @property
    def bound(self) -> float:
        """When a client has waited long enough for content."""
        return self._progress.last_content + RETRY_BOUND_SECONDS

    def refused(self, status: int, body: bytes, retry_after: float | None, now: float) -> Iterator[Action]:
        """Upstream answered with an error. `retry_after` in seconds, if it gave one."""
        progress = self._progress
        if status == 400 and progress.client.stage != "content":
            fallback = list(self._next_form(body))
            if fallback:
                yield from fallback
                return
        if not progress.interrupted:
            yield from self._endings.passed_on(Reply(status, body), now)
            return
        if status in _OVERLOADED and retry_after is not None and now + retry_after < self.bound:
            yield progress.next_attempt(retry_after)
            return
        protocol, reason = progress.setup.protocol, f"upstream answered {status}"
        error = protocol.read_error(body) or protocol.error_object(status, reason)
        yield from self._endings.failed(error, Reply(status, body), reason, now)

    def uninspectable(self, reason: str, now: float) -> Iterator[Action]:
        """Upstream's answer is nothing that can be read: it passes as it came, and the log says so."""
        progress = self._progress
        yield Note("not_inspected", {"reason": reason})
        if not progress.interrupted:
            progress.over = True
            yield Relay()
            return
        error = progress.setup.protocol.error_object(502, f"the retry's answer cannot be read: {reason}")
        yield AbortAttempt()
        yield from self._endings.failed(error, None, reason, now)

    def no_message(self, status: int, body: bytes, now: float) -> Iterator[Action]:
        """A complete answer that is no model output."""
        progress, reason = self._progress, "the answer is no message"
        if progress.interrupted:
            error = progress.setup.protocol.error_object(502, "the retry's answer cannot be read")
            yield from self._endings.failed(error, Reply(status, body), reason, now)
            return
        yield Note("not_inspected", {"reason": reason})
        yield from self._endings.passed_on(Reply(status, body), now)

    def unreachable(self, reason: str, now: float) -> Iterator[Action]:
        """The connection failed before there was an answer."""
        progress = self._progress
        protocol = progress.setup.protocol
        error = protocol.error_object(502, reason)
        reply = Reply(502, protocol.error_body(error), JSON)
        if progress.interrupted:
            yield from self._endings.failed(error, reply, reason, now)
        else:
            yield from self._endings.passed_on(reply, now)

    def reported(self, event: StreamFailed, now: float) -> Iterator[Action]:
        """Upstream reported an error inside its stream."""
        if not self._progress.interrupted:
            yield from self._progress.send(event.raw, now)
            return
        yield AbortAttempt()
        yield from self._endings.failed(event.error, None, "upstream reported an error", now)

    def ended_early(self, attempt: Attempt, now: float) -> Iterator[Action]:
        """Upstream closed, or the connection broke, before the terminal event."""
        progress, reason = self._progress, attempt.closed or ""
        if not progress.interrupted:
            yield from self._endings.broken_off(attempt, reason, now)
            return
        reason = "upstream's answer ended early" if reason == "end" else reason
        error = progress.setup.protocol.error_object(502, reason)
        yield from self._endings.failed(error, None, reason, now)

    def unexplained(self, now: float) -> Iterator[Action]:
        """A retry reached its terminal event and gave no reason to stop, which clients cannot do without."""
        reason = "upstream's answer has no reason to stop"
        yield AbortAttempt()
        error = self._progress.setup.protocol.error_object(502, reason)
        yield from self._endings.failed(error, None, reason, now)

    def too_long(self, reason: str, now: float) -> Iterator[Action]:
        """A retry whose answer is more than can be kept."""
        error = self._progress.setup.protocol.error_object(502, reason)
        yield AbortAttempt()
        yield from self._endings.failed(error, None, reason, now)

    def timed_out(self, now: float) -> Iterator[Action]:
        """The bound has passed without any content."""
        reason = "no retry succeeded in time"
        error = self._progress.setup.protocol.error_object(504, reason)
        yield AbortAttempt()
        yield from self._endings.failed(error, None, reason, now)

    def _next_form(self, body: bytes) -> Iterator[Action]:
        """Upstream refused the request as such: the next form of it, or nothing if there is none."""
        progress = self._progress
        draft, protocol = progress.draft, progress.setup.protocol
        if draft.continues:
            return
        error = protocol.read_error(body)
        bound = any(item.kind == "thinking" for item in draft.items())
        if draft.form == "reminded" and draft.has_news:
            draft.form = "translated"
            yield Note("request_refused", {"form": "reminded"})
            if draft.reminds:
                progress.permission.barred = "upstream refused the reminder"
                progress.budget.refund()
                yield from progress.journal.settled("failed", detail=progress.permission.barred)
            yield progress.next_attempt()
        elif bound and error is not None and protocol.is_binding_error(error):
            draft.without_thinking = True
            yield Note("request_refused", {"form": draft.form, "next": "without thinking"})
            yield progress.next_attempt()
        elif draft.form != "client" and draft.translated and not bound:
            draft.form = "client"
            yield Note("request_refused", {"form": "translated", "next": "client"})
            yield progress.next_attempt()
