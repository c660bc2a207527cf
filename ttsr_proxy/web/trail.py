"""What one request of a client leaves behind: figures, spans, and a line in the program's log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import structlog
from aiohttp import web

from ttsr_proxy.interception.exchange import Exchange
from ttsr_proxy.interception.progress import Ending
from ttsr_proxy.interrupts.record import INTERRUPTING, InterruptRecord
from ttsr_proxy.web import metrics
from ttsr_proxy.web.faults import fault
from ttsr_proxy.web.metrics import Metrics

_log = structlog.get_logger()

if TYPE_CHECKING:
    from ttsr_proxy.web.spans import RequestSpan

Outcome: TypeAlias = Ending | Literal["refused", "fault"]
"""`refused`: the proxy's own answer, without upstream. `fault`: the program failed."""

CallResult: TypeAlias = Literal["answered", "refused", "lost", "unreadable", "abandoned"]
"""An upstream call `abandoned` had no answer yet."""


class Trail:
    """Entered when the request arrives, left when its answer is over. Handlers fill in what they learn."""

    def __init__(self, request: web.Request, counted: Metrics, span: RequestSpan | None) -> None:
        self._request = request
        self._metrics = counted
        self._span = span
        self._started = time.monotonic()
        self._call_started: float | None = None
        self._call_result: CallResult = "abandoned"
        self._call_status: int | None = None
        self._call_spoke = False
        self._waited_until = 0.0
        self._status: int | None = None
        self.protocol = "other"
        self.project = self.client = self.model = ""
        self.route = ""
        """The inspected endpoint that the request's path ends in."""
        self.outcome: Outcome | None = None
        self.interrupts = 0
        self.calls = 0
        self.exchange: Exchange | None = None
        """Whose output is held back now."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.call_over()
        self.exchange = None
        outcome = self.outcome or _outcome_of(error)
        seconds = time.monotonic() - self._started
        self._metrics.count(metrics.REQUESTS, self.protocol, outcome)
        self._metrics.observe(metrics.DURATION, seconds, self.protocol)
        facts: dict[str, str | int] = {
            "project": self.project,
            "protocol": self.protocol,
            "client": self.client,
            "model": self.model,
            "calls": self.calls,
            "interrupts": self.interrupts,
        }
        if self._span is not None:
            self._span.ends(outcome, self._status, facts, self.route)
        _log.info(
            "request",
            method=self._request.method,
            path=self._request.rel_url.raw_path,
            status=self._status,
            outcome=outcome,
            seconds=round(seconds, 3),
            **{name: value for name, value in facts.items() if value != ""},
        )

    @property
    def held_bytes(self) -> int:
        return self.exchange.held_bytes if self.exchange is not None else 0

    # The client.

    def stream_begins(self) -> None:
        """The client is sent the head of a stream and its first event."""
        self._metrics.observe(metrics.CLIENT_FIRST, time.monotonic() - self._started, self.protocol)

    # What the exchange tells.

    def logged(self, records: Sequence[InterruptRecord]) -> None:
        """Entries of the interrupt log; those of one interrupt come together."""
        actions = {record.action for record in records} & INTERRUPTING
        self.interrupts += len(actions)
        if self._span is not None:
            for record in records:
                if record.action in INTERRUPTING:
                    self._span.interrupted(record)
        for action in actions:
            self._metrics.count(metrics.INTERRUPTS, self.protocol, action)
        if wasted := sum(record.tokens_wasted for record in records):
            self._metrics.count(metrics.WASTED_TOKENS, by=wasted)

    def updated(self, changes: Mapping[str, Any]) -> None:
        """Changes of an entry. A wait that several entries share is counted once."""
        if seconds := changes.get("seconds_added"):
            now = time.monotonic()
            if (waited := now - max(now - seconds, self._waited_until)) > 0:
                self._metrics.count(metrics.ADDED_SECONDS, by=waited)
            self._waited_until = now

    def noted(self, event: str) -> None:
        self._metrics.count(metrics.EVENTS, event)

    def fault(self, error: BaseException, **fields: str) -> None:
        """Log a fault of the program by its place; its message may hold what people wrote."""
        self._metrics.count(metrics.FAULTS)
        _log.error("matching_failed", **fault(error), **fields)

    def answered(self, status: int) -> None:
        """An answer of `status` is complete, unless it is known to have gone otherwise."""
        self._status = status
        if self.outcome is None:
            self.outcome = "completed" if status < 400 else "upstream_failed"

    # Upstream.

    def call_begins(self, method: str, url: str) -> None:
        self.call_over()
        self.calls += 1
        self._call_started, self._call_spoke = time.monotonic(), False
        self._call_result, self._call_status = "abandoned", None
        if self._span is not None:
            self._span.call_begins(method, url, self.calls, self.protocol, self.model)
        if self.calls > 1:
            self._metrics.count(metrics.RETRIES, self.protocol)

    def call_went(self, result: CallResult, status: int | None = None) -> None:
        self._call_result = result
        self._call_status = status or self._call_status

    def call_speaks(self) -> None:
        """A piece of a stream has arrived."""
        if not self._call_spoke and self._call_started is not None:
            self._call_spoke = True
            seconds = time.monotonic() - self._call_started
            self._metrics.observe(metrics.UPSTREAM_FIRST, seconds, self.protocol)

    def call_over(self) -> None:
        """The upstream call, if there is one, is closed."""
        if self._call_started is not None:
            self._call_started = None
            self._metrics.count(metrics.CALLS, self.protocol, self._call_result)
            if self._span is not None:
                answered = self.exchange.answered if self.exchange is not None else None
                if answered is not None and answered.number != self.calls:
                    answered = None
                self._span.call_ends(self._call_result, self._call_status, answered)


TRAIL = web.RequestKey("ttsr_trail", Trail)


def _outcome_of(error: BaseException | None) -> Outcome:
    if isinstance(error, asyncio.CancelledError | ConnectionError):
        return "client_left"
    return "fault" if error is not None else "completed"
