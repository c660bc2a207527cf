"""Puts inquiries to the judge, behind the backs of the clients: nothing here is ever waited for."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import structlog

from ttsr_proxy.interception.actions import Log, Save, UpdateLog
from ttsr_proxy.interception.inquiry import OPEN_SECONDS, Inquiry, Output
from ttsr_proxy.interrupts.masking import mask
from ttsr_proxy.judges.question import Judge
from ttsr_proxy.web.ast_worker import AstWorker
from ttsr_proxy.web.faults import fault
from ttsr_proxy.web.stores import Stores

AT_ONCE: Final = 4
"""Outputs that the judge is asked about at the same time."""

WAITING: Final = 200
"""Responses whose questions wait at most; those of further ones are dropped."""

CLOSE_SECONDS: Final = 3.0
"""How long a server that stops waits for answers."""

_TOLD: Final = 300
"""Characters of a reason in the log."""

_log = structlog.get_logger()


class Judging:
    """The questions that are out. A judge that fails costs a log line and a count.

    Conditions that decide whether a rule asks are searched in a thread, and ast patterns in a process of
    their own, so that no held call waits behind them.
    """

    def __init__(self, judge: Judge, stores: Stores) -> None:
        self._judge = judge
        self._stores = stores
        self._reader = ThreadPoolExecutor(1, "judged")
        self._ast = AstWorker()
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._running: set[asyncio.Task[None]] = set()
        self.questions: Counter[str] = Counter(broken=0, kept=0, unanswered=0)
        """Questions by answer: yes, no, none."""
        self.dropped = 0
        """Responses that were not asked about, because too many were waiting."""

    @property
    def figures(self) -> dict[str, int]:
        """The counts, and how many responses are being asked about."""
        return {**self.questions, "dropped": self.dropped, "waiting": len(self._running)}

    def soon(self, inquiry: Inquiry) -> None:
        """Ask, without anybody waiting for it."""
        if len(self._running) >= WAITING:
            self.dropped += 1
            _log.warning("not_judged", reason=f"{WAITING} responses are waiting for the judge already")
            return
        task = asyncio.create_task(self._hear(inquiry))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def close(self) -> None:
        """Wait a little for the answers that are out, then give them up."""
        if self._running:
            await asyncio.wait(self._running, timeout=CLOSE_SECONDS)
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._ast.close()
        self._reader.shutdown(wait=False, cancel_futures=True)

    async def _hear(self, inquiry: Inquiry) -> None:
        try:
            async with asyncio.timeout(min(OPEN_SECONDS, inquiry.until - time.time())):
                await self._ask(inquiry)
        except TimeoutError:
            self.questions["unanswered"] += 1
            inquiry.unanswered()
            _log.warning("not_judged", reason=f"no answer within {OPEN_SECONDS:.0f} seconds")
        except Exception as error:
            # The boundary of a background task: an agent's traffic has nothing to do with it.
            self.questions["unanswered"] += 1
            inquiry.unanswered()
            _log.error("judging_failed", **fault(error))
        for action in inquiry.concluded(time.monotonic()):
            match action:
                case Save(record):
                    await self._stores.save(record)
                case Log(records):
                    await self._stores.log(records)
                case UpdateLog(record_id, changes):
                    await self._stores.update_log(record_id, changes)

    async def _ask(self, inquiry: Inquiry) -> None:
        outputs = await asyncio.get_running_loop().run_in_executor(self._reader, inquiry.outputs)
        async with asyncio.TaskGroup() as group:
            for output in outputs:
                group.create_task(self._ask_about(inquiry, output))

    async def _ask_about(self, inquiry: Inquiry, output: Output) -> None:
        async with self._slots:
            jobs = output.ast_jobs
            output.screen(await self._ast.run(jobs) if jobs else ())
            questions = output.questions
            if not questions:
                return
            state = await asyncio.get_running_loop().run_in_executor(self._reader, lambda: output.state)
            answers = await self._judge.ask(state, questions)
        self.questions.update(inquiry.answered(output, answers.probabilities, time.monotonic()))
        if answers.warning is not None:
            # A server may repeat in its error what it was sent.
            _log.warning("not_judged", reason=mask(answers.warning)[:_TOLD])
