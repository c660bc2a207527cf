"""Conversations in Redis: shared by the replicas behind a load balancer."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from ttsr_proxy.errors import StoreError
from ttsr_proxy.redis import RedisDatabase, RedisUrl, key
from ttsr_proxy.sessions.record import ResponseRecord
from ttsr_proxy.sessions.record_json import (
    record_from_json,
    record_to_json,
    unfinished_from_json,
    unfinished_to_json,
)
from ttsr_proxy.sessions.retention import StoredRecord, expired
from ttsr_proxy.sessions.store import MAX_CHAIN, MAX_PER_ANCHOR, USE_SECONDS, Unfinished
from ttsr_proxy.sessions.tenant import SECRET_BYTES

BATCH: Final = 500
"""Records that a sweep reads or deletes at once, so that it never keeps other replicas waiting."""

SECRET_SECONDS: Final = 10.0
"""How long the tenants' secret is good before the server is asked again."""

_RECORD: Final = b"ttsr:record:"
_SHARED: Final = ("ttsr:records:order", "ttsr:records:used", "ttsr:records:seq")
_UNFINISHED: Final = "ttsr:unfinished"

_SAVE: Final = """
local id, record = ARGV[1], ARGV[8] .. ARGV[1]
local old = redis.call('HMGET', record, 'final', 'tenant', 'seq', 'parent')
local seq = old[3]
if seq then
    if old[1] == '1' or old[2] ~= ARGV[2] then return 0 end
    for _, anchor in ipairs(redis.call('SMEMBERS', record .. ':anchors')) do
        redis.call('ZREM', anchor, id)
    end
    redis.call('DEL', record .. ':anchors')
    if old[4] ~= '' then redis.call('SREM', ARGV[8] .. string.sub(old[4], 2) .. ':children', id) end
else
    seq = redis.call('INCR', KEYS[3])
end
redis.call('HSET', record, 'seq', seq, 'tenant', ARGV[2], 'parent', ARGV[3])
redis.call('HSET', record, 'final', ARGV[5], 'body', ARGV[6])
if ARGV[3] ~= '' then redis.call('SADD', ARGV[8] .. string.sub(ARGV[3], 2) .. ':children', id) end
redis.call('ZADD', KEYS[1], seq, id)
redis.call('ZADD', KEYS[2], ARGV[7], id)
for place = 9, #ARGV do
    redis.call('ZADD', ARGV[place], ARGV[4], id)
    redis.call('SADD', record .. ':anchors', ARGV[place])
end
return 1
"""
"""ARGV: id, tenant, parent (`=ID` or empty), created, final, body, now, prefix of records, anchors' keys."""

_FIND: Final = """
local hits, bodies, known = {}, {}, {}
for place = 3, #ARGV do
    for _, id in ipairs(redis.call('ZRANGE', ARGV[place], 0, ARGV[2] - 1)) do
        local body = not known[id] and redis.call('HGET', ARGV[1] .. id, 'body')
        if body then
            bodies[#bodies + 1] = body
            known[id] = #bodies
        end
        if known[id] then hits[#hits + 1] = {place - 3, known[id] - 1} end
    end
end
return {hits, bodies}
"""
"""ARGV: prefix of records, most records of an anchor, anchors' keys."""

_CHAIN: Final = """
local bodies, seen, id = {}, {}, ARGV[1]
while #bodies < tonumber(ARGV[4]) and not seen[id] do
    local record = redis.call('HMGET', ARGV[3] .. id, 'tenant', 'body', 'parent')
    if record[1] ~= ARGV[2] then break end
    seen[id] = true
    bodies[#bodies + 1] = record[2]
    if record[3] == '' then break end
    id = string.sub(record[3], 2)
end
local used = redis.call('ZSCORE', KEYS[1], ARGV[1])
if #bodies > 0 and used and tonumber(used) < tonumber(ARGV[5]) - tonumber(ARGV[6]) then
    -- The chain is what the caller needs; a server that takes no writes must not cost it.
    redis.pcall('ZADD', KEYS[1], 'XX', 'GT', ARGV[5], ARGV[1])
end
return bodies
"""
"""ARGV: id, tenant, prefix of records, longest chain, now, seconds between two marks of use."""

