"""What only the SQLite log does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import structlog

from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.interrupts.sqlite import SqliteInterruptStore
from ttsr_proxy.interrupts.store import InterruptFilter


async def test_a_record_of_another_release_costs_only_what_cannot_be_read(
    tmp_path: Path, make_record: Callable[..., InterruptRecord]
) -> None:
    store = SqliteInterruptStore(tmp_path / "state.db")
    await store.add([make_record(id=name) for name in ("a", "b", "c")])
    await store._database.write(
        lambda connection: [
            connection.execute(
                f"UPDATE interrupt_bodies SET body = json_set(body, '$.{name}', 'x') WHERE seq = {seq}"
            )
            for name, seq in (("future_field", 1), ("action", 2))
        ]
    )
    with structlog.testing.capture_logs() as logs:
        page = await store.page(InterruptFilter(), 10, None)
    assert [record.id for record in page.items] == ["c", "a"]
    assert [entry["event"] for entry in logs] == ["interrupt_record_unreadable"]
    await store.close()
