"""Tasks in an SQLite file beside the libraries, so that they outlast the process."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ttsr_proxy.errors import StoreError
from ttsr_proxy.jsontext import decode, encode
from ttsr_proxy.library.tasks.owners import Owner
from ttsr_proxy.library.tasks.record import FINISHED, Task, TaskStatus
from ttsr_proxy.sqlite import Database, Schema, storable

KEPT_SECONDS: Final[Mapping[TaskStatus, float]] = {
    "completed": 7 * 86_400.0,
    "cancelled": 7 * 86_400.0,
    "failed": 30 * 86_400.0,
}
"""How long finished tasks are kept."""

_SCHEMA = Schema(
    "library_tasks",
    (
        """
        CREATE TABLE library_tasks(
            id TEXT PRIMARY KEY, user TEXT NOT NULL, type TEXT NOT NULL, status TEXT NOT NULL,
            stage TEXT NOT NULL, resource_id TEXT NOT NULL, created_at REAL NOT NULL,
            updated_at REAL NOT NULL, owner INTEGER NOT NULL, payload TEXT, meta TEXT NOT NULL, result TEXT,
            error TEXT);
        CREATE INDEX library_tasks_by_user ON library_tasks(user, created_at)
        """,
        """
        ALTER TABLE library_tasks ADD COLUMN held_by TEXT NOT NULL DEFAULT '';
        ALTER TABLE library_tasks DROP COLUMN owner
        """,
    ),
)
_COLUMNS = "id, user, type, status, stage, resource_id, created_at, updated_at, payload, meta, result, error"
_CHANGEABLE = ("status", "stage", "meta", "result", "error", "payload")


class TaskStore:
    """Every method may raise StoreError."""

    def __init__(self, root: Path) -> None:
        self._path = root / "tasks.sqlite"
        self._database = Database(self._path, _SCHEMA)
        self._owner = Owner(root / "owners")
        self.ended: Counter[TaskStatus] = Counter()
        """Tasks that this process brought to an end, by status."""

    @property
    def exists(self) -> bool:
        """Whether there have ever been tasks: a proxy that compiles nothing creates no file."""
        return self._path.exists()

    async def close(self) -> None:
        await self._database.close()
        await asyncio.to_thread(self._owner.leave)

    async def add(self, task: Task) -> None:
        values = (
            task.id, task.user, task.type, task.status, task.stage, task.resource_id, task.created_at,
            task.updated_at, _json(task.payload), _json(task.meta), _json(task.result), task.error,
        )  # fmt: skip

        def insert(connection: sqlite3.Connection) -> None:
            row = (*values, self._appeared())
            connection.execute(
                f"INSERT INTO library_tasks({_COLUMNS}, held_by) VALUES ({', '.join('?' * len(row))})",  # noqa: S608
                row,
            )

        await self._database.write(insert)

    async def change(
        self, task_id: str, *, only_if: tuple[TaskStatus, ...] = (), take: bool = False, **changes: Any
    ) -> Task | None:
        """Change fields of a task, if it has one of the given statuses; None if it has not.

        `take` makes this process its owner.
        """
        assert all(name in _CHANGEABLE for name in changes)
        values = [
            value if isinstance(value, str) or value is None else _json(value) for value in changes.values()
        ]
        assignments = "".join(f"{name} = ?, " for name in changes)
        owner = "held_by = ?, " if take else ""
        condition = f" AND status IN ({', '.join('?' * len(only_if))})" if only_if else ""

        def update(connection: sqlite3.Connection) -> Task | None:
            row = connection.execute(
                f"UPDATE library_tasks SET {assignments}{owner}updated_at = ?"  # noqa: S608
                f" WHERE id = ?{condition} RETURNING {_COLUMNS}",
                (*values, *([self._appeared()] if take else ()), time.time(), task_id, *only_if),
            ).fetchone()
            return None if row is None else _task(row)

        changed = await self._database.write(update)
        if changed is not None and changes.get("status") in FINISHED:
            self.ended[changes["status"]] += 1
        return changed

    async def get(self, user: str, task_id: str) -> Task | None:
        """The user's task; None if there is none, or if it is another's."""
        found = await self._select("id = ? AND user = ?", (task_id, user), 1)
        return found[0] if found else None

    async def page(
        self, user: str, *, task_type: str | None, status: str | None, resource_id: str | None, limit: int
    ) -> list[Task]:
        """The user's tasks, newest first."""
        filters = {"type": task_type, "status": status, "resource_id": resource_id}
        given = {name: value for name, value in filters.items() if value is not None}
        where = " AND ".join(["user = ?", *(f"{name} = ?" for name in given)])
        return await self._select(where, (user, *given.values()), limit)

    async def waiting(self, user: str) -> int:
        """How many of the user's tasks are not finished."""

        def count(connection: sqlite3.Connection) -> int:
            row = connection.execute(
                "SELECT count(*) FROM library_tasks WHERE user = ? AND status IN ('pending', 'running')",
                (user,),
            ).fetchone()
            return int(row[0])

        return await self._database.read(count)

    async def left_behind(self) -> list[Task]:
        """Unfinished tasks whose process is gone, oldest first."""

        def select(connection: sqlite3.Connection) -> list[Task]:
            rows = connection.execute(
                f"SELECT {_COLUMNS}, held_by FROM library_tasks"  # noqa: S608
                " WHERE status IN ('pending', 'running', 'cancelling') ORDER BY created_at"
            ).fetchall()
            running = {name: self._owner.runs(name) for name in {row[-1] for row in rows} if name}
            return [_task(row[:-1]) for row in rows if not running.get(row[-1])]

        return await self._database.read(select)

    async def sweep(self) -> None:
        """Delete what has been finished for long enough."""
        now = time.time()

        def delete(connection: sqlite3.Connection) -> None:
            for status, seconds in KEPT_SECONDS.items():
                connection.execute(
                    "DELETE FROM library_tasks WHERE status = ? AND updated_at < ?", (status, now - seconds)
                )

        await self._database.write(delete)

    def _appeared(self) -> str:
        """This process's name as an owner; only where something may be owned does it leave a file."""
        try:
            self._owner.appear()
        except OSError as error:
            raise StoreError(f"{self._path.parent} cannot be written: {error.strerror}") from error
        return self._owner.name

    async def _select(self, where: str, values: tuple[Any, ...], limit: int) -> list[Task]:
        def select(connection: sqlite3.Connection) -> list[Task]:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM library_tasks WHERE {where}"  # noqa: S608
                " ORDER BY created_at DESC, id DESC LIMIT ?",
                (*values, limit),
            ).fetchall()
            return [_task(row) for row in rows]

        return await self._database.read(select)


def _task(row: tuple[Any, ...]) -> Task:
    task_id, user, kind, status, stage, resource, created, updated, payload, meta, result, error = row
    return Task(
        id=task_id,
        user=user,
        type=kind,
        status=status,
        stage=stage,
        resource_id=resource,
        created_at=created,
        updated_at=updated,
        payload=_value(payload),
        meta=_value(meta) or {},
        result=_value(result),
        error=error,
    )


def _json(value: object) -> str | None:
    return None if value is None else storable(encode(value).decode("utf-8", "surrogatepass"))


def _value(text: str | None) -> Any:
    return None if text is None else decode(text)


assert all(status in FINISHED for status in KEPT_SECONDS)