_DELETE: Final = """
local deleted = 0
for place = 2, #ARGV, 2 do
    local id, record = ARGV[place], ARGV[1] .. ARGV[place]
    local used = redis.call('ZSCORE', KEYS[2], id)
    local unused = used and tonumber(used) == tonumber(ARGV[place + 1])
    if unused and redis.call('SCARD', record .. ':children') == 0 then
        for _, anchor in ipairs(redis.call('SMEMBERS', record .. ':anchors')) do
            redis.call('ZREM', anchor, id)
        end
        local parent = redis.call('HGET', record, 'parent')
        if parent and parent ~= '' then
            redis.call('SREM', ARGV[1] .. string.sub(parent, 2) .. ':children', id)
        end
        redis.call('DEL', record, record .. ':anchors')
        redis.call('ZREM', KEYS[1], id)
        redis.call('ZREM', KEYS[2], id)
        deleted = deleted + 1
    end
end
return deleted
"""
"""Only what nobody has used or continued since the sweep looked.

ARGV: prefix of records, ids and last uses.
"""

_AGREE: Final = """
redis.call('SET', KEYS[1], ARGV[1], 'NX')
return redis.call('GET', KEYS[1])
"""

_LEAVE: Final = """
local old = redis.call('ZSCORE', KEYS[2], KEYS[1])
if old and tonumber(old) > tonumber(ARGV[1]) then return end
redis.call('SET', KEYS[1], ARGV[2])
redis.call('ZADD', KEYS[2], ARGV[1], KEYS[1])
"""

_TAKE: Final = """
local ended = redis.call('ZSCORE', KEYS[2], KEYS[1])
if ended and tonumber(ended) >= tonumber(ARGV[1]) then return redis.call('GET', KEYS[1]) end
"""

_DROP: Final = """
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], KEYS[1])
"""

_EXPIRE: Final = """
for _, left in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[1])) do
    redis.call('DEL', left)
    redis.call('ZREM', KEYS[1], left)
end
"""


