"""The interrupt log in SQLite: durable, and shared by every proxy process on the file."""

from __future__ import annotations

import asyncio
import dataclasses
import sqlite3
from collections.abc import AsyncIterator, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog

from ttsr_proxy.interrupts.cursor import Place, from_cursor, to_cursor
from ttsr_proxy.interrupts.masking import mask_record
from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.interrupts.record_json import record_from_json, record_to_json
from ttsr_proxy.interrupts.schema import SCHEMA
from ttsr_proxy.interrupts.store import InterruptFilter, Key, Page, Tally
from ttsr_proxy.sqlite import Database, storable

DELETE_BATCH: Final = 500
"""Records changed in one transaction of a sweep, so that it never keeps other processes waiting."""

FEED_BATCH: Final = 200
"""Records that `follow` reads at once."""

_log = structlog.get_logger(__name__)

_COLUMNS: Final = (
    "id",
    "rule",
    "project",
    "conversation",
    "request",
    "model",
    "client",
    "source",
    "action",
    "outcome",
)
"""Text columns that hold the field of the same name."""

_NUMBERS: Final = ("time", "tokens_wasted", "seconds_added", "false_positive")
"""Columns of numbers that hold the field of the same name."""

_WRITTEN: Final = (*_COLUMNS, *_NUMBERS, "paths")

_NAMES: Final = ", ".join(_WRITTEN)
_VALUES: Final = ", ".join(f":{name}" for name in _WRITTEN)
_INSERT: Final = f"INSERT INTO interrupts({_NAMES}) VALUES ({_VALUES}) ON CONFLICT(id) DO NOTHING"  # noqa: S608
_UPDATE: Final = f"UPDATE interrupts SET ({_NAMES}) = ({_VALUES}) WHERE seq = :seq"  # noqa: S608

_CONDITIONS: Final = {
    "rule": "log.rule = :rule",
    "project": "log.project = :project",
    "conversation": "log.conversation = :conversation",
    "request": "log.request = :request",
    "model": "log.model = :model",
    "client": "log.client = :client",
    "source": "log.source = :source",
    "action": "log.action = :action",
    "outcome": "log.outcome = :outcome",
    "path": "instr(log.paths, :path) > 0",
    "since": "log.time >= :since",
    "until": "log.time <= :until",
}
"""SQL by field of `InterruptFilter`."""

_SELECT: Final = "SELECT log.seq, log.time, body FROM interrupts AS log JOIN interrupt_bodies USING (seq)"

_HIGHEST: Final = "\U0010ffff"
"""Sorts behind every text that goes on with another character."""

_TOTALS: Final = (
    "count(*), sum(log.tokens_wasted), sum(log.seconds_added), sum(log.false_positive), max(log.time)"
)
_COUNTED: Final = 5
_KEYS: Final[dict[Key, str]] = {
    "rule": "log.rule",
    "project": "log.project",
    "conversation": "log.conversation",
    "model": "log.model",
    "client": "log.client",
    "action": "log.action",
    "outcome": "log.outcome",
    "period": "CAST(log.time / :width AS INTEGER) * :width",
}
"""SQL by what `tally` counts by."""

_Row = tuple[int, float, str]


