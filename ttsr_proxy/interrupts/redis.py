"""The interrupt log in Redis: shared by the replicas behind a load balancer."""

from __future__ import annotations

import asyncio
import dataclasses
import struct
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import structlog

from ttsr_proxy.interrupts.cursor import Place, from_cursor, to_cursor
from ttsr_proxy.interrupts.facts import Counter, Facts, facts_from_json, facts_of, facts_to_json, selects
from ttsr_proxy.interrupts.masking import mask_record
from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.interrupts.record_json import record_from_json, record_to_json
from ttsr_proxy.interrupts.redis_scripts import ARRIVED, DELETE, LIST, TIME_BYTES, WRITE
from ttsr_proxy.interrupts.store import InterruptFilter, Key, Page, Tally
from ttsr_proxy.redis import RedisDatabase, RedisUrl

BATCH: Final = 500
"""Records that are read or deleted at once, so that nothing keeps the server from others for long."""

FEED_BATCH: Final = 200
"""Records that `follow` reads at once."""

_log = structlog.get_logger(__name__)

_INDEXED: Final = ("request", "conversation", "outcome", "rule", "action")
"""Fields with a sorted set for each value, the most telling first."""

_LOG: Final = b"ttsr:log:all"
_ARRIVALS: Final = b"ttsr:log:arrived"
_SEQ: Final = b"ttsr:log:seq"
_IDS: Final = b"ttsr:log:ids"
_ENTRY: Final = b"ttsr:entry:"

_ENTRY_AT: Final = 2 * TIME_BYTES


class RedisInterruptStore:
    """An `InterruptStore` on the server behind `url`, shared by every replica that uses it.

    `poll_seconds` is how soon `follow` sees what was added. Every method may raise StoreError.
    """

    def __init__(self, url: RedisUrl, *, poll_seconds: float = 0.5) -> None:
        self._database = RedisDatabase(url)
        self._poll_seconds = poll_seconds
        self._in_order = asyncio.Lock()
        self._starting: set[asyncio.Task[int]] = set()

    async def open(self) -> None:
        """Connect now, to hear early that the server cannot be used."""
        await self._database.ping()

    async def add(self, records: Sequence[InterruptRecord]) -> None:
        """Append records, masked; one whose id is there already is left as it is."""
        # Connections overtake each other: an update must not arrive before what it changes.
        async with self._in_order:
            # A feed that was asked for before starts before what is added now.
            if self._starting:
                await asyncio.wait(self._starting)
            for record in records:
                await self._write(mask_record(record), b"")

    async def update(self, record_id: str, **changes: Any) -> None:
        """Set fields of a record; unknown ids are ignored.

        Raises TypeError on a field that a record does not have, ValueError on a value that it cannot have.
        """
        async with self._in_order:
            while (record := _read(body := await self._body(record_id))) is not None:
                changed = mask_record(dataclasses.replace(record, **{**changes, "id": record.id}))
                record_from_json(record_to_json(changed))
                # Another replica may have changed it meanwhile: then its change is read and kept.
                if await self._write(changed, body or b""):
                    return

    async def get(self, record_id: str) -> InterruptRecord | None:
        """The record of this id, or None."""
        return _read(await self._body(record_id))

    async def ids(self, prefix: str, limit: int) -> tuple[str, ...]:
        """At most so many ids that begin with the prefix, in no order."""
        beginning = _entry(prefix)
        # No text has the byte FF.
        found = await self._database.call(
            lambda client: client.zrangebylex(_IDS, b"[" + beginning, b"(" + beginning + b"\xff", 0, limit)
        )
        return tuple(entry.removeprefix(_ENTRY).decode("utf-8", "surrogatepass") for entry in found)

    async def page(self, where: InterruptFilter, limit: int, cursor: str | None) -> Page:
        """Newest first. Raises ValueError on a cursor that this store did not give."""
        before = None if cursor is None else from_cursor(cursor)
        members: list[bytes] = []
        async for member, _ in self._selected(where, before, first=limit + 1):
            members.append(member)
            # One more than asked for tells whether there is a next page.
            if len(members) > limit:
                break
        shown = members[:limit]
        records = map(_read, await self._bodies(shown))
        following = to_cursor(_place(shown[-1])) if shown and len(members) > limit else None
        return Page(tuple(record for record in records if record is not None), following)

    async def tally(
        self,
        where: InterruptFilter,
        by: Sequence[Key],
        *,
        width: float = 3600.0,
        latest: int | None = None,
    ) -> list[Tally]:
        """How many records there are of each combination of the keys; in no order."""
        counter = Counter(tuple(by), width)
        async for _, facts in self._selected(where):
            counter.add(facts)
        return counter.tallies(latest)

    def follow(self, where: InterruptFilter, after: str | None) -> AsyncIterator[InterruptRecord]:
        """Records in order of arrival, from every replica; ends only when cancelled.

        It starts behind the record whose id is `after`; without one, or when that is gone, behind everything
        that was there at the call.
        """
        start = asyncio.create_task(self._position(after))
        self._starting.add(start)
        start.add_done_callback(self._starting.discard)
        return self._feed(where, start)

    async def sweep(self, older_than: float, max_records: int, undelivered_before: float) -> int:
        """Delete what is older and the oldest above the count; how many records went.

        Pending records older than `undelivered_before` become `undelivered`.
        """
        old = InterruptFilter(outcome="pending", until=undelivered_before)
        lost = [member async for member, facts in self._selected(old) if facts.time < undelivered_before]
        for start in range(0, len(lost), FEED_BATCH):
            for record in map(_read, await self._bodies(lost[start : start + FEED_BATCH])):
                if record is not None:
                    await self.update(record.id, outcome="undelivered")
        deleted = 0
        limit = b"(" + _sortable(older_than)
        while gone := await self._database.call(
            lambda client: client.zrangebylex(_LOG, "-", limit, 0, BATCH)
        ):
            deleted += await self._database.run(DELETE, [_LOG, _ARRIVALS, _IDS], gone)
        while gone := await self._surplus(max_records):
            deleted += await self._database.run(DELETE, [_LOG, _ARRIVALS, _IDS], gone)
        return deleted

    async def close(self) -> None:
        """Close the connections."""
        await self._database.close()

    async def _surplus(self, max_records: int) -> list[bytes]:
        surplus = min(await self._database.call(lambda client: client.zcard(_LOG)) - max_records, BATCH)
        if surplus <= 0:
            return []
        oldest: list[bytes] = await self._database.call(lambda client: client.zrange(_LOG, 0, surplus - 1))
        return oldest

    async def _body(self, record_id: str) -> bytes | None:
        entry = _entry(record_id)
        body: bytes | None = await self._database.call(lambda client: client.hget(entry, "body"))
        return body

    async def _bodies(self, members: Sequence[bytes]) -> list[bytes | None]:
        async def read(client: Any) -> list[bytes | None]:
            pipeline = client.pipeline(transaction=False)
            for member in members:
                pipeline.hget(member[_ENTRY_AT:], "body")
            return list(await pipeline.execute())

        return await self._database.call(read)

    async def _write(self, record: InterruptRecord, instead_of: bytes) -> bool:
        # Hexadecimal, since the list of indexes travels as JSON.
        indexes = ",".join(f'"{_index(name, getattr(record, name)).decode()}"' for name in _INDEXED)
        facts = facts_to_json(facts_of(record))
        written = await self._database.run(
            WRITE,
            [_entry(record.id), _LOG, _ARRIVALS, _SEQ, _IDS],
            [instead_of, record_to_json(record), facts, _sortable(record.time), f"[{indexes}]"],
        )
        return bool(written)

    async def _selected(
        self, where: InterruptFilter, before: Place | None = None, *, first: int = BATCH
    ) -> AsyncIterator[tuple[bytes, Facts]]:
        """Members and facts of what the filter selects, newest first, behind the place.

        `first` is how many are read before it is known whether more are needed.
        """
        # Bounds are inclusive with "[" and exclusive with "("; "g" is behind every hexadecimal digit.
        upper = b"+" if where.until is None else b"(" + _sortable(where.until) + b"g"
        if before is not None:
            place = b"(" + _sortable(before.time) + b"%016x" % before.seq
            upper = place if upper == b"+" else min(place, upper)
        lower = b"-" if where.since is None else b"[" + _sortable(where.since)
        given = ((name, getattr(where, name)) for name in _INDEXED)
        index = next((_index(name, value) for name, value in given if value is not None), _LOG)
        size = first
        while True:
            members, all_facts = await self._database.run(LIST, [index], [upper, lower, size])
            for member, text in zip(members, all_facts, strict=True):
                facts = _read_facts(text)
                if facts is not None and selects(where, facts):
                    yield member, facts
            if len(members) < size:
                return
            size = BATCH
            upper = b"(" + members[-1]

    async def _position(self, after: str | None) -> int:
        if after is not None:
            entry = _entry(after)
            found = await self._database.call(lambda client: client.hget(entry, "seq"))
            if found is not None:
                return int(found)
        return int(await self._database.call(lambda client: client.get(_SEQ)) or 0)

    async def _feed(self, where: InterruptFilter, start: asyncio.Task[int]) -> AsyncIterator[InterruptRecord]:
        position = await start
        while True:
            position, bodies = await self._database.run(ARRIVED, [_ARRIVALS, _SEQ], [position, FEED_BATCH])
            for record in map(_read, bodies):
                if record is not None and selects(where, facts_of(record)):
                    yield record
            if not bodies:
                await asyncio.sleep(self._poll_seconds)


