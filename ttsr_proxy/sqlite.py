"""The SQLite file in which a proxy keeps its state: opening it, its versions, its worker thread, its errors.

Several stores, and several processes, share one file. Each store has its own connection, used only from a
thread of its own, so that a slow disk never blocks the event loop.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from ttsr_proxy.errors import StoreError

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

APPLICATION_ID: Final = 0x54545352
"""`TTSR` in the file's header: tells our files from other programs' databases."""

FILE_VERSION: Final = 1
"""`PRAGMA user_version`: the layout that all stores share (the table of their own versions)."""

LOCK_SECONDS: Final = 5.0
"""How long a call waits for other processes that write to the file."""

LOCKED_SECONDS: Final = 0.05
"""The same once a call has waited in vain, until one succeeds: calls stand in a row, traffic behind them."""

_FILE_TABLES: Final = "CREATE TABLE IF NOT EXISTS schemas(name TEXT PRIMARY KEY, version INTEGER NOT NULL)"

_ADVICE: Final = {
    sqlite3.SQLITE_BUSY: (
        f"another process has kept it locked for {LOCK_SECONDS:.0f} seconds; "
        "end that process, or give this proxy its own file with --state"
    ),
    sqlite3.SQLITE_LOCKED: "it is locked; try again, or give this proxy its own file with --state",
    sqlite3.SQLITE_READONLY: "it cannot be written; make the file and its directory writable, or use --state",
    sqlite3.SQLITE_PERM: "access was refused; make the file and its directory writable, or use --state",
    sqlite3.SQLITE_CANTOPEN: (
        "it cannot be opened; check that its directory exists and is writable, or use --state"
    ),
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
    sqlite3.SQLITE_IOERR: "the disk failed to read or write it; check the disk and its free space",
    sqlite3.SQLITE_CORRUPT: (
        "it is damaged; move it away together with its -wal and -shm files, and a new one is created"
    ),
    sqlite3.SQLITE_NOTADB: (
        "it is not a SQLite database; move it away together with its -wal and -shm files, "
        "and a new one is created, or use --state"
    ),
}
"""What went wrong and what to do, by primary result code (https://www.sqlite.org/rescode.html)."""

_REOPEN_AFTER: Final = frozenset(
    {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_READONLY,
    }
)
"""Codes after which the connection is dropped: the file may be another one by the next call."""

_RETRY_SECONDS: Final = 0.02


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of one store: the scripts that lead from nothing to today's version, in order."""

    name: str
    migrations: tuple[str, ...]


class Database:
    """One connection to the file at `path`, on one thread.

    Nothing is opened before the first call, so that it may be created before a fork. A call that fails raises
    StoreError and leaves the database usable: the next call tries again, on a new connection where needed.
    """

    def __init__(self, path: Path, schema: Schema) -> None:
        self._path = path
        self._schema = schema
        self._executor: ThreadPoolExecutor | None = None
        self._connection: sqlite3.Connection | None = None
        self._patience = LOCK_SECONDS
        self._closed = False

    async def read(self, work: Work[T]) -> T:
        """Run `work` in one read transaction: all its queries see the same state."""
        return await asyncio.wrap_future(self.submit_read(work))

    async def write(self, work: Work[T], *, flushed: bool = True) -> T:
        """Run `work` in one write transaction, durable once this returns. `work` may run more than once.

        Without `flushed` it outlasts the end of this process, but not that of the machine, and nobody
        waits for the disk.
        """
        return await asyncio.wrap_future(self._submit(work, "BEGIN IMMEDIATE", flushed=flushed))

    def submit_read(self, work: Work[T]) -> Future[T]:
        """Queue a read now, behind all calls made before; for callers that wait for it later."""
        return self._submit(work, "BEGIN")

    async def close(self) -> None:
        """Wait for calls under way and close the file. Closing twice is harmless; other calls then fail."""
        self._closed = True
        executor, self._executor = self._executor, None
        if executor is None:
            return
        await asyncio.wrap_future(executor.submit(self._disconnect))
        executor.shutdown(wait=False)

    def _submit(self, work: Work[T], begin: str, *, flushed: bool = True) -> Future[T]:
        if self._closed:
            raise StoreError(f"The state file {self._path} was closed already.")
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix=f"sqlite-{self._schema.name}")
        return self._executor.submit(self._run, work, begin, flushed)

    def _run(self, work: Work[T], begin: str, flushed: bool) -> T:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                done = self._attempt(work, begin, flushed)
                if begin != "BEGIN":
                    self._wait_for_locks(LOCK_SECONDS)
                return done
            except sqlite3.Error as error:
                code = _primary_code(error)
                if code in _REOPEN_AFTER:
                    self._disconnect()
                if code == sqlite3.SQLITE_BUSY and time.monotonic() < deadline:
                    # Some locks (switching to WAL, recovering it) do not wait for the busy timeout.
                    time.sleep(_RETRY_SECONDS)
                    continue
                if code == sqlite3.SQLITE_BUSY:
                    self._wait_for_locks(LOCKED_SECONDS)
                advice = _ADVICE.get(code, "this is unexpected; check the file with `sqlite3 FILE .dump`")
                raise StoreError(f"The state file {self._path} failed ({error}): {advice}.") from error

    def _wait_for_locks(self, seconds: float) -> None:
        if seconds != self._patience:
            self._patience = seconds
            if self._connection is not None:
                self._connection.execute(f"PRAGMA busy_timeout={round(seconds * 1000)}")

    def _attempt(self, work: Work[T], begin: str, flushed: bool) -> T:
        connection = self._connection
        if connection is None:
            connection = self._connection = self._connect()
        if flushed:
            with _transaction(connection, begin):
                return work(connection)
        connection.execute("PRAGMA synchronous=NORMAL")
        try:
            with _transaction(connection, begin):
                return work(connection)
        finally:
            connection.execute("PRAGMA synchronous=FULL")

    def _connect(self) -> sqlite3.Connection:
        self._create_private()
        connection = sqlite3.connect(
            self._path, timeout=self._patience, isolation_level=None, check_same_thread=False
        )
        try:
            # FULL, not NORMAL: a committed record must outlast a power failure too, since upstream may have
            # signed over what it holds. The price is one fsync for each commit; see `write`.
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
                connection.execute(f"PRAGMA {pragma}")
            with _transaction(connection, "BEGIN IMMEDIATE"):
                self._migrate(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _create_private(self) -> None:
        """Create a missing file readable by its owner only: it holds conversations.

        A file that is there is not opened: closing it again would drop the locks that this process's other
        connections hold on it (POSIX), and the next program to close it would remove their write-ahead log.
        """
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(os.path.realpath(self._path), os.O_CREAT | os.O_EXCL | os.O_RDONLY, 0o600))
        except FileExistsError:
            return
        except OSError as error:
            advice = _ADVICE[sqlite3.SQLITE_CANTOPEN]
            raise StoreError(f"The state file {self._path} failed ({error.strerror}): {advice}.") from error

    def _migrate(self, connection: sqlite3.Connection) -> None:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if application != APPLICATION_ID and tables:
            raise StoreError(
                f"The state file {self._path} is a database of another program; "
                "name another file with --state."
            )
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        self._refuse_newer("file", version, FILE_VERSION)
        connection.execute(_FILE_TABLES)
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={FILE_VERSION}")
        name, migrations = self._schema.name, self._schema.migrations
        row = connection.execute("SELECT version FROM schemas WHERE name = ?", (name,)).fetchone()
        done = row[0] if row else 0
        self._refuse_newer(name, done, len(migrations))
        for script in migrations[done:]:
            for statement in _statements(script):
                connection.execute(statement)
        connection.execute(
            "INSERT INTO schemas VALUES (?, ?) ON CONFLICT(name) DO UPDATE SET version = excluded.version",
            (name, len(migrations)),
        )

    def _refuse_newer(self, what: str, found: int, known: int) -> None:
        if found > known:
            raise StoreError(
                f"The state file {self._path} was written by a newer ttsr-proxy ({what} version {found}, "
                f"this one knows up to {known}); use that release, or name another file with --state."
            )

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def storable(text: str) -> str:
    """The text as SQLite can hold it: lone surrogates, which JSON allows and UTF-8 does not, are escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _statements(script: str) -> Iterator[str]:
    """The statements of a script; `executescript` would end the transaction that a migration runs in."""
    return (statement for statement in script.split(";") if statement.strip())


def _primary_code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