class SqliteInterruptStore:
    """An `InterruptStore` in the file at `path`, which it may share with other stores and processes.

    `poll_seconds` is how soon `follow` sees what another process added. Every method may raise StoreError.
    """

    def __init__(self, path: Path, *, poll_seconds: float = 0.5) -> None:
        self._database = Database(path, SCHEMA)
        self._poll_seconds = poll_seconds
        self._followers: set[asyncio.Event] = set()

    async def open(self) -> None:
        """Open the file now instead of at the first call, to hear early of what is wrong with it."""
        await self._database.read(lambda connection: None)

    async def add(self, records: Sequence[InterruptRecord]) -> None:
        """Append records, masked; one whose id is there already is left as it is."""
        await self._database.write(partial(_add, records=records))
        for changed in self._followers:
            changed.set()

    async def update(self, record_id: str, **changes: Any) -> None:
        """Set fields of a record; unknown ids are ignored.

        Raises TypeError on a field that a record does not have, ValueError on a value that it cannot have.
        """
        await self._database.write(partial(_update, record_id=record_id, changes=changes))

    async def get(self, record_id: str) -> InterruptRecord | None:
        """The record of this id, or None."""
        rows = await self._database.read(
            lambda connection: connection.execute(
                f"{_SELECT} WHERE log.id = ?", (storable(record_id),)
            ).fetchall()
        )
        return next((record for _, record in _read(rows)), None)

    async def ids(self, prefix: str, limit: int) -> tuple[str, ...]:
        """At most so many ids that begin with the prefix, in no order."""
        beginning = storable(prefix)
        rows = await self._database.read(
            lambda connection: connection.execute(
                "SELECT id FROM interrupts WHERE id >= ? AND id < ? LIMIT ?",
                (beginning, beginning + _HIGHEST, limit),
            ).fetchall()
        )
        return tuple(row[0] for row in rows)

    async def page(self, where: InterruptFilter, limit: int, cursor: str | None) -> Page:
        """Newest first. Raises ValueError on a cursor that this store did not give."""
        conditions, parameters = _where(where)
        if cursor is not None:
            place = from_cursor(cursor)
            conditions.append("(log.time, log.seq) < (:cursor_time, :cursor_seq)")
            parameters.update(cursor_time=place.time, cursor_seq=place.seq)
        # One more than asked for tells whether there is a next page.
        sql = f"{_SELECT} WHERE {' AND '.join(conditions)} ORDER BY log.time DESC, log.seq DESC LIMIT :limit"
        parameters["limit"] = limit + 1
        rows: list[_Row] = await self._database.read(
            lambda connection: connection.execute(sql, parameters).fetchall()
        )
        shown = rows[:limit]
        more = len(rows) > limit and bool(shown)
        following = to_cursor(Place(shown[-1][1], shown[-1][0])) if more else None
        return Page(tuple(record for _, record in _read(shown)), following)

    async def tally(
        self,
        where: InterruptFilter,
        by: Sequence[Key],
        *,
        width: float = 3600.0,
        latest: int | None = None,
    ) -> list[Tally]:
        """How many records there are of each combination of the keys; in no order."""
        conditions, parameters = _where(where)
        keys = ", ".join(_KEYS[key] for key in by)
        if latest is not None:
            # Finding them takes an index alone; counting all to show few took most of a page's time.
            conditions.append(
                f"{_KEYS[by[0]]} IN (SELECT {_KEYS[by[0]]} FROM interrupts AS log "  # noqa: S608
                f"WHERE {' AND '.join(conditions)} GROUP BY 1 ORDER BY max(log.time) DESC LIMIT :latest)"
            )
            parameters["latest"] = latest
        # Keys are of a table in this module; values are parameters.
        sql = (
            f"SELECT {_TOTALS}, {keys} FROM interrupts AS log "  # noqa: S608
            f"WHERE {' AND '.join(conditions)} GROUP BY {keys}"
        )
        rows = await self._database.read(
            lambda connection: connection.execute(sql, {**parameters, "width": width}).fetchall()
        )
        return [Tally(tuple(row[_COUNTED:]), *row[:_COUNTED]) for row in rows]

    def follow(self, where: InterruptFilter, after: str | None) -> AsyncIterator[InterruptRecord]:
        """Records in order of arrival, from every process on the store; ends only when cancelled.

        It starts behind the record whose id is `after`; without one, or when that is gone, behind everything
        that was there at the call.
        """
        return self._feed(where, self._database.submit_read(partial(_position, after=after)))

    async def sweep(self, older_than: float, max_records: int, undelivered_before: float) -> int:
        """Delete what is older and the oldest above the count; how many records went.

        Pending records older than `undelivered_before` become `undelivered`.
        """
        await self._in_batches(partial(_settle, before=undelivered_before))
        deleted = await self._in_batches(partial(_delete_older, than=older_than))
        return deleted + await self._in_batches(partial(_delete_surplus, max_records=max_records))

    async def close(self) -> None:
        """Wait for calls under way and close the file."""
        await self._database.close()

    async def _feed(self, where: InterruptFilter, start: Future[int]) -> AsyncIterator[InterruptRecord]:
        changed = asyncio.Event()
        self._followers.add(changed)
        try:
            position = await asyncio.wrap_future(start)
            while True:
                changed.clear()
                rows, position = await self._database.read(partial(_arrived, where=where, after=position))
                for _, record in _read(rows):
                    yield record
                if not rows:
                    await _wait(changed, self._poll_seconds)
        finally:
            self._followers.discard(changed)

    async def _in_batches(self, work: Any) -> int:
        total = 0
        while changed := await self._database.write(work):
            total += changed
        return total


