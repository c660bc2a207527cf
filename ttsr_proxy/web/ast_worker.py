"""ast-grep in its own process: it holds the interpreter while it parses, and hostile source can crash it."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import structlog

from ttsr_proxy.triggers.ast import AstCheck, AstHit
from ttsr_proxy.triggers.ruleset import RuleSet

DEADLINE_SECONDS = 5.0
"""How long the jobs of one block may take together, after the worker has started."""

START_SECONDS = 30.0

_log = structlog.get_logger()


class AstWorker:
    """One worker process, started when it is first needed and replaced when it dies or overruns."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._lock = asyncio.Lock()
        self.replaced: Counter[str] = Counter()
        """Processes that were given up: `crashed`, `slow` or `not started`."""
        self._work: set[asyncio.Task[object]] = set()

    def warm_for(self, ruleset: RuleSet) -> None:
        """Begin to start the process if one of the rules needs it, so that no held call waits for that."""
        if self._pool is None and not self._work and any(rule.ast_condition for rule in ruleset.rules):
            self._keep(asyncio.create_task(self._run(())))

    async def run(self, jobs: Sequence[AstCheck]) -> list[tuple[AstHit, ...] | None]:
        """The hits of each job, None for jobs that were not done. Never raises on what the source holds."""
        task = asyncio.create_task(self._run(jobs))
        self._keep(task)
        # A caller that leaves does not take the deadline with it, or a hanging job would block the others.
        return await asyncio.shield(task)

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _run(self, jobs: Sequence[AstCheck]) -> list[tuple[AstHit, ...] | None]:
        async with self._lock:
            if not jobs:
                await self._start()
            return [await self._run_one(job) for job in jobs]

    async def _start(self) -> None:
        try:
            await self._ready()
        except (TimeoutError, BrokenProcessPool) as error:
            self.replaced["not started"] += 1
            _log.warning("ast_worker_did_not_start", reason=type(error).__name__)
            self._discard()

    async def _run_one(self, job: AstCheck) -> tuple[AstHit, ...] | None:
        try:
            pool = await self._ready()
            done = asyncio.get_running_loop().run_in_executor(pool, _run, job)
            return await asyncio.wait_for(done, DEADLINE_SECONDS)
        except (TimeoutError, BrokenProcessPool) as error:
            self.replaced["slow" if isinstance(error, TimeoutError) else "crashed"] += 1
            _log.warning("ast_worker_replaced", reason=type(error).__name__, language=job.language)
            self._discard()
            return None

    async def _ready(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # Spawned, not forked: the server's threads and sockets have no business in there.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, mp_context=context)
            started = asyncio.get_running_loop().run_in_executor(self._pool, _start)
            await asyncio.wait_for(started, START_SECONDS)
        return self._pool

    def _discard(self) -> None:
        pool, self._pool = self._pool, None
        if pool is None:
            return
        for process in list((pool._processes or {}).values()):
            process.kill()
        pool.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        for task in self._work:
            task.cancel()
        self._discard()


def _start() -> None:
    """Runs in the worker: its imports are done when this returns."""


def _run(job: AstCheck) -> tuple[AstHit, ...]:
    return job.run()
