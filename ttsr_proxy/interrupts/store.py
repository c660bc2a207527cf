"""What a store of the interrupt log must do. The contract tests run against every implementation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from ttsr_proxy.interrupts.record import InterruptRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptFilter:
    """Which records: every given field must hold."""

    rule: str | None = None
    project: str | None = None
    conversation: str | None = None
    request: str | None = None
    """The id of the client's request."""
    model: str | None = None
    client: str | None = None
    source: str | None = None
    action: str | None = None
    outcome: str | None = None
    path: str | None = None
    """A path of the record contains this text."""
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Page:
    items: tuple[InterruptRecord, ...]
    next: str | None
    """Cursor of the next page, or None."""


Key: TypeAlias = Literal["rule", "project", "conversation", "model", "client", "action", "outcome", "period"]
"""What records are counted by: fields, and the period of time that a record falls into."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The records that agree in the keys asked for."""

    keys: tuple[Any, ...]
    """Text, but for `period` its beginning in seconds since the epoch."""
    count: int
    tokens_wasted: int
    seconds_added: float
    false_positives: int
    last_time: float


class InterruptStore(Protocol):
    """Durable once a call returns; safe for several processes on one store."""

    async def open(self) -> None:
        """Find out now whether the store can be used, instead of at the first call."""
        ...

    async def add(self, records: Sequence[InterruptRecord]) -> None: ...

    async def update(self, record_id: str, **changes: Any) -> None:
        """Set fields of a record (`outcome`, `correction`, ...). Unknown ids are ignored."""
        ...

    async def get(self, record_id: str) -> InterruptRecord | None: ...

    async def ids(self, prefix: str, limit: int) -> tuple[str, ...]:
        """At most so many ids that begin with the prefix, in no order."""
        ...

    async def page(self, where: InterruptFilter, limit: int, cursor: str | None) -> Page:
        """Newest first. Raises ValueError on a cursor that this store did not give."""
        ...

    async def tally(
        self,
        where: InterruptFilter,
        by: Sequence[Key],
        *,
        width: float = 3600.0,
        latest: int | None = None,
    ) -> list[Tally]:
        """How many records there are of each combination of the keys; in no order.

        `width` is the length of a `period` in seconds; periods begin at its multiples. With `latest` only the
        so many values of the first key count whose newest record is the newest.
        """
        ...

    def follow(self, where: InterruptFilter, after: str | None) -> AsyncIterator[InterruptRecord]:
        """New records in order as they arrive, from every process on the store; ends only when cancelled."""
        ...

    async def sweep(self, older_than: float, max_records: int, undelivered_before: float) -> int:
        """Apply retention; pending records older than `undelivered_before` become `undelivered`."""
        ...

    async def close(self) -> None: ...
