"""Background tasks: order, failure, cancellation, and what a restart makes of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ttsr_proxy.library.errors import CompileFailed, Exhausted, FailedPrecondition, NotFound
from ttsr_proxy.library.tasks import runner as runner_module
from ttsr_proxy.library.tasks.record import Task, shown_error
from ttsr_proxy.library.tasks.runner import Done, Progress, TaskRunner, new_task
from ttsr_proxy.library.tasks.store import TaskStore


class Work:
    """Work that waits until it is let go on, and notes what was done."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.begun = asyncio.Event()
        self.fail: Exception | None = None
        self.at_once = self.most_at_once = 0
        self.stage = "planning"

    async def __call__(self, task: Task, progress: Progress) -> Done:
        name = (task.payload or {})["name"]
        self.started.append(name)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await progress.stage(self.stage)
            self.begun.set()
            if gate := self.gates.get(name):
                await gate.wait()
            if self.fail is not None:
                raise self.fail
            return Done({"done": name}, {"attempts": 1})
        finally:
            self.at_once -= 1


async def nothing(task: Task) -> Done | None:
    return None


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
async def runner(tmp_path: Path, work: Work) -> AsyncIterator[TaskRunner]:
    running = TaskRunner(TaskStore(tmp_path), work, nothing)
    yield running
    await running.close()


async def submit(runner: TaskRunner, name: str, user: str = "alice") -> Task:
    return await runner.submit(user, "rule_compile", "viking://user/alice/memories/rules", {"name": name})


async def finished(runner: TaskRunner, task: Task) -> Task:
    while (running := runner._running.get(task.id)) is not None:
        await asyncio.wait({running})
        await asyncio.sleep(0)
    return await runner.get(task.user, task.id)


async def test_a_task_runs_and_its_record_has_the_result(runner: TaskRunner) -> None:
    task = await submit(runner, "a")
    assert (task.status, task.stage) == ("pending", "queued")
    done = (await finished(runner, task)).to_json()
    assert (done["status"], done["stage"], done["result"]) == ("completed", "completed", {"done": "a"})
    assert done["error"] is None
    assert done["meta"] == {"attempts": 1}
    assert "payload" not in done


async def test_tasks_of_one_user_run_one_after_the_other_in_order(runner: TaskRunner, work: Work) -> None:
    tasks = [await submit(runner, name) for name in "abcd"]
    for task in tasks:
        await finished(runner, task)
    assert work.started == list("abcd")
    assert work.most_at_once == 1


async def test_tasks_of_several_users_run_side_by_side_but_few_at_once(
    runner: TaskRunner, work: Work
) -> None:
    gate = asyncio.Event()
    work.gates = dict.fromkeys("abc", gate)
    tasks = [await submit(runner, name, user=name) for name in "abc"]
    await work.begun.wait()
    gate.set()
    for task in tasks:
        await finished(runner, task)
    assert work.most_at_once <= runner_module.AT_ONCE


async def test_a_failure_is_a_text_with_its_code_and_without_secrets(runner: TaskRunner, work: Work) -> None:
    work.fail = CompileFailed("refused for key sk-abcdefghijkl")
    done = await finished(runner, await submit(runner, "a"))
    assert done.status == "failed"
    assert done.error == "RULE_COMPILE_FAILED: refused for key [redacted]"
    assert done.meta == {"error_code": "RULE_COMPILE_FAILED"}


async def test_an_unexpected_error_is_visible_and_says_nothing_of_the_inside(
    runner: TaskRunner, work: Work
) -> None:
    work.fail = RuntimeError("inner details")
    done = await finished(runner, await submit(runner, "a"))
    assert done.status == "failed"
    assert "inner details" not in (done.error or "")


async def test_a_running_task_can_be_cancelled(runner: TaskRunner, work: Work) -> None:
    work.gates["a"] = asyncio.Event()
    task = await submit(runner, "a")
    await work.begun.wait()
    assert (await runner.cancel("alice", task.id)).status == "cancelling"
    assert (await finished(runner, task)).status == "cancelled"
    assert (await runner.cancel("alice", task.id)).status == "cancelled"


async def test_a_waiting_task_can_be_cancelled_and_never_runs(runner: TaskRunner, work: Work) -> None:
    work.gates["a"] = asyncio.Event()
    first, second = await submit(runner, "a"), await submit(runner, "b")
    await work.begun.wait()
    assert (await runner.cancel("alice", second.id)).status == "cancelled"
    work.gates["a"].set()
    await finished(runner, first)
    await finished(runner, second)
    assert work.started == ["a"]


