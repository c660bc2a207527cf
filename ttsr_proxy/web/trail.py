"""What one request of a client leaves behind: figures, and facts that the handlers learn on its way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

import structlog
from aiohttp import web

from ttsr_proxy.interception.exchange import Exchange
from ttsr_proxy.interception.progress import Ending
from ttsr_proxy.interrupts.record import INTERRUPTING, InterruptRecord
from ttsr_proxy.web import metrics
from ttsr_proxy.web.faults import fault
from ttsr_proxy.web.metrics import Metrics

_log = structlog.get_logger()

Outcome: TypeAlias = Ending | Literal["refused", "fault"]
"""`refused`: the proxy's own answer, without upstream. `fault`: the program failed."""

CallResult: TypeAlias = Literal["answered", "refused", "lost", "unreadable", "abandoned"]
"""An upstream call `abandoned` had no answer yet."""


class Trail:
    """Entered when the request arrives, left when its answer is over."""

    def __init__(self, counted: Metrics) -> None:
        self._metrics = counted
        self._started = time.monotonic()
        self._call_started: float | None = None
        self._call_result: CallResult = "abandoned"
        self._call_spoke = False
        self._waited_until = 0.0
        self.protocol = "other"
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
        if self.outcome is None:
            self.outcome = _outcome_of(error)
        self._metrics.count(metrics.REQUESTS, self.protocol, self.outcome)
        self._metrics.observe(metrics.DURATION, time.monotonic() - self._started, self.protocol)

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
        if self.outcome is None:
            self.outcome = "completed" if status < 400 else "upstream_failed"

    # Upstream.

    def call_begins(self) -> None:
        self.call_over()
        self.calls += 1
        self._call_started, self._call_result, self._call_spoke = time.monotonic(), "abandoned", False
        if self.calls > 1:
            self._metrics.count(metrics.RETRIES, self.protocol)

    def call_went(self, result: CallResult) -> None:
        self._call_result = result

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


TRAIL = web.RequestKey("ttsr_trail", Trail)


def _outcome_of(error: BaseException | None) -> Outcome:
    if isinstance(error, asyncio.CancelledError | ConnectionError):
        return "client_left"
    return "fault" if error is not None else "completed"
