"""The shared state file: versions, several writers, kill -9, and errors that say what to do."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from ttsr_proxy import sqlite as state
from ttsr_proxy.errors import StoreError
from ttsr_proxy.interrupts.sqlite import SqliteInterruptStore
from ttsr_proxy.interrupts.store import InterruptFilter
from ttsr_proxy.sessions.sqlite import SqliteConversationStore
from ttsr_proxy.sqlite import Database, Schema

ITEMS = Schema("items", ("CREATE TABLE items(name TEXT)",))


def add(name: str) -> Any:
    return lambda connection: connection.execute("INSERT INTO items VALUES (?)", (name,)) and None


def names(connection: sqlite3.Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM items ORDER BY rowid")]


def write_file(path: Path, data: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(data)


def damage(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "state.db"


async def test_the_file_and_its_directory_are_made_for_the_owner_only(path: Path) -> None:
    database = Database(path, ITEMS)
    await database.write(add("a"))
    modes = [stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()]
    assert set(modes) == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    await database.close()


async def test_a_failed_write_leaves_nothing_behind(path: Path) -> None:
    database = Database(path, ITEMS)

    def fail(connection: sqlite3.Connection) -> None:
        add("half")(connection)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await database.write(fail)
    await database.write(add("whole"))
    assert await database.read(names) == ["whole"]
    await database.close()


async def test_closing_twice_is_harmless_and_later_calls_say_so(path: Path) -> None:
    database = Database(path, ITEMS)
    await database.write(add("a"))
    await database.close()
    await database.close()
    with pytest.raises(StoreError, match="closed already"):
        await database.read(names)


async def test_stores_of_both_kinds_share_one_file(path: Path) -> None:
    sessions, interrupts = SqliteConversationStore(path), SqliteInterruptStore(path)
    await asyncio.gather(sessions.open(), interrupts.open())
    assert (await interrupts.page(InterruptFilter(), 10, None)).items == ()
    await sessions.close()
    await interrupts.close()


async def test_a_new_release_adds_its_tables_to_an_old_file(path: Path) -> None:
    old = Database(path, ITEMS)
    await old.write(add("kept"))
    await old.close()
    new = Database(path, Schema("items", (*ITEMS.migrations, "ALTER TABLE items ADD COLUMN size INTEGER")))
    assert await new.read(names) == ["kept"]
    await new.close()
    again = Database(path, ITEMS)
    with pytest.raises(StoreError, match=r"newer ttsr-proxy \(items version 2, this one knows up to 1\)"):
        await again.read(names)
    await again.close()


async def test_a_newer_file_layout_is_refused(path: Path) -> None:
    database = Database(path, ITEMS)
    await database.write(add("a"))
    await database.close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version=99")
    connection.close()
    refused = Database(path, ITEMS)
    with pytest.raises(StoreError, match=f"{path}.*newer ttsr-proxy"):
        await refused.read(names)
    await refused.close()


async def test_a_database_of_another_program_is_not_touched(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs(a)")
    connection.close()
    database = Database(path, ITEMS)
    with pytest.raises(StoreError, match="another program"):
        await database.read(names)
    await database.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("theirs",)]
    connection.close()


async def test_a_file_that_is_no_database_is_refused_and_works_once_moved_away(path: Path) -> None:
    write_file(path, b"not a database, but long enough to have a header of its own" * 10)
    database = Database(path, ITEMS)
    with pytest.raises(StoreError, match=f"{path}.*not a SQLite database; move it away"):
        await database.read(names)
    os.rename(path, f"{path}.bad")
    await database.write(add("a"))
    assert await database.read(names) == ["a"]
    await database.close()


async def test_a_damaged_database_is_reported_as_such(path: Path) -> None:
    database = Database(path, ITEMS)
    await database.write(lambda connection: [add("x" * 3000)(connection) for _ in range(50)])
    await database.close()
    damage(path)
    database = Database(path, ITEMS)
    with pytest.raises(StoreError, match="damaged; move it away"):
        await database.read(names)
    await database.close()


async def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    database = Database(tmp_path / "file" / "state.db", ITEMS)
    with pytest.raises(StoreError, match=r"state\.db.*directory exists and is writable"):
        await database.read(names)
    await database.close()


async def test_a_full_disk_is_reported_and_reading_goes_on(path: Path) -> None:
    database = Database(path, ITEMS)
    await database.write(add("a"))
    await database.read(lambda connection: connection.execute("PRAGMA max_page_count=1") and None)
    with pytest.raises(StoreError, match="disk is full; free some space"):
        await database.write(add("x" * 1_000_000))
    assert await database.read(names) == ["a"]
    await database.close()


async def test_a_read_only_database_is_reported_and_can_be_read(path: Path) -> None:
    database = Database(path, ITEMS)
    await database.write(add("a"))
    await database.read(lambda connection: connection.execute("PRAGMA query_only=ON") and None)
    with pytest.raises(StoreError, match="make the file and its directory writable"):
        await database.write(add("b"))
    assert await database.read(names) == ["a"]
    await database.close()


async def test_a_locked_file_is_reported_and_reading_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "LOCK_SECONDS", 0.05)
    database = Database(path, ITEMS)
    await database.write(add("a"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked"):
        await database.write(add("b"))
    assert await database.read(names) == ["a"]
    other.execute("ROLLBACK")
    other.close()
    await database.write(add("c"))
    assert await database.read(names) == ["a", "c"]
    await database.close()


async def test_calls_wait_in_vain_for_a_lock_only_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "LOCK_SECONDS", 0.2)

    def patience(connection: sqlite3.Connection) -> int:
        (milliseconds,) = connection.execute("PRAGMA busy_timeout").fetchone()
        return int(milliseconds)

    database = Database(path, ITEMS)
    await database.write(add("a"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    seen = [await database.read(patience)]
    for _ in range(2):
        with pytest.raises(StoreError, match="locked"):
            await database.write(add("b"))
        seen.append(await database.read(patience))
    other.execute("ROLLBACK")
    other.close()
    await database.write(add("c"))
    assert [*seen, await database.read(patience)] == [200, 50, 50, 200]
    await database.close()


WRITER = textwrap.dedent(
    """
    import asyncio, sys
    from pathlib import Path
    from ttsr_proxy.sessions.record import ResponseRecord
    from ttsr_proxy.sessions.sqlite import SqliteConversationStore

    async def main(path, owner, count):
        store = SqliteConversationStore(Path(path))
        parent = None
        for number in range(int(count)):
            name = f"{owner}-{number}"
            await store.save(ResponseRecord(
                id=name, parent=parent, tenant="t", project="p", conversation="c", created=float(number),
                turn=number, anchors=(name,), tail=({"text": "x" * 5000},),
            ))
            parent = name
            print(name, flush=True)
        await store.close()

    asyncio.run(main(*sys.argv[1:]))
    """
)


def start_writer(path: Path, owner: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), owner, str(count)], stdout=subprocess.PIPE, text=True
    )


async def test_what_was_saved_before_kill_9_is_there_afterwards(path: Path) -> None:
    writer = start_writer(path, "killed", 1_000_000)
    assert writer.stdout is not None
    saved = [writer.stdout.readline().strip() for _ in range(20)]
    os.kill(writer.pid, signal.SIGKILL)
    saved += [line.strip() for line in writer.stdout if line.endswith("\n")]
    assert writer.wait() == -signal.SIGKILL
    writer.stdout.close()
    store = SqliteConversationStore(path)
    chain = await store.ancestors("t", saved[-1])
    await store.close()
    assert [record.id for record in chain] == saved


async def test_several_processes_write_one_file_at_once(path: Path) -> None:
    writers = [start_writer(path, owner, 60) for owner in ("a", "b", "c")]
    for writer in writers:
        assert writer.communicate(timeout=60)
        assert writer.returncode == 0
    store = SqliteConversationStore(path)
    chains = [await store.ancestors("t", f"{owner}-59") for owner in ("a", "b", "c")]
    await store.close()
    assert [len(chain) for chain in chains] == [60, 60, 60]


async def test_only_writes_that_must_outlast_the_machine_wait_for_its_disk(path: Path) -> None:
    database = Database(path, ITEMS)

    def level(connection: sqlite3.Connection) -> int:
        (number,) = connection.execute("PRAGMA synchronous").fetchone()
        return int(number)

    def fail(connection: sqlite3.Connection) -> None:
        raise ZeroDivisionError

    full, normal = 2, 1
    assert await database.write(level) == full
    assert await database.write(level, flushed=False) == normal
    with pytest.raises(ZeroDivisionError):
        await database.write(fail, flushed=False)
    assert await database.write(level) == full
    await database.close()


async def test_a_program_that_reads_beside_the_stores_takes_nothing_away_from_them(path: Path) -> None:
    first, second = Database(path, ITEMS), Database(path, Schema("more", ("CREATE TABLE more(name TEXT)",)))
    await first.write(add("a"))
    await second.read(lambda connection: None)
    # The last connection that closes removes the write-ahead log; this one is not the last.
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); "
        "print([n for (n,) in c.execute('SELECT name FROM items')]); c.close()"
    )

    def beside() -> str:
        done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert await asyncio.to_thread(beside) == "['a']"
    await first.write(add("b"))
    assert await asyncio.to_thread(beside) == "['a', 'b']"
    await first.close()
    await second.close()


async def test_a_missing_file_behind_a_link_is_made_for_the_owner_only(tmp_path: Path) -> None:
    target, link = tmp_path / "target.db", tmp_path / "link.db"
    link.symlink_to(target)
    database = Database(link, ITEMS)
    await database.write(add("a"))
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    await database.close()
