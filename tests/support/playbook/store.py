"""Conversations in memory, by the rules of the real stores."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from ttsr_proxy.sessions.record import ResponseRecord
from ttsr_proxy.sessions.store import Unfinished

_T = TypeVar("_T")

MAX_PER_ANCHOR = 32


class MemoryStore:
    """A `ConversationStore` whose calls never wait."""

    def __init__(self) -> None:
        self.records: dict[str, ResponseRecord] = {}
        self.unfinished: dict[tuple[str, str], Unfinished] = {}

    async def tenant_secret(self) -> bytes:
        return b"secret"

    async def save(self, record: ResponseRecord) -> None:
        known = self.records.get(record.id)
        if known is None or not known.final:
            self.records[record.id] = record

    async def find(self, tenant: str, anchors: Sequence[str]) -> dict[str, tuple[ResponseRecord, ...]]:
        oldest_first = sorted(self.records.values(), key=lambda record: (record.created, record.id))
        found = {
            anchor: tuple(r for r in oldest_first if r.tenant == tenant and anchor in r.anchors)
            for anchor in anchors
        }
        return {anchor: records[:MAX_PER_ANCHOR] for anchor, records in found.items() if records}

    async def ancestors(self, tenant: str, record_id: str) -> tuple[ResponseRecord, ...]:
        chain: list[ResponseRecord] = []
        wanted: str | None = record_id
        while wanted is not None and wanted in self.records and self.records[wanted].tenant == tenant:
            chain.insert(0, self.records[wanted])
            wanted = chain[0].parent
        return tuple(chain)

    async def put_unfinished(self, tenant: str, request_key: str, left: Unfinished) -> None:
        self.unfinished[tenant, request_key] = left

    async def take_unfinished(self, tenant: str, request_key: str, since: float) -> Unfinished | None:
        left = self.unfinished.get((tenant, request_key))
        return left if left is not None and left.ended >= since else None

    async def drop_unfinished(self, tenant: str, request_key: str) -> None:
        self.unfinished.pop((tenant, request_key), None)

    async def sweep(self, unused_since: float, max_records: int) -> int:
        return 0

    async def close(self) -> None:
        pass


def at_once(call: Coroutine[Any, Any, _T]) -> _T:
    """The result of a coroutine that never waits."""
    try:
        call.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    raise AssertionError("it waits")
