"""What `doctor` says of the state file."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from many_interrupts import many_interrupts

from ttsr_proxy.cli.doctor import state
from ttsr_proxy.cli.doctor.state import of_state
from ttsr_proxy.interrupts.sqlite import SqliteInterruptStore
from ttsr_proxy.sessions.sqlite import SqliteConversationStore


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store with three entries that nobody has open."""
    path = tmp_path / "state.db"

    async def fill() -> None:
        conversations, log = SqliteConversationStore(path), SqliteInterruptStore(path)
        await conversations.open()
        await log.add(list(many_interrupts(3, 1_700_000_000.0, 1.0)))
        await log.close()
        await conversations.close()

    asyncio.run(fill())
    return path


def levels(file: Path) -> list[str]:
    return [finding.level for finding in of_state(file)]


def texts(file: Path) -> str:
    return "\n".join(finding.what for finding in of_state(file))


def test_a_file_that_does_not_exist_is_fine_where_it_can_be_created(tmp_path: Path) -> None:
    file = tmp_path / "a/b/state.db"
    assert levels(file) == ["ok"]
    assert not file.parent.exists()


def test_a_sound_file_is_told_with_its_size_and_version(file: Path) -> None:
    (finding,) = of_state(file)
    assert finding.level == "ok"
    assert "3 log entries" in finding.what
    assert "this version's" in finding.what


def test_looking_changes_nothing(file: Path) -> None:
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in file.parent.iterdir()}
    list(of_state(file))
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in file.parent.iterdir()} == before


async def test_a_file_in_use_is_read_too(file: Path) -> None:
    log = SqliteInterruptStore(file)
    await log.add(list(many_interrupts(4, 1_700_000_000.0, 1.0)))
    found = await asyncio.to_thread(lambda: list(of_state(file)))
    await log.close()
    assert [finding.level for finding in found] == ["ok", "ok"]
    assert "4 log entries" in found[0].what


def test_a_directory_that_cannot_be_written_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert levels(tmp_path / "state.db") == ["fail", "ok"]


def test_a_place_below_a_file_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "fail" in levels(tmp_path / "file/state.db")


def test_a_file_that_cannot_be_written_is_a_failure(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != file)
    assert levels(file) == ["fail"]


def test_a_directory_in_its_place_is_a_failure(tmp_path: Path) -> None:
    assert levels(tmp_path) == ["fail"]


def test_little_free_space_is_a_warning(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_LEAST_FREE", 1 << 62)
    assert levels(file) == ["warn", "ok"]


def test_a_large_file_is_a_warning(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_LARGE", 1)
    assert levels(file) == ["ok", "warn"]


def test_a_file_that_others_can_read_is_a_warning(file: Path) -> None:
    file.chmod(0o644)
    assert [finding.mend for finding in of_state(file) if finding.level == "warn"] == [f"chmod 600 {file}"]


def test_a_file_that_is_no_database_is_a_failure(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    file.write_text("no database" * 1000)
    file.chmod(0o600)
    (finding,) = of_state(file)
    assert (finding.level, "move it away" in finding.mend) == ("fail", True)


def test_a_database_of_another_program_is_a_failure(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE other(x)")
    file.chmod(0o600)
    (finding,) = of_state(file)
    assert (finding.level, "another program" in finding.what) == ("fail", True)


@pytest.mark.parametrize(("change", "level", "text"), [(+1, "fail", "newer"), (-1, "ok", "older")])
def test_tables_of_another_version_are_told(file: Path, change: int, level: str, text: str) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE schemas SET version = version + ? WHERE name = 'interrupts'", (change,))
    connection.close()
    (finding,) = of_state(file)
    assert (finding.level, text in finding.what) == (level, True)


def test_a_lock_that_another_process_keeps_is_a_failure(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_LOCK_SECONDS", 0.0)
    keeper = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); "
        "c.execute('BEGIN IMMEDIATE'); print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", keeper, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = list(of_state(file))
        process.communicate()
    assert [finding.level for finding in found] == ["ok", "fail"]
    assert "kept" in found[1].what
