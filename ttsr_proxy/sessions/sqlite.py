"""Conversations in SQLite: durable, and shared by every proxy process on the file."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from ttsr_proxy import jsontext
from ttsr_proxy.errors import StoreError
from ttsr_proxy.sessions.record import ResponseRecord
from ttsr_proxy.sessions.record_json import (
    record_from_json,
    record_to_json,
    unfinished_from_json,
    unfinished_to_json,
)
from ttsr_proxy.sessions.retention import StoredRecord, expired
from ttsr_proxy.sessions.schema import SCHEMA
from ttsr_proxy.sessions.store import MAX_CHAIN, MAX_PER_ANCHOR, USE_SECONDS, Unfinished
from ttsr_proxy.sessions.tenant import SECRET_BYTES
from ttsr_proxy.sqlite import Database, storable

DELETE_BATCH: Final = 500
"""Records deleted in one transaction, so that a sweep never keeps other processes waiting."""

_log = structlog.get_logger(__name__)

_FIND: Final = f"""
SELECT hit.anchor, hit.record
FROM json_each(:anchors) AS wanted
JOIN anchors AS hit ON hit.tenant = :tenant AND hit.anchor = wanted.value
WHERE hit.record IN (
    SELECT record FROM anchors WHERE tenant = :tenant AND anchor = wanted.value
    ORDER BY created, record LIMIT {MAX_PER_ANCHOR}
)
ORDER BY wanted.id, hit.created, hit.record
"""  # noqa: S608 - the only value put in is a constant

_CHAIN: Final = f"""
WITH RECURSIVE chain(seq, parent, depth) AS (
    SELECT seq, parent, 1 FROM records WHERE id = :id AND tenant = :tenant
    UNION ALL
    SELECT up.seq, up.parent, chain.depth + 1
    FROM chain JOIN records AS up ON up.id = chain.parent AND up.tenant = :tenant
    WHERE chain.depth < {MAX_CHAIN}
)
SELECT seq FROM chain ORDER BY depth DESC
"""  # noqa: S608 - the only value put in is a constant

_SAVE: Final = """
INSERT INTO records(id, tenant, parent, created, last_used, final, body)
VALUES (:id, :tenant, :parent, :created, :now, :final, :body)
ON CONFLICT(id) DO UPDATE SET
    parent = excluded.parent, created = excluded.created, last_used = excluded.last_used,
    final = excluded.final, body = excluded.body
WHERE records.final = 0 AND records.tenant = excluded.tenant
RETURNING seq
"""

_DELETE: Final = """
DELETE FROM records WHERE id = ? AND last_used = ?
AND NOT EXISTS (SELECT 1 FROM records AS child WHERE child.parent = records.id)
"""
"""Only if nobody has used or continued it since the sweep looked."""


class SqliteConversationStore:
    """A `ConversationStore` in the file at `path`, which it may share with other stores and processes.

    `clock` gives the time of use in seconds since the epoch. Every method may raise StoreError.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._database = Database(path, SCHEMA)
        self._clock = clock
        self._secret: bytes | None = None

    async def open(self) -> None:
        """Open the file now instead of at the first call, to hear early of what is wrong with it."""
        await self._database.read(lambda connection: None)

    async def recovered(self) -> bool:
        """False: only a record that fits tells that the disk has room again."""
        return False

    async def tenant_secret(self) -> bytes:
        """The random key for `tenant_key`, made when the file is new; the same for every process on it."""
        if self._secret is None:
            self._secret = await self._database.write(_tenant_secret)
        return self._secret

    async def save(self, record: ResponseRecord) -> None:
        """Insert the record, or replace an unfinal one of the same id; a final one stays as it is.

        A record without anything hidden is not flushed to the disk: no conversation breaks without it.
        """
        body = record_to_json(record)
        now = self._clock()
        await self._database.write(
            lambda connection: _save(connection, record, body, now),
            flushed=record.hidden or bool(record.pending),
        )

    async def find(self, tenant: str, anchors: Sequence[str]) -> dict[str, tuple[ResponseRecord, ...]]:
        """Records by anchor, oldest first, at most 32 for each; anchors without a record are left out."""
        wanted = {storable(anchor): anchor for anchor in anchors}
        if not wanted:
            return {}
        hits, records = await self._database.read(lambda connection: _find(connection, tenant, list(wanted)))
        found: dict[str, list[ResponseRecord]] = {}
        for anchor, seq in hits:
            found.setdefault(wanted[anchor], []).append(records[seq])
        return {anchor: tuple(of_anchor) for anchor, of_anchor in found.items()}

    async def ancestors(self, tenant: str, record_id: str) -> tuple[ResponseRecord, ...]:
        """The chain that ends in the record: root first, the record itself last; empty if unknown."""
        chain, last_used = await self._database.read(
            lambda connection: _ancestors(connection, tenant, record_id)
        )
        now = self._clock()
        if chain and last_used < now - USE_SECONDS:
            await self._mark_used(record_id, now)
        return chain

    async def put_unfinished(self, tenant: str, request_key: str, left: Unfinished) -> None:
        """Keep what a retry of this request inherits, in place of what an older exchange left."""
        row = (storable(tenant), storable(request_key), left.ended, unfinished_to_json(left))
        await self._database.write(
            lambda connection: connection.execute(
                "INSERT INTO unfinished VALUES (?, ?, ?, ?) ON CONFLICT(tenant, request_key) DO UPDATE "
                "SET ended = excluded.ended, body = excluded.body WHERE excluded.ended >= unfinished.ended",
                row,
            )
        )

    async def take_unfinished(self, tenant: str, request_key: str, since: float) -> Unfinished | None:
        """The newest one not older than `since`; it stays until it expires, is replaced or removed."""
        row = await self._database.read(
            lambda connection: connection.execute(
                "SELECT body FROM unfinished WHERE tenant = ? AND request_key = ? AND ended >= ?",
                (storable(tenant), storable(request_key), since),
            ).fetchone()
        )
        return unfinished_from_json(row[0]) if row else None

    async def drop_unfinished(self, tenant: str, request_key: str) -> None:
        """Forget it; unknown keys are ignored."""
        key = (storable(tenant), storable(request_key))
        await self._database.write(
            lambda connection: connection.execute(
                "DELETE FROM unfinished WHERE tenant = ? AND request_key = ?", key
            )
        )

    async def sweep(self, unused_since: float, max_records: int) -> int:
        """Delete chains not used since then, and the longest unused above the count; how many went."""
        await self._database.write(
            lambda connection: connection.execute("DELETE FROM unfinished WHERE ended < ?", (unused_since,))
        )
        stored = await self._database.read(_stored_records)
        victims = expired(stored, unused_since, max_records)
        deleted = 0
        for start in range(0, len(victims), DELETE_BATCH):
            batch = victims[start : start + DELETE_BATCH]
            deleted += await self._database.write(partial(_delete, batch=batch))
        return deleted

    async def close(self) -> None:
        """Wait for calls under way and close the file."""
        await self._database.close()

    async def _mark_used(self, record_id: str, now: float) -> None:
        # The chain is what the caller needs; a file that can be read and not written must not cost it.
        try:
            await self._database.write(
                lambda connection: connection.execute(
                    "UPDATE records SET last_used = max(last_used, ?) WHERE id = ?",
                    (now, storable(record_id)),
                )
            )
        except StoreError as error:
            _log.warning("conversation_not_marked_used", reason=str(error))


