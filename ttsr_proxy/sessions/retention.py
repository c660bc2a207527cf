"""Which records a sweep deletes: whole tails of chains that nobody has used, longest unused first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """What retention needs to know of a record."""

    id: str
    parent: str | None
    last_used: float


def expired(
    newest_first: Sequence[StoredRecord], unused_since: float, max_records: int
) -> list[StoredRecord]:
    """The records to delete, each before its parent, so that what is left is always whole chains.

    Children must come before their parents in `newest_first`. A record counts as used when the newest of its
    descendants was.
    """
    used: dict[str, float] = {}
    for record in newest_first:
        own = used[record.id] = max(record.last_used, used.get(record.id, record.last_used))
        if record.parent is not None:
            used[record.parent] = max(own, used.get(record.parent, own))
    # The sort is stable: among equals, children stay before their parents.
    longest_unused_first = sorted(newest_first, key=lambda record: used[record.id])
    surplus = max(0, len(newest_first) - max_records)
    return [
        record
        for place, record in enumerate(longest_unused_first)
        if place < surplus or used[record.id] < unused_since
    ]
