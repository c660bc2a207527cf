"""What every conversation store must do."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ttsr_proxy.redis import RedisUrl
from ttsr_proxy.sessions.record import GivenBlock, PendingReminder, ResponseRecord, ShadowBlock
from ttsr_proxy.sessions.redis import RedisConversationStore
from ttsr_proxy.sessions.sqlite import SqliteConversationStore
from ttsr_proxy.sessions.store import MAX_PER_ANCHOR, ConversationStore, Unfinished


@dataclasses.dataclass
class Bench:
    """Stores on one place, as so many processes would have them, and the clock that they share."""

    make: Callable[[], ConversationStore]
    now: float = 1_000.0


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.redis)])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    if request.param == "redis":
        url = RedisUrl(request.getfixturevalue("redis_url"))
        made = Bench(lambda: RedisConversationStore(url, clock=lambda: made.now))
    else:
        made = Bench(lambda: SqliteConversationStore(tmp_path / "state.db", clock=lambda: made.now))
    return made


@pytest.fixture
async def store(bench: Bench) -> AsyncIterator[ConversationStore]:
    made = bench.make()
    yield made
    await made.close()


def record(name: str, parent: str | None = None, **changes: Any) -> ResponseRecord:
    fields: dict[str, Any] = {
        "id": name,
        "parent": parent,
        "tenant": "tenant",
        "project": "project",
        "conversation": "conversation",
        "created": 1.0,
        "turn": 0,
        "anchors": (f"call:{name}",),
    }
    return ResponseRecord(**{**fields, **changes})


FULL = record(
    "full",
    "parent",
    tail=({"type": "text", "text": "reminder", "n": 1.5},),
    given=(GivenBlock("text", None, "hello"), GivenBlock("tool_call", "call:1", '{"a":1}')),
    produced=(
        ShadowBlock("assistant", "text", {"type": "text", "text": "x"}, 0),
        ShadowBlock("user", "text", {"deep": [{"a": None}, True, 12345678901234567890123]}, None),
    ),
    reminded=("no-eval",),
    pending=(PendingReminder("no-any", "text", "i1"),),
    interrupts=2,
    hidden=True,
    without_thinking=True,
    prompt="<generic-rules>",
)


async def test_a_record_comes_back_as_it_was_saved(store: ConversationStore) -> None:
    await store.save(FULL)
    assert await store.find("tenant", ["call:full"]) == {"call:full": (FULL,)}
    assert await store.ancestors("tenant", "full") == (FULL,)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ANY_TEXT = st.text(st.characters(categories=["Cs", "L", "N", "Cc"]), max_size=8)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    value=st.dictionaries(ANY_TEXT, JSON | ANY_TEXT, max_size=4),
    names=st.lists(ANY_TEXT, min_size=3, max_size=3, unique=True),
)
async def test_any_json_and_any_name_comes_back(
    bench: Bench, value: dict[str, Any], names: list[str]
) -> None:
    store = bench.make()
    name, tenant, anchor = names
    saved = record(name, tenant=tenant, anchors=(anchor,), tail=(value,))
    await store.save(dataclasses.replace(saved, final=False))
    await store.save(saved)
    found = await store.ancestors(tenant, name)
    await store.sweep(bench.now + 1, 0)
    await store.close()
    assert found == (saved,)


async def test_an_unfinal_record_is_replaced_together_with_its_anchors(store: ConversationStore) -> None:
    await store.save(record("a", final=False, anchors=("old", "both")))
    final = record("a", anchors=("both", "new"), interrupts=1)
    await store.save(final)
    assert await store.find("tenant", ["old", "both", "new"]) == {"both": (final,), "new": (final,)}


async def test_a_final_record_is_never_changed(store: ConversationStore) -> None:
    await store.save(record("a"))
    await store.save(record("a", interrupts=9, anchors=("other",)))
    assert await store.find("tenant", ["call:a", "other"]) == {"call:a": (record("a"),)}


async def test_records_of_one_anchor_come_oldest_first_and_at_most_32(store: ConversationStore) -> None:
    for number in reversed(range(40)):
        await store.save(record(f"r{number}", created=float(number), anchors=("text:same",)))
    found = await store.find("tenant", ["text:same"])
    assert [r.created for r in found["text:same"]] == [float(number) for number in range(MAX_PER_ANCHOR)]


async def test_thousands_of_anchors_are_found_at_once(store: ConversationStore) -> None:
    await store.save(record("a", anchors=tuple(f"call:{n}" for n in range(0, 5000, 500))))
    found = await store.find("tenant", [f"call:{n}" for n in range(5000)])
    assert sorted(found) == sorted(f"call:{n}" for n in range(0, 5000, 500))
    assert await store.find("tenant", []) == {}


async def test_a_chain_comes_root_first_and_a_fork_follows_its_own_path(store: ConversationStore) -> None:
    for name, parent in (("root", None), ("a", "root"), ("b", "a"), ("fork", "root")):
        await store.save(record(name, parent))
    assert [r.id for r in await store.ancestors("tenant", "b")] == ["root", "a", "b"]
    assert [r.id for r in await store.ancestors("tenant", "fork")] == ["root", "fork"]
    assert await store.ancestors("tenant", "unknown") == ()


async def test_a_circle_of_parents_ends(store: ConversationStore) -> None:
    await store.save(record("a", "b"))
    await store.save(record("b", "a"))
    assert {r.id for r in await store.ancestors("tenant", "a")} == {"a", "b"}


async def test_one_tenant_never_sees_anothers_records(store: ConversationStore) -> None:
    await store.save(record("a"))
    await store.save(record("b", "a", tenant="other"))
    await store.save(record("a", tenant="other", final=False))
    assert await store.find("other", ["call:a"]) == {}
    assert await store.ancestors("other", "a") == ()
    assert [r.id for r in await store.ancestors("other", "b")] == ["b"]


async def test_another_store_on_the_same_place_sees_everything(bench: Bench) -> None:
    first, second = bench.make(), bench.make()
    await first.save(record("a"))
    assert await second.ancestors("tenant", "a") == (record("a"),)
    assert await first.tenant_secret() == await second.tenant_secret()
    assert len(await first.tenant_secret()) == 32
    await first.close()
    await second.close()


async def test_several_stores_may_write_at_once(bench: Bench) -> None:
    stores = [bench.make() for _ in range(4)]
    names = [[f"{owner}-{number}" for number in range(25)] for owner in range(4)]
    await asyncio.gather(
        *(store.save(record(name)) for store, own in zip(stores, names, strict=True) for name in own)
    )
    found = await stores[0].find("tenant", [f"call:{name}" for own in names for name in own])
    assert len(found) == 100
    for store in stores:
        await store.close()


async def test_what_an_unfinished_exchange_left_stays_until_it_expires_or_is_dropped(
    store: ConversationStore,
) -> None:
    left = Unfinished(ended=100.0, per_rule={"no-eval": 2}, total=3, blocked_by="no-eval")
    await store.put_unfinished("tenant", "key", left)
    assert await store.take_unfinished("tenant", "key", 100.0) == left
    assert await store.take_unfinished("tenant", "key", 100.0) == left
    assert await store.take_unfinished("tenant", "key", 100.1) is None
    assert await store.take_unfinished("other", "key", 0.0) is None
    await store.drop_unfinished("tenant", "key")
    await store.drop_unfinished("tenant", "key")
    assert await store.take_unfinished("tenant", "key", 0.0) is None


async def test_the_newest_unfinished_exchange_of_a_request_counts(store: ConversationStore) -> None:
    newer = Unfinished(ended=200.0, per_rule={}, total=2)
    await store.put_unfinished("tenant", "key", Unfinished(ended=100.0, per_rule={}, total=1))
    await store.put_unfinished("tenant", "key", newer)
    await store.put_unfinished("tenant", "key", Unfinished(ended=150.0, per_rule={}, total=9))
    assert await store.take_unfinished("tenant", "key", 0.0) == newer


async def test_retention_deletes_unused_chains_and_spares_the_ancestors_of_used_records(
    bench: Bench, store: ConversationStore
) -> None:
    for name, parent in (
        ("root", None),
        ("used", "root"),
        ("unused", "root"),
        ("leaf", "unused"),
        ("x", None),
    ):
        await store.save(record(name, parent))
    bench.now += 1_000
    assert len(await store.ancestors("tenant", "used")) == 2
    assert await store.sweep(bench.now - 500, 100) == 3
    assert [r.id for r in await store.ancestors("tenant", "used")] == ["root", "used"]
    found = await store.find("tenant", ["call:unused", "call:leaf", "call:x", "call:root"])
    assert list(found) == ["call:root"]


async def test_retention_above_the_count_deletes_the_longest_unused_tails_first(
    bench: Bench, store: ConversationStore
) -> None:
    for number in range(10):
        bench.now += 100
        await store.save(record(f"r{number}", f"r{number - 1}" if number % 5 else None))
    bench.now += 100
    await store.ancestors("tenant", "r4")
    assert await store.sweep(0.0, 7) == 3
    assert len(await store.ancestors("tenant", "r4")) == 5
    assert [r.id for r in await store.ancestors("tenant", "r6")] == ["r5", "r6"]
    assert await store.ancestors("tenant", "r7") == ()


async def test_retention_of_many_records_leaves_what_is_still_used(
    bench: Bench, store: ConversationStore
) -> None:
    for number in range(1_200):
        await store.save(record(f"r{number}"))
    bench.now += 1_000
    await store.save(record("fresh"))
    assert await store.sweep(bench.now - 1, 10_000) == 1_200
    assert await store.ancestors("tenant", "fresh") == (record("fresh"),)


async def test_expired_leftovers_of_unfinished_exchanges_are_swept(store: ConversationStore) -> None:
    await store.put_unfinished("tenant", "key", Unfinished(ended=100.0, per_rule={}, total=1))
    await store.sweep(101.0, 10)
    assert await store.take_unfinished("tenant", "key", 0.0) is None


async def test_a_chain_that_cannot_be_marked_used_is_given_all_the_same(bench: Bench, tmp_path: Path) -> None:
    store = SqliteConversationStore(tmp_path / "state.db", clock=lambda: bench.now)
    await store.save(record("a"))
    await store._database.read(lambda connection: connection.execute("PRAGMA query_only=ON") and None)
    bench.now += 3_600
    assert await store.ancestors("tenant", "a") == (record("a"),)
    await store.close()
