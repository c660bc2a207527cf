"""What a store of conversations must do. The contract tests run against every implementation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from ttsr_proxy.sessions.record import ResponseRecord

MAX_CHAIN: Final = 10_000
"""Records that `ancestors` follows upwards at most."""

MAX_PER_ANCHOR: Final = 32
"""Records that `find` gives for one anchor at most."""

USE_SECONDS: Final = 60.0
"""A chain is marked used at most this often."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An exchange that ended without a delivered terminal event: what its client's retry inherits."""

    ended: float
    per_rule: dict[str, int]
    total: int
    blocked_by: str | None = None


class ConversationStore(Protocol):
    """Durable once a call returns; safe for several processes on one store. Any call may raise StoreError."""

    async def open(self) -> None:
        """Find out now whether the store can be used, instead of at the first call."""
        ...

    async def recovered(self) -> bool:
        """Whether a store that failed can surely be used again, if that can be told without saving."""
        ...

    async def tenant_secret(self) -> bytes:
        """The store's random key for `tenant_key`; the same for every process on the store."""
        ...

    async def save(self, record: ResponseRecord) -> None:
        """Insert the record, or replace an unfinal one of the same id. Its anchors become findable."""
        ...

    async def find(self, tenant: str, anchors: Sequence[str]) -> dict[str, tuple[ResponseRecord, ...]]:
        """Records by anchor, oldest first, at most 32 for each; anchors without a record are left out."""
        ...

    async def ancestors(self, tenant: str, record_id: str) -> tuple[ResponseRecord, ...]:
        """The chain that ends in the record: root first, the record last; empty if unknown. Marks it used."""
        ...

    async def put_unfinished(self, tenant: str, request_key: str, left: Unfinished) -> None: ...

    async def take_unfinished(self, tenant: str, request_key: str, since: float) -> Unfinished | None:
        """The newest one not older than `since`; it stays until it expires, is replaced or removed."""
        ...

    async def drop_unfinished(self, tenant: str, request_key: str) -> None: ...

    async def sweep(self, unused_since: float, max_records: int) -> int:
        """Delete chains not used since then, and the longest unused above the count. Records deleted."""
        ...

    async def close(self) -> None: ...
