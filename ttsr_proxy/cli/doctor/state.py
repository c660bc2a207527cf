"""The state file: can it be used, by this version, and is anybody keeping it.

The file is only looked at. Opening a database in WAL mode would write: its `-shm` file is created, and the
last one to close it copies the log back.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from ttsr_proxy.cli.doctor.finding import Finding, fail, ok, warn
from ttsr_proxy.interrupts.schema import SCHEMA as INTERRUPTS
from ttsr_proxy.sessions.schema import SCHEMA as SESSIONS
from ttsr_proxy.sqlite import APPLICATION_ID, FILE_VERSION

_OTHER_FILE = "name another file with --state (TTSR_STATE)"
_MOVE_AWAY = f"move it away together with its -wal and -shm files, and a new one is created, or {_OTHER_FILE}"

_LEAST_FREE = 200 << 20
_LARGE = 4 << 30

_WRITE_LOCK = 120
"""Offset of the write lock's byte in the `-shm` file (https://www.sqlite.org/walformat.html#wal_locks)."""

_LOCK_SECONDS = 1.0
"""A lock that is held all this time is more than a write under way."""

_POLL_SECONDS = 0.02


def of_state(file: Path) -> Iterator[Finding]:
    """The state file at this path, whether it exists or not."""
    directory = next(path for path in file.parents if path.exists())
    if not directory.is_dir() or not os.access(directory, os.W_OK | os.X_OK):
        yield fail(
            f"{directory} cannot be written, so there can be no state in it",
            f"make the directory writable for this user, or {_OTHER_FILE}",
        )
    free = shutil.disk_usage(directory).free
    if free < _LEAST_FREE:
        yield warn(f"only {_mebibytes(free)} are free in {directory}", f"free some space, or {_OTHER_FILE}")
    if not file.exists():
        yield ok(f"{file} does not exist yet; `serve` creates it")
        return
    if not file.is_file():
        yield fail(f"{file} is no file", _OTHER_FILE)
        return
    if not os.access(file, os.R_OK | os.W_OK):
        yield fail(f"{file} cannot be read and written", f"make it so for this user, or {_OTHER_FILE}")
        return
    mode = stat.S_IMODE(file.stat().st_mode)
    if mode & 0o077:
        yield warn(f"others can read {file}, which holds conversations", f"chmod 600 {file}")
    yield from _of_database(file)
    yield from _of_lock(file)


def _of_database(file: Path) -> Iterator[Finding]:
    # Without shared memory beside it nobody has it open, and SQLite may be told that nothing will change.
    mode = "mode=ro" if _beside(file, "-shm").exists() else "mode=ro&immutable=1"
    try:
        connection = sqlite3.connect(f"{file.absolute().as_uri()}?{mode}", uri=True)
        try:
            yield from _of_content(file, connection)
        finally:
            connection.close()
    except sqlite3.Error as error:
        yield fail(f"{file} cannot be read as a database: {error}", _MOVE_AWAY)


def _of_content(file: Path, connection: sqlite3.Connection) -> Iterator[Finding]:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if not tables:
        yield ok(f"{file} is empty; `serve` fills it")
        return
    if application != APPLICATION_ID:
        yield fail(f"{file} is a database of another program", _OTHER_FILE)
        return
    (layout,) = connection.execute("PRAGMA user_version").fetchone()
    found = {"file": layout, **dict(connection.execute("SELECT name, version FROM schemas"))}
    known = {
        "file": FILE_VERSION,
        **{schema.name: len(schema.migrations) for schema in (INTERRUPTS, SESSIONS)},
    }
    newer = [name for name, version in found.items() if version > known.get(name, version)]
    if newer:
        yield fail(
            f"{file} was written by a newer ttsr-proxy ({', '.join(newer)})",
            f"use that release, or {_OTHER_FILE}",
        )
        return
    older = any(found.get(name, 0) < version for name, version in known.items())
    versions = "an older version's, brought up to date at the next start" if older else "this version's"
    (records,) = (
        connection.execute("SELECT count(*) FROM interrupts").fetchone() if INTERRUPTS.name in found else (0,)
    )
    size = sum(path.stat().st_size for path in (file, _beside(file, "-wal")) if path.exists())
    yield ok(f"{file}: {records:,} log entries, {_mebibytes(size)}, its tables are {versions}")
    if size > _LARGE:
        yield warn(
            f"{file} is large ({_mebibytes(size)})",
            "lower retention.days or retention.records, then `VACUUM` it",
        )


def _of_lock(file: Path) -> Iterator[Finding]:
    """Whether a process keeps the write lock. Trying for a moment takes it from nobody: others wait."""
    shared = _beside(file, "-shm")
    if not shared.exists():
        return
    deadline = time.monotonic() + _LOCK_SECONDS
    with shared.open("r+b") as opened:
        while True:
            try:
                fcntl.lockf(opened, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _WRITE_LOCK)
            except OSError:
                if time.monotonic() < deadline:
                    time.sleep(_POLL_SECONDS)
                    continue
                yield fail(
                    f"another process has kept {file} locked for {_LOCK_SECONDS:.0f} s",
                    f"end that process (`fuser {file}` names it), or {_OTHER_FILE}",
                )
                return
            fcntl.lockf(opened, fcntl.LOCK_UN, 1, _WRITE_LOCK)
            yield ok("nobody keeps it locked")
            return


def _beside(file: Path, suffix: str) -> Path:
    return file.with_name(file.name + suffix)


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MiB"
