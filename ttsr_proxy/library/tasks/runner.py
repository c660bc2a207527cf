"""Runs tasks in the background: one at a time for each user, few at a time for all."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from ttsr_proxy.errors import StoreError
from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.library.errors import Exhausted, FailedPrecondition, LibraryError, NotFound
from ttsr_proxy.library.tasks.record import FINISHED, Task, shown_error
from ttsr_proxy.library.tasks.store import TaskStore

AT_ONCE = 2
"""Tasks of all users that run at the same time."""

QUEUE = 32
"""Unfinished tasks that one user may have."""

HEED_SECONDS = 1.0
"""How often a running task looks whether another process was told to cancel it."""

FINAL_STAGE = "writing"
"""From this stage on a task cannot be cancelled."""

_log = structlog.get_logger()


class Progress(Protocol):
    """What running work tells of itself, and what it is told besides its task."""

    @property
    def secret(self) -> str | None:
        """What the request that asked for the task left in memory for it."""

    async def stage(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a task's work."""

    result: JsonObject
    meta: JsonObject = field(default_factory=dict)


Work = Callable[[Task, Progress], Awaitable[Done]]
Finished = Callable[[Task], Awaitable[Done | None]]
"""What a task that a crash interrupted had already achieved; None if nothing."""


class TaskRunner:
    """The tasks of all users. `work` does one; it may raise LibraryError."""

    def __init__(self, store: TaskStore, work: Work, finished: Finished) -> None:
        self._store = store
        self._work = work
        self._finished = finished
        self._running: dict[str, asyncio.Task[None]] = {}
        self._tails: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._secrets: dict[str, str] = {}
        """By task, until it is over. Never stored, so that a restart loses them."""

    async def start(self) -> None:
        """Take up what an earlier process left: waiting tasks run, interrupted ones are settled."""
        await self._store.sweep()
        for task in await self._store.left_behind():
            if task.status == "pending":
                await self._store.change(task.id, take=True, stage="queued")
                self._enqueue(task)
                continue
            done = await self._finished(task)
            if done is not None:
                await self._complete(task, done)
            elif task.status == "cancelling":
                await self._store.change(task.id, status="cancelled", stage="cancelled", payload=None)
            else:
                await self._fail(task, "RULE_COMPILE_FAILED", "interrupted by a restart; nothing was written")

    async def close(self) -> None:
        """Stop. Waiting tasks stay waiting for the next process."""
        for running in self._running.values():
            running.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        await self._store.close()

    async def submit(
        self, user: str, task_type: str, resource_id: str, payload: JsonObject, secret: str | None = None
    ) -> Task:
        """Queue a task. Raises Exhausted when the user has too many unfinished ones.

        `secret` is kept in memory until the task is over, and shown to nobody but its work.
        """
        if await self._store.waiting(user) >= QUEUE:
            raise Exhausted(f"{QUEUE} tasks are waiting or running already; try again later")
        task = new_task(user, task_type, resource_id, payload)
        await self._store.add(task)
        if secret is not None:
            self._secrets[task.id] = secret
        self._enqueue(task)
        return task

    async def get(self, user: str, task_id: str) -> Task:
        task = await self._store.get(user, task_id)
        if task is None:
            raise NotFound(f"there is no task {task_id[:100]}")
        return task

    async def cancel(self, user: str, task_id: str) -> Task:
        """Cancel a task that is waiting or running; again for one being cancelled changes nothing.

        Raises NotFound, and FailedPrecondition for a task that is finished or is being written.
        """
        task = await self.get(user, task_id)
        if task.status in ("cancelling", "cancelled"):
            return task
        if task.status in FINISHED or task.stage == FINAL_STAGE:
            raise FailedPrecondition(f"task {task_id} is {task.status} and cannot be cancelled")
        waiting = await self._store.change(
            task_id, only_if=("pending",), status="cancelled", stage="cancelled", payload=None
        )
        if waiting is not None:
            return waiting
        cancelling = await self._store.change(task_id, only_if=("running",), status="cancelling")
        running = self._running.get(task_id)
        if running is not None and cancelling is not None and cancelling.stage != FINAL_STAGE:
            running.cancel()
        return cancelling or await self.get(user, task_id)

    def _enqueue(self, task: Task) -> None:
        before = self._tails.get(task.user)
        running = asyncio.create_task(self._run(task, before))
        self._running[task.id] = self._tails[task.user] = running
        running.add_done_callback(lambda _: self._forget(task, running))

    def _forget(self, task: Task, running: asyncio.Task[None]) -> None:
        self._running.pop(task.id, None)
        self._secrets.pop(task.id, None)
        if self._tails.get(task.user) is running:
            del self._tails[task.user]

    async def _run(self, task: Task, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        async with self._slots:
            claimed = await self._store.change(
                task.id, only_if=("pending",), take=True, status="running", stage="starting"
            )
            if claimed is None:
                return
            heeding = asyncio.create_task(self._heed_cancelling(task))
            progress = _Progress(self._store, task.id, self._secrets.get(task.id))
            try:
                try:
                    done = await self._work(claimed, progress)
                finally:
                    heeding.cancel()
            except asyncio.CancelledError:
                await self._settle_cancelled(task)
            except (LibraryError, StoreError) as error:
                code = error.code if isinstance(error, LibraryError) else "INTERNAL"
                await self._fail(task, code, str(error))
            except Exception:
                # The boundary of a background task: whatever happened must be visible in its record.
                _log.exception("library_task_failed", task=task.id)
                await self._fail(task, "INTERNAL", "an unexpected error; the proxy's log has the details")
            else:
                await self._complete(task, done)

    async def _heed_cancelling(self, task: Task) -> None:
        """Stop the task when another process, which got the request, has set it to be cancelled."""
        while True:
            await asyncio.sleep(HEED_SECONDS)
            with contextlib.suppress(StoreError):
                current = await self._store.get(task.user, task.id)
                if current is not None and current.status == "cancelling" and current.stage != FINAL_STAGE:
                    self._running[task.id].cancel()
                    return

    async def _settle_cancelled(self, task: Task) -> None:
        current = await self._store.get(task.user, task.id)
        if current is not None and current.status == "cancelling":
            await self._store.change(task.id, status="cancelled", stage="cancelled", payload=None)
            return
        # The process is stopping: the next one decides by what was achieved.
        raise asyncio.CancelledError

    async def _complete(self, task: Task, done: Done) -> None:
        await self._store.change(
            task.id,
            status="completed",
            stage="completed",
            result=done.result,
            meta=done.meta,
            error=None,
            payload=None,
        )

    async def _fail(self, task: Task, code: str, reason: str) -> None:
        await self._store.change(
            task.id,
            status="failed",
            stage="failed",
            error=shown_error(f"{code}: {reason}"),
            meta={"error_code": code},
            payload=None,
        )


def new_task(user: str, task_type: str, resource_id: str, payload: JsonObject | None = None) -> Task:
    """A task that waits. Its id needs no quoting in a URL."""
    now = time.time()
    return Task(
        f"{task_type}_{secrets.token_hex(10)}",
        user,
        task_type,
        "pending",
        "queued",
        resource_id,
        now,
        now,
        payload,
    )


class _Progress:
    def __init__(self, store: TaskStore, task_id: str, secret: str | None) -> None:
        self._store = store
        self._id = task_id
        self._secret = secret

    @property
    def secret(self) -> str | None:
        return self._secret

    async def stage(self, name: str) -> None:
        """Tell the stage. Raises CancelledError if the task is to be cancelled."""
        if await self._store.change(self._id, only_if=("running",), stage=name) is None:
            raise asyncio.CancelledError