async def _wait(changed: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await changed.wait()
    except TimeoutError:
        return


def _to_row(record: InterruptRecord) -> dict[str, Any]:
    columns = {name: storable(getattr(record, name)) for name in _COLUMNS}
    paths = storable("\n".join(record.paths))
    numbers = {name: getattr(record, name) for name in _NUMBERS}
    return {**columns, **numbers, "paths": paths, "body": record_to_json(record)}


def _add(connection: sqlite3.Connection, records: Iterable[InterruptRecord]) -> None:
    for record in records:
        row = _to_row(mask_record(record))
        added = connection.execute(
            _INSERT,
            row,
        )
        if added.rowcount:
            connection.execute("INSERT INTO interrupt_bodies VALUES (?, ?)", (added.lastrowid, row["body"]))


def _update(connection: sqlite3.Connection, record_id: str, changes: dict[str, Any]) -> None:
    rows = connection.execute(f"{_SELECT} WHERE log.id = ?", (storable(record_id),)).fetchall()
    for seq, record in _read(rows):
        row = _to_row(mask_record(dataclasses.replace(record, **{**changes, "id": record.id})))
        record_from_json(row["body"])
        connection.execute(
            _UPDATE,
            {**row, "seq": seq},
        )
        connection.execute("UPDATE interrupt_bodies SET body = ? WHERE seq = ?", (row["body"], seq))


def _read(rows: Iterable[_Row]) -> list[tuple[int, InterruptRecord]]:
    """The records of the rows; one that this version cannot read is logged and costs only itself."""
    records = []
    for seq, _, body in rows:
        try:
            records.append((seq, record_from_json(body)))
        except ValueError as error:
            _log.warning("interrupt_record_unreadable", seq=seq, reason=str(error))
    return records


def _where(where: InterruptFilter) -> tuple[list[str], dict[str, Any]]:
    conditions = ["true"]
    parameters: dict[str, Any] = {}
    for name, sql in _CONDITIONS.items():
        value = getattr(where, name)
        if value is not None:
            conditions.append(sql)
            parameters[name] = storable(value) if isinstance(value, str) else value
    return conditions, parameters


def _position(connection: sqlite3.Connection, after: str | None) -> int:
    if after is not None:
        row = connection.execute("SELECT seq FROM interrupts WHERE id = ?", (storable(after),)).fetchone()
        if row is not None:
            return int(row[0])
    return _last(connection)


def _last(connection: sqlite3.Connection) -> int:
    (last,) = connection.execute("SELECT coalesce(max(seq), 0) FROM interrupts").fetchone()
    return int(last)


def _arrived(connection: sqlite3.Connection, where: InterruptFilter, after: int) -> tuple[list[_Row], int]:
    """What arrived behind the position and passes the filter, and the position behind what was looked at."""
    last = _last(connection)
    if last <= after:
        return [], after
    conditions, parameters = _where(where)
    sql = (
        f"{_SELECT} WHERE log.seq > :after AND log.seq <= :last AND {' AND '.join(conditions)} "
        "ORDER BY log.seq LIMIT :limit"
    )
    rows = connection.execute(
        sql, {**parameters, "after": after, "last": last, "limit": FEED_BATCH}
    ).fetchall()
    return rows, rows[-1][0] if len(rows) == FEED_BATCH else last


def _settle(connection: sqlite3.Connection, before: float) -> int:
    pending = connection.execute(
        "SELECT seq FROM interrupts WHERE outcome = 'pending' AND time < ? LIMIT ?", (before, DELETE_BATCH)
    ).fetchall()
    connection.executemany("UPDATE interrupts SET outcome = 'undelivered' WHERE seq = ?", pending)
    connection.executemany(
        "UPDATE interrupt_bodies SET body = json_set(body, '$.outcome', 'undelivered') WHERE seq = ?", pending
    )
    return len(pending)


def _delete_older(connection: sqlite3.Connection, than: float) -> int:
    return connection.execute(
        "DELETE FROM interrupts WHERE seq IN (SELECT seq FROM interrupts WHERE time < ? LIMIT ?)",
        (than, DELETE_BATCH),
    ).rowcount


def _delete_surplus(connection: sqlite3.Connection, max_records: int) -> int:
    (count,) = connection.execute("SELECT count(*) FROM interrupts").fetchone()
    surplus = min(count - max_records, DELETE_BATCH)
    if surplus <= 0:
        return 0
    return connection.execute(
        "DELETE FROM interrupts WHERE seq IN (SELECT seq FROM interrupts ORDER BY time, seq LIMIT ?)",
        (surplus,),
    ).rowcount