def _tenant_secret(connection: sqlite3.Connection) -> bytes:
    connection.execute(
        "INSERT INTO session_meta VALUES ('tenant_secret', ?) ON CONFLICT(key) DO NOTHING",
        (secrets.token_bytes(SECRET_BYTES),),
    )
    (secret,) = connection.execute("SELECT value FROM session_meta WHERE key = 'tenant_secret'").fetchone()
    return bytes(secret)


def _save(connection: sqlite3.Connection, record: ResponseRecord, body: str, now: float) -> None:
    tenant = storable(record.tenant)
    saved = connection.execute(
        _SAVE,
        {
            "id": storable(record.id),
            "tenant": tenant,
            "parent": None if record.parent is None else storable(record.parent),
            "created": record.created,
            "now": now,
            "final": record.final,
            "body": body,
        },
    ).fetchone()
    if saved is None:
        return
    (seq,) = saved
    connection.execute("DELETE FROM anchors WHERE record = ?", (seq,))
    connection.executemany(
        "INSERT OR IGNORE INTO anchors VALUES (?, ?, ?, ?)",
        ((tenant, storable(anchor), record.created, seq) for anchor in record.anchors),
    )


def _find(
    connection: sqlite3.Connection, tenant: str, anchors: list[str]
) -> tuple[list[tuple[str, int]], dict[int, ResponseRecord]]:
    parameters = {"anchors": jsontext.encode(anchors).decode(), "tenant": storable(tenant)}
    hits: list[tuple[str, int]] = connection.execute(_FIND, parameters).fetchall()
    return hits, _load(connection, {seq for _, seq in hits})


def _ancestors(
    connection: sqlite3.Connection, tenant: str, record_id: str
) -> tuple[tuple[ResponseRecord, ...], float]:
    parameters = {"id": storable(record_id), "tenant": storable(tenant)}
    chain = [seq for (seq,) in connection.execute(_CHAIN, parameters)]
    if not chain:
        return (), 0.0
    (last_used,) = connection.execute("SELECT last_used FROM records WHERE seq = ?", (chain[-1],)).fetchone()
    records = _load(connection, chain)
    return tuple(records[seq] for seq in chain), last_used


def _load(connection: sqlite3.Connection, sequence: Iterable[int]) -> dict[int, ResponseRecord]:
    wanted = jsontext.encode(list(sequence)).decode()
    rows = connection.execute(
        "SELECT seq, body FROM records WHERE seq IN (SELECT value FROM json_each(?))", (wanted,)
    )
    return {seq: record_from_json(body) for seq, body in rows}


def _stored_records(connection: sqlite3.Connection) -> list[StoredRecord]:
    rows = connection.execute("SELECT id, parent, last_used FROM records ORDER BY seq DESC")
    return [StoredRecord(*row) for row in rows]


def _delete(connection: sqlite3.Connection, batch: Sequence[StoredRecord]) -> int:
    return sum(connection.execute(_DELETE, (record.id, record.last_used)).rowcount for record in batch)
