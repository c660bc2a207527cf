"""What the interrupt log's server does without interruption, in Lua.

A record is a hash: its `body`, its `facts` (what filters and counts look at), its `seq` (the order of
arrival), its `member` (its name in sorted sets) and the `indexes` that it is in. A member is the record's
time as it sorts, its seq and the key of the hash; so the sets are in the order of the log without any scores.
"""

from __future__ import annotations

from typing import Final

TIME_BYTES: Final = 16
"""Of a member: the time as it sorts, and again as many for the seq."""

WRITE: Final = """
local entry, old = KEYS[1], redis.call('HMGET', KEYS[1], 'body', 'seq', 'member', 'indexes')
local seq = old[2]
if ARGV[1] == '' then
    if seq then return 0 end
    seq = redis.call('INCR', KEYS[4])
elseif old[1] ~= ARGV[1] then
    return 0
end
local member = ARGV[4] .. string.format('%016x', seq) .. entry
if old[3] then
    redis.call('ZREM', KEYS[2], old[3])
    for _, index in ipairs(cjson.decode(old[4])) do redis.call('ZREM', index, old[3]) end
end
redis.call('HSET', entry, 'body', ARGV[2], 'facts', ARGV[3])
redis.call('HSET', entry, 'seq', seq, 'member', member, 'indexes', ARGV[5])
redis.call('ZADD', KEYS[2], 0, member)
redis.call('ZADD', KEYS[3], seq, entry)
redis.call('ZADD', KEYS[5], 0, entry)
for _, index in ipairs(cjson.decode(ARGV[5])) do redis.call('ZADD', index, 0, member) end
return 1
"""
"""Add a record, or replace one if nobody has changed it meanwhile.

KEYS: the record, the log, the arrivals, the counter, the ids. ARGV: the body that it replaces (empty: none
may be there), body, facts, the time as it sorts, indexes as JSON.
"""

LIST: Final = """
local members = redis.call('ZREVRANGEBYLEX', KEYS[1], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])
local facts = {}
for place, member in ipairs(members) do
    facts[place] = redis.call('HGET', string.sub(member, 33), 'facts')
end
return {members, facts}
"""
"""Members of a set, newest first, and their facts. ARGV: upper and lower bound, how many."""

ARRIVED: Final = """
local last = tonumber(redis.call('GET', KEYS[2]) or 0)
local after = tonumber(ARGV[1])
if last < after then after = 0 end
local entries = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. after, last, 'LIMIT', 0, ARGV[2])
local position, bodies = last, {}
for place, entry in ipairs(entries) do
    bodies[place] = redis.call('HGET', entry, 'body')
end
if #entries == tonumber(ARGV[2]) then
    position = tonumber(redis.call('ZSCORE', KEYS[1], entries[#entries]))
end
return {position, bodies}
"""
"""Bodies of what arrived after a position, and the new position.

A position above the last record is of a server that has lost everything since; then all is new. ARGV:
position, how many.
"""

DELETE: Final = """
local deleted = 0
for _, member in ipairs(ARGV) do
    local entry = string.sub(member, 33)
    local indexes = redis.call('HGET', entry, 'indexes')
    if indexes then
        for _, index in ipairs(cjson.decode(indexes)) do redis.call('ZREM', index, member) end
        redis.call('DEL', entry)
        redis.call('ZREM', KEYS[2], entry)
        redis.call('ZREM', KEYS[3], entry)
        deleted = deleted + 1
    end
    redis.call('ZREM', KEYS[1], member)
end
return deleted
"""
"""KEYS: the log, the arrivals, the ids. ARGV: members."""
