"""What only the SQLite log does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import structlog

from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.interrupts.record_json import record_to_json
from ttsr_proxy.interrupts.schema import SCHEMA
from ttsr_proxy.interrupts.sqlite import SqliteInterruptStore
from ttsr_proxy.interrupts.store import InterruptFilter, Tally
from ttsr_proxy.sqlite import Database, Schema


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


async def test_a_log_of_the_first_layout_is_counted_and_searched_too(
    tmp_path: Path, make_record: Callable[..., InterruptRecord]
) -> None:
    path = tmp_path / "state.db"
    body = record_to_json(make_record(request="q-1", tokens_wasted=12, seconds_added=0.5))
    old = Database(path, Schema("interrupts", SCHEMA.migrations[:1]))
    await old.write(
        lambda connection: [
            connection.execute(
                "INSERT INTO interrupts VALUES (1, 'i1', 1.0, 'r', 'p', 'c', 'm', 'cl', 's', 'a', 'o', '')"
            ),
            connection.execute("INSERT INTO interrupt_bodies VALUES (1, ?)", (body,)),
        ]
    )
    await old.close()
    store = SqliteInterruptStore(path)
    assert await store.tally(InterruptFilter(), ("rule",)) == [Tally(("r",), 1, 12, 0.5, 0, 1.0)]
    assert len((await store.page(InterruptFilter(request="q-1"), 9, None)).items) == 1
    await store.close()
