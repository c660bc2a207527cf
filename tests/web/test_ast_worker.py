"""ast-grep in a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import pytest

from ttsr_proxy import Rule, RuleSet
from ttsr_proxy.triggers.ast import AstCheck
from ttsr_proxy.web import ast_worker
from ttsr_proxy.web.ast_worker import AstWorker

JOB = AstCheck("python", "print(eval(x))\n", ("eval($X)",))
WITH_AST = RuleSet([Rule("r", ast_condition=["eval($X)"], scope=["tool:write(*.py)"])])
WITHOUT_AST = RuleSet([Rule("r", condition=["eval"])])


@pytest.fixture
async def worker() -> AsyncIterator[AstWorker]:
    worker = AstWorker()
    yield worker
    worker.close()


def process_of(worker: AstWorker) -> int:
    assert worker._pool is not None
    (process,) = worker._pool._processes.values()
    assert process.pid is not None
    return process.pid


async def test_jobs_are_answered_in_order(worker: AstWorker) -> None:
    nothing = AstCheck("python", "print(1)\n", ("eval($X)",))
    first, second = await worker.run([nothing, JOB])
    assert first == ()
    assert second is not None
    assert len(second) == 1


async def test_a_job_that_overruns_is_given_up_and_the_next_has_a_new_process(
    worker: AstWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await worker.run([JOB])
    before = process_of(worker)
    with monkeypatch.context() as patch:
        patch.setattr(ast_worker, "DEADLINE_SECONDS", 0)
        assert await worker.run([JOB]) == [None]
    (hits,) = await worker.run([JOB])
    assert hits
    assert process_of(worker) != before


async def test_a_process_that_dies_is_replaced(worker: AstWorker) -> None:
    await worker.run([JOB])
    before = process_of(worker)
    os.kill(before, signal.SIGKILL)
    (first,) = await worker.run([JOB])
    (second,) = await worker.run([JOB])
    assert first is None or first
    assert second
    assert process_of(worker) != before


async def test_a_caller_that_leaves_does_not_disturb_the_others(worker: AstWorker) -> None:
    leaving = asyncio.create_task(worker.run([JOB] * 3))
    staying = asyncio.create_task(worker.run([JOB]))
    await asyncio.sleep(0)
    leaving.cancel()
    (hits,) = await staying
    assert hits
    with pytest.raises(asyncio.CancelledError):
        await leaving


async def test_it_is_started_ahead_for_rules_that_need_it_and_only_for_them(worker: AstWorker) -> None:
    worker.warm_for(WITHOUT_AST)
    assert worker._work == set()
    worker.warm_for(WITH_AST)
    (starting,) = worker._work
    worker.warm_for(WITH_AST)
    assert worker._work == {starting}
    await starting
    pid = process_of(worker)
    (hits,) = await worker.run([JOB])
    assert hits
    assert process_of(worker) == pid


async def test_a_caller_waits_for_a_process_that_is_just_starting(worker: AstWorker) -> None:
    worker.warm_for(WITH_AST)
    (hits,) = await worker.run([JOB])
    assert hits