class RedisConversationStore:
    """A `ConversationStore` on the server behind `url`, shared by every replica that uses it.

    `clock` gives the time of use in seconds since the epoch. How much a crash of the server costs is its own
    persistence setting. Every method may raise StoreError.
    """

    def __init__(self, url: RedisUrl, *, clock: Callable[[], float] = time.time) -> None:
        self._database = RedisDatabase(url)
        self._clock = clock
        self._secret: bytes | None = None
        self._secret_due = 0.0

    async def open(self) -> None:
        """Connect now, to hear early that the server cannot be used."""
        await self._database.ping()

    async def recovered(self) -> bool:
        """Whether the server takes something small again."""
        try:
            await self._database.call(lambda client: client.set("ttsr:checked", repr(self._clock())))
        except StoreError:
            return False
        return True

    async def tenant_secret(self) -> bytes:
        """The random key for `tenant_key`, made by whoever asks first.

        It is asked for again from time to time: a server that lost everything gets the key that this replica
        knows, and replicas that know different ones agree.
        """
        now = time.monotonic()
        if self._secret is None or now >= self._secret_due:
            proposed = self._secret or secrets.token_bytes(SECRET_BYTES)
            try:
                self._secret = bytes(await self._database.run(_AGREE, ["ttsr:tenant_secret"], [proposed]))
            except StoreError:
                if self._secret is None:
                    raise
            self._secret_due = now + SECRET_SECONDS
        return self._secret

    async def save(self, record: ResponseRecord) -> None:
        """Insert the record, or replace an unfinal one of the same id; a final one stays as it is."""
        parent = b"" if record.parent is None else b"=" + _bytes(record.parent)
        fields = [
            *(_bytes(record.id), _bytes(record.tenant), parent, repr(record.created), int(record.final)),
            *(record_to_json(record), repr(self._clock()), _RECORD),
        ]
        anchors = [key("anchor", record.tenant, anchor) for anchor in record.anchors]
        await self._database.run(_SAVE, _SHARED, [*fields, *anchors])

    async def find(self, tenant: str, anchors: Sequence[str]) -> dict[str, tuple[ResponseRecord, ...]]:
        """Records by anchor, oldest first, at most 32 for each; anchors without a record are left out."""
        wanted = list(dict.fromkeys(anchors))
        if not wanted:
            return {}
        keys = [key("anchor", tenant, anchor) for anchor in wanted]
        hits, bodies = await self._database.run(_FIND, [], [_RECORD, MAX_PER_ANCHOR, *keys])
        records = [record_from_json(body.decode()) for body in bodies]
        found: dict[str, list[ResponseRecord]] = {}
        for place, body in hits:
            found.setdefault(wanted[place], []).append(records[body])
        return {anchor: tuple(of_anchor) for anchor, of_anchor in found.items()}

    async def ancestors(self, tenant: str, record_id: str) -> tuple[ResponseRecord, ...]:
        """The chain that ends in the record: root first, the record itself last; empty if unknown."""
        arguments = [_bytes(record_id), _bytes(tenant), _RECORD, MAX_CHAIN, repr(self._clock()), USE_SECONDS]
        bodies = await self._database.run(_CHAIN, [_SHARED[1]], arguments)
        return tuple(record_from_json(body.decode()) for body in reversed(bodies))

    async def put_unfinished(self, tenant: str, request_key: str, left: Unfinished) -> None:
        """Keep what a retry of this request inherits, in place of what an older exchange left."""
        place = [key("unfinished", tenant, request_key), _UNFINISHED]
        await self._database.run(_LEAVE, place, [repr(left.ended), unfinished_to_json(left)])

    async def take_unfinished(self, tenant: str, request_key: str, since: float) -> Unfinished | None:
        """The newest one not older than `since`; it stays until it expires, is replaced or removed."""
        place = [key("unfinished", tenant, request_key), _UNFINISHED]
        body = await self._database.run(_TAKE, place, [repr(since)])
        return None if body is None else unfinished_from_json(body.decode())

    async def drop_unfinished(self, tenant: str, request_key: str) -> None:
        """Forget it; unknown keys are ignored."""
        await self._database.run(_DROP, [key("unfinished", tenant, request_key), _UNFINISHED], [])

    async def sweep(self, unused_since: float, max_records: int) -> int:
        """Delete chains not used since then, and the longest unused above the count; how many went."""
        await self._database.run(_EXPIRE, [_UNFINISHED], [repr(unused_since)])
        deleted = 0
        victims = expired(await self._stored_records(), unused_since, max_records)
        for start in range(0, len(victims), BATCH):
            batch = victims[start : start + BATCH]
            pairs = [part for record in batch for part in (_bytes(record.id), repr(record.last_used))]
            deleted += await self._database.run(_DELETE, _SHARED, [_RECORD, *pairs])
        return deleted

    async def close(self) -> None:
        """Close the connections."""
        await self._database.close()

    async def _stored_records(self) -> list[StoredRecord]:
        ids = await self._database.call(lambda client: client.zrevrange(_SHARED[0], 0, -1))
        stored: list[StoredRecord] = []
        for start in range(0, len(ids), BATCH):
            batch = ids[start : start + BATCH]
            stored.extend(await self._database.call(partial(_read, ids=batch)))
        return stored


async def _read(client: Any, ids: Sequence[bytes]) -> list[StoredRecord]:
    pipeline = client.pipeline(transaction=False)
    for name in ids:
        pipeline.zscore(_SHARED[1], name)
        pipeline.hget(_RECORD + name, "parent")
    answers = await pipeline.execute()
    return [
        StoredRecord(_text(name), _text(parent[1:]) if parent else None, used)
        for name, used, parent in zip(ids, answers[::2], answers[1::2], strict=True)
        if used is not None
    ]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")
