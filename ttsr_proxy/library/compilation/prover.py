"""Runs proofs of triggers in a process of its own, which is ended when a pattern keeps it too long."""

from __future__ import annotations

import asyncio
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from ttsr_proxy.library.compilation.proof import Claim, faults, ordinary_snippets

DEADLINE_SECONDS = 10.0
"""How long one proof may take, after the process has started."""

START_SECONDS = 30.0


class Prover:
    """One process, started with the first proof and replaced when it dies or overruns."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._lock = asyncio.Lock()

    async def faults(self, claim: Claim) -> list[str]:
        """What is wrong with a claim; see `proof.faults`. Never raises on what the claim holds."""
        async with self._lock:
            loop = asyncio.get_running_loop()
            try:
                pool = await self._ready()
                return await asyncio.wait_for(loop.run_in_executor(pool, faults, claim), DEADLINE_SECONDS)
            except TimeoutError:
                self.close()
                return [f"trying it took longer than {DEADLINE_SECONDS:.0f} seconds"]
            except BrokenProcessPool:
                self.close()
                return ["trying it ended the process that tried it"]

    def close(self) -> None:
        """End the process; the next proof starts another."""
        pool, self._pool = self._pool, None
        if pool is not None:
            for process in list((pool._processes or {}).values()):
                process.kill()
            pool.shutdown(wait=False, cancel_futures=True)

    async def _ready(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # Spawned, not forked: the server's threads and sockets have no business in there.
            self._pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
            started = asyncio.get_running_loop().run_in_executor(self._pool, ordinary_snippets)
            await asyncio.wait_for(started, START_SECONDS)
        return self._pool
