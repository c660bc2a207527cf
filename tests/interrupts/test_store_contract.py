"""What every store of the interrupt log must do."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from redis_server import everything_in

from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.interrupts.redis import RedisInterruptStore
from ttsr_proxy.interrupts.sqlite import SqliteInterruptStore
from ttsr_proxy.interrupts.store import InterruptFilter, InterruptStore, Tally
from ttsr_proxy.redis import RedisUrl

MakeRecord = Callable[..., InterruptRecord]
MakeStore = Callable[[], InterruptStore]
ReadAll = Callable[[], bytes]

EVERYTHING = InterruptFilter()


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.redis)])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStore:
    """Makes stores on one place, as so many processes would have them."""
    if request.param == "redis":
        url = RedisUrl(request.getfixturevalue("redis_url"))
        return lambda: RedisInterruptStore(url, poll_seconds=0.01)
    return lambda: SqliteInterruptStore(tmp_path / "state.db", poll_seconds=0.01)


@pytest.fixture
async def store(make_store: MakeStore) -> AsyncIterator[InterruptStore]:
    made = make_store()
    yield made
    await made.close()


@pytest.fixture
def everything_stored(request: pytest.FixtureRequest, make_store: MakeStore, tmp_path: Path) -> ReadAll:
    """Gives all that the place of the stores holds."""
    if isinstance(make_store(), RedisInterruptStore):
        url = request.getfixturevalue("redis_url")
        return lambda: everything_in(url)
    return lambda: b"".join(file.read_bytes() for file in tmp_path.iterdir())


async def ids(store: InterruptStore, where: InterruptFilter = EVERYTHING, limit: int = 50) -> list[str]:
    """The ids of all pages, page by page."""
    found: list[str] = []
    cursor = None
    while True:
        page = await store.page(where, limit, cursor)
        assert len(page.items) <= limit
        found.extend(record.id for record in page.items)
        cursor = page.next
        if cursor is None:
            return found


async def test_ids_are_found_by_their_beginning(store: InterruptStore, make_record: MakeRecord) -> None:
    names = ("a1", "a12", "a2", "b1", "A1", "a1%", "a1_", "a1*")
    await store.add([make_record(id=name) for name in names])
    assert set(await store.ids("a1", 10)) == {"a1", "a12", "a1%", "a1_", "a1*"}
    assert await store.ids("a1*", 10) == ("a1*",)
    assert await store.ids("c", 10) == ()
    assert len(await store.ids("", 3)) == 3


async def test_a_record_comes_back_as_it_was_added(store: InterruptStore, make_record: MakeRecord) -> None:
    record = make_record(
        matched="eval(\ud800)",
        paths=("src/a.py", "src/b.py"),
        upstream_requests=("req_1", "req_2"),
        tokens_wasted=300,
        tokens_estimated=True,
        seconds_added=0.25,
        late=True,
    )
    await store.add([record])
    assert await store.get("i1") == record
    assert (await store.page(EVERYTHING, 10, None)).items == (record,)
    assert await store.get("i2") is None


async def test_a_record_added_twice_is_kept_once(store: InterruptStore, make_record: MakeRecord) -> None:
    await store.add([make_record(), make_record(rule="other")])
    await store.add([])
    assert [record.rule for record in (await store.page(EVERYTHING, 10, None)).items] == ["no-eval"]


async def test_nothing_is_stored_unmasked(
    store: InterruptStore, make_record: MakeRecord, everything_stored: ReadAll
) -> None:
    secret = "sk-ant-api03-q7Zp2LxV9rTb4KwN8mJc5HdF1sGy6Ea3"
    await store.add([make_record(matched=secret, violation=f"key = {secret}")])
    await store.update("i1", correction=f"and {secret}", detail=secret)
    record = await store.get("i1")
    assert record is not None
    assert record.correction == "and sk-ant[masked]"
    stored = everything_stored()
    assert b"sk-ant[masked]" in stored
    assert secret.encode() not in stored


async def test_an_update_changes_the_given_fields_and_what_filters_see(
    store: InterruptStore, make_record: MakeRecord
) -> None:
    await store.add([make_record()])
    await store.update("i1", outcome="clean", correction="literal_eval(x)", tokens_wasted=12)
    expected = make_record(outcome="clean", correction="literal_eval(x)", tokens_wasted=12)
    assert await store.get("i1") == expected
    assert await ids(store, InterruptFilter(outcome="clean")) == ["i1"]
    assert await ids(store, InterruptFilter(outcome="pending")) == []
    await store.update("unknown", outcome="clean")


@pytest.mark.parametrize(
    ("changes", "error"), [({"no_such_field": 1}, TypeError), ({"outcome": "wonderful"}, ValueError)]
)
async def test_an_impossible_update_is_an_error_and_changes_nothing(
    store: InterruptStore, make_record: MakeRecord, changes: dict[str, Any], error: type[Exception]
) -> None:
    await store.add([make_record()])
    with pytest.raises(error):
        await store.update("i1", **changes)
    assert await store.get("i1") == make_record()


async def test_a_failed_retry_moves_from_pending_to_failed_with_its_cause(
    store: InterruptStore, make_record: MakeRecord
) -> None:
    await store.add([make_record()])
    await store.update("i1", outcome="failed", detail="upstream could not be reached")
    record = await store.get("i1")
    assert record is not None
    assert (record.outcome, record.detail) == ("failed", "upstream could not be reached")


async def test_pages_come_newest_first_and_stay_stable_while_records_arrive(
    store: InterruptStore, make_record: MakeRecord
) -> None:
    await store.add([make_record(id=f"i{n}", time=float(n // 2)) for n in range(10)])
    first = await store.page(EVERYTHING, 4, None)
    assert [record.id for record in first.items] == ["i9", "i8", "i7", "i6"]
    await store.add([make_record(id="new", time=99.0)])
    second = await store.page(EVERYTHING, 4, first.next)
    assert [record.id for record in second.items] == ["i5", "i4", "i3", "i2"]
    last = await store.page(EVERYTHING, 4, second.next)
    assert [record.id for record in last.items] == ["i1", "i0"]
    assert last.next is None


async def test_a_page_that_ends_with_the_last_record_has_no_next(
    store: InterruptStore, make_record: MakeRecord
) -> None:
    await store.add([make_record(id=f"i{n}") for n in range(4)])
    assert (await store.page(EVERYTHING, 4, None)).next is None
    assert await ids(store, limit=1) == ["i3", "i2", "i1", "i0"]


@pytest.mark.parametrize("cursor", ["", "x", "AAAA", "é" * 8, "_" * 22, "f_gAAAAAAAAAAAAAAAAAAA", "A" * 100])
async def test_a_foreign_cursor_is_a_value_error(store: InterruptStore, cursor: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        await store.page(EVERYTHING, 10, cursor)


FIELDS: dict[str, str] = {
    "rule": "no-any",
    "project": "shop",
    "conversation": "c-7",
    "request": "r-7",
    "model": "opus",
    "client": "codex",
    "source": "tool",
    "action": "blocked",
    "outcome": "failed",
}


@pytest.mark.parametrize("field", FIELDS)
async def test_each_filter_selects_by_its_field(
    store: InterruptStore, make_record: MakeRecord, field: str
) -> None:
    await store.add([make_record(id="other"), make_record(id="wanted", **{field: FIELDS[field]})])
    assert await ids(store, InterruptFilter(**{field: FIELDS[field]})) == ["wanted"]  # type: ignore[arg-type]
    assert await ids(store, InterruptFilter(**{field: "\ud800'--"})) == []  # type: ignore[arg-type]


async def test_paths_are_found_by_a_part_of_them(store: InterruptStore, make_record: MakeRecord) -> None:
    await store.add(
        [
            make_record(id="a", paths=("src/app.py", "src/100%_x.py")),
            make_record(id="b", paths=("docs/a.md",)),
        ]
    )
    assert await ids(store, InterruptFilter(path="app.py")) == ["a"]
    assert await ids(store, InterruptFilter(path="0%_x")) == ["a"]
    assert await ids(store, InterruptFilter(path="%")) == ["a"]
    assert await ids(store, InterruptFilter(path=".")) == ["b", "a"]


async def test_a_time_range_holds_its_ends_and_filters_combine(
    store: InterruptStore, make_record: MakeRecord
) -> None:
    await store.add([make_record(id=f"i{n}", time=float(n), rule=f"r{n % 2}") for n in range(6)])
    assert await ids(store, InterruptFilter(since=1.0, until=4.0)) == ["i4", "i3", "i2", "i1"]
    assert await ids(store, InterruptFilter(since=1.0, until=4.0, rule="r1"), limit=1) == ["i3", "i1"]


async def take(feed: AsyncIterator[InterruptRecord], count: int) -> list[str]:
    async with asyncio.timeout(10):
        return [(await anext(feed)).id for _ in range(count)]


async def test_the_feed_gives_what_arrives_after_the_call(
    store: InterruptStore, make_record: MakeRecord
) -> None:
    await store.add([make_record(id="before")])
    feed = store.follow(EVERYTHING, None)
    await store.add([make_record(id="a", time=9.0), make_record(id="b", time=2.0)])
    assert await take(feed, 2) == ["a", "b"]
    waiting = asyncio.create_task(take(feed, 1))
    await store.add([make_record(id="c")])
    assert await waiting == ["c"]


async def test_the_feed_sees_what_other_processes_add(make_store: MakeStore, make_record: MakeRecord) -> None:
    mine, theirs = make_store(), make_store()
    await mine.add([make_record(id="seen")])
    feed = mine.follow(EVERYTHING, "seen")
    waiting = asyncio.create_task(take(feed, 2))
    await theirs.add([make_record(id="a")])
    await theirs.add([make_record(id="b")])
    assert await waiting == ["a", "b"]
    await mine.close()
    await theirs.close()


async def test_the_feed_goes_on_after_the_given_record(
    store: InterruptStore, make_record: MakeRecord
) -> None:
    await store.add([make_record(id=f"i{n}") for n in range(500)])
    assert await take(store.follow(EVERYTHING, "i9"), 490) == [f"i{n}" for n in range(10, 500)]
    feed = store.follow(EVERYTHING, "swept-long-ago")
    await store.add([make_record(id="new")])
    assert await take(feed, 1) == ["new"]


async def test_the_feed_is_filtered(store: InterruptStore, make_record: MakeRecord) -> None:
    await store.add([make_record(id="i")])
    await store.add([make_record(id=f"i{n}", rule=f"r{n % 3}") for n in range(600)])
    feed = store.follow(InterruptFilter(rule="r2"), "i")
    assert await take(feed, 200) == [f"i{n}" for n in range(2, 600, 3)]
    waiting = asyncio.create_task(take(feed, 1))
    await store.add([make_record(id="no", rule="r1"), make_record(id="yes", rule="r2")])
    assert await waiting == ["yes"]


async def test_a_cancelled_feed_ends(store: InterruptStore) -> None:
    waiting = asyncio.create_task(take(store.follow(EVERYTHING, None), 1))
    await store.page(EVERYTHING, 1, None)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_retention_by_age_and_count(store: InterruptStore, make_record: MakeRecord) -> None:
    await store.add([make_record(id=f"i{n}", time=float(n)) for n in range(1_200)])
    assert await store.sweep(older_than=700.0, max_records=100_000, undelivered_before=0.0) == 700
    assert await store.sweep(older_than=0.0, max_records=2, undelivered_before=0.0) == 498
    assert await ids(store) == ["i1199", "i1198"]
    assert await store.get("i0") is None


async def test_reminders_that_nobody_fetched_become_undelivered(
    store: InterruptStore, make_record: MakeRecord
) -> None:
    records = [make_record(id="old", time=1.0), make_record(id="done", time=1.0, outcome="clean")]
    await store.add([*records, make_record(id="young", time=9.0)])
    assert await store.sweep(older_than=0.0, max_records=10, undelivered_before=5.0) == 0
    outcomes = {record.id: record.outcome for record in (await store.page(EVERYTHING, 9, None)).items}
    assert outcomes == {"old": "undelivered", "done": "clean", "young": "pending"}
    assert await store.get("old") == dataclasses.replace(records[0], outcome="undelivered")
    assert await ids(store, InterruptFilter(outcome="undelivered")) == ["old"]


async def test_the_log_survives_a_restart(make_store: MakeStore, make_record: MakeRecord) -> None:
    first = make_store()
    await first.add([make_record()])
    await first.close()
    second = make_store()
    assert await ids(second) == ["i1"]
    await second.close()


async def test_counts_can_be_of_the_latest_values_of_a_key_alone(
    store: InterruptStore, make_record: MakeRecord
) -> None:
    made = (
        ("a", "interrupted", 1.0),
        ("a", "observed", 9.0),
        ("b", "interrupted", 8.0),
        ("c", "observed", 7.0),
    )
    await store.add(
        [
            make_record(id=f"{name}{at}", conversation=name, action=action, time=at)
            for name, action, at in made
        ]
    )
    keys = ("conversation", "action")
    latest = await store.tally(EVERYTHING, keys, latest=2)
    assert {tally.keys for tally in latest} == {("a", "interrupted"), ("a", "observed"), ("b", "interrupted")}
    # Whether a conversation is one of the latest is a matter of the records that the filter lets through.
    interrupted = await store.tally(InterruptFilter(action="interrupted"), keys, latest=1)
    assert [(tally.keys, tally.count) for tally in interrupted] == [(("b", "interrupted"), 1)]


async def test_records_are_counted_by_their_fields_and_by_periods_of_time(
    store: InterruptStore, make_record: MakeRecord
) -> None:
    await store.add(
        [
            make_record(id="1", time=10.0, rule="a", tokens_wasted=5, seconds_added=0.5),
            make_record(id="2", time=99.0, rule="a", tokens_wasted=7),
            make_record(id="3", time=100.0, rule="a"),
            make_record(id="4", time=20.0, rule="b"),
            make_record(id="5", time=500.0, rule="b"),
        ]
    )
    await store.update("2", false_positive=True, outcome="clean", tokens_wasted=8)
    counted = await store.tally(InterruptFilter(until=200.0), ("rule", "period"), width=100.0)
    assert sorted(counted, key=lambda one: one.keys) == [
        Tally(("a", 0.0), 2, 13, 0.5, 1, 99.0),
        Tally(("a", 100.0), 1, 0, 0.0, 0, 100.0),
        Tally(("b", 0.0), 1, 0, 0.0, 0, 20.0),
    ]
    (clean,) = await store.tally(InterruptFilter(outcome="clean"), ("outcome",))
    assert (clean.keys, clean.count) == (("clean",), 1)
    assert await store.tally(InterruptFilter(rule="c"), ("rule",)) == []