def _read(body: bytes | None) -> InterruptRecord | None:
    """The record; one that this version cannot read is logged and costs only itself."""
    if body is None:
        return None
    try:
        return record_from_json(body.decode())
    except ValueError as error:
        _log.warning("interrupt_record_unreadable", reason=str(error))
        return None


def _read_facts(text: bytes | None) -> Facts | None:
    if text is None:
        return None
    try:
        return facts_from_json(text)
    except ValueError as error:
        _log.warning("interrupt_record_unreadable", reason=str(error))
        return None


def _place(member: bytes) -> Place:
    return Place(_time(member[:TIME_BYTES]), int(member[TIME_BYTES:_ENTRY_AT], 16))


def _entry(record_id: str) -> bytes:
    return _ENTRY + record_id.encode("utf-8", "surrogatepass")


def _index(name: str, value: str) -> bytes:
    return b"ttsr:log:%s:%s" % (name.encode(), value.encode("utf-8", "surrogatepass").hex().encode())


_SIGN: Final = 1 << 63
_ALL_BITS: Final = (1 << 64) - 1


def _sortable(time: float) -> bytes:
    """The time as 16 hexadecimal digits whose order as text is that of the times."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", time + 0.0))
    return b"%016x" % (bits ^ (_ALL_BITS if bits & _SIGN else _SIGN))


def _time(digits: bytes) -> float:
    bits = int(digits, 16)
    (time,) = struct.unpack(">d", struct.pack(">Q", bits ^ (_SIGN if bits & _SIGN else _ALL_BITS)))
    return float(time)