async def test_a_task_that_is_finished_or_being_written_cannot_be_cancelled(
    runner: TaskRunner, work: Work
) -> None:
    task = await submit(runner, "a")
    await finished(runner, task)
    with pytest.raises(FailedPrecondition):
        await runner.cancel("alice", task.id)
    work.stage, work.gates["b"], work.begun = "writing", asyncio.Event(), asyncio.Event()
    task = await submit(runner, "b")
    await work.begun.wait()
    with pytest.raises(FailedPrecondition):
        await runner.cancel("alice", task.id)
    work.gates["b"].set()
    assert (await finished(runner, task)).status == "completed"


async def test_another_users_task_does_not_exist(runner: TaskRunner) -> None:
    task = await submit(runner, "a")
    for call in (runner.get, runner.cancel):
        with pytest.raises(NotFound):
            await call("bob", task.id)


async def test_a_user_has_a_limited_number_of_unfinished_tasks(
    runner: TaskRunner, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "QUEUE", 1)
    work.gates["a"] = asyncio.Event()
    await submit(runner, "a")
    with pytest.raises(Exhausted):
        await submit(runner, "b")
    await submit(runner, "c", user="bob")
    work.gates["a"].set()


async def test_after_a_restart_waiting_tasks_run_and_interrupted_ones_are_settled(
    tmp_path: Path, work: Work
) -> None:
    store = TaskStore(tmp_path)
    waiting = new_task("alice", "rule_compile", "r", {"name": "waiting"})
    cut, written = (new_task("alice", "rule_compile", "r", {"name": name}) for name in ("cut", "written"))
    for task in (waiting, cut, written):
        await store.add(task)
    for task in (cut, written):
        await store.change(task.id, status="running", stage="writing")
    await store.close()

    async def achieved(task: Task) -> Done | None:
        return Done({"done": "written"}) if task.id == written.id else None

    runner = TaskRunner(TaskStore(tmp_path), work, achieved)
    await runner.start()
    assert (await finished(runner, waiting)).status == "completed"
    assert work.started == ["waiting"]
    failed = await runner.get("alice", cut.id)
    assert (failed.status, failed.error) == (
        "failed", "RULE_COMPILE_FAILED: interrupted by a restart; nothing was written",
    )  # fmt: skip
    assert (await runner.get("alice", written.id)).result == {"done": "written"}
    await runner.close()


async def test_a_task_that_another_process_runs_is_left_to_it(
    tmp_path: Path, runner: TaskRunner, work: Work
) -> None:
    work.gates["a"] = asyncio.Event()
    task = await submit(runner, "a")
    await work.begun.wait()
    other = TaskRunner(TaskStore(tmp_path), work, nothing)
    await other.start()
    assert (await other.get("alice", task.id)).status == "running"
    work.gates["a"].set()
    assert (await finished(runner, task)).status == "completed"
    await other.close()


async def test_a_task_is_cancelled_by_whichever_process_is_asked(
    tmp_path: Path, runner: TaskRunner, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "HEED_SECONDS", 0.01)
    work.gates["a"] = asyncio.Event()
    task = await submit(runner, "a")
    await work.begun.wait()
    other = TaskRunner(TaskStore(tmp_path), work, nothing)
    assert (await other.cancel("alice", task.id)).status == "cancelling"
    assert (await asyncio.wait_for(finished(runner, task), 10)).status == "cancelled"
    await other.close()


async def test_finished_tasks_are_deleted_after_their_time(
    tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = TaskStore(tmp_path)
    task = new_task("alice", "rule_compile", "r")
    await store.add(task)
    await store.change(task.id, status="completed")
    await store.sweep()
    assert await store.get("alice", task.id) is not None
    monkeypatch.setitem(runner_module.TaskStore.sweep.__globals__["KEPT_SECONDS"], "completed", -1.0)
    await store.sweep()
    assert await store.get("alice", task.id) is None
    await store.close()


@pytest.mark.parametrize(
    "text", ["Bearer abcdefghijkl", "sk-ant-abcdefgh", "api_key=abc", "x-api-key: abcdef"]
)
def test_secrets_are_not_shown(text: str) -> None:
    assert shown_error(f"bad {text} here") == "bad [redacted] here"


def test_a_long_error_is_cut() -> None:
    assert len(shown_error("x" * 1000)) == 500
