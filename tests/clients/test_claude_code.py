"""What Claude Code does beyond plain turns: compaction, and a request that is not streamed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from real_agents import Scene, available
from scripted_model import Asked, Read, Say, Think, Write, as_turn
from strict_anthropic import BOUND_ELSEWHERE, Turn, stream_error, text, turn

BAD = "BADWORD"
CLEAN = "print('hello')\n"
BAD_WRITE = Write("hello.py", f"print('{BAD}')\n")
CLEAN_WRITE = Write("hello.py", CLEAN)
DONE = (Think("all done"), Say("FINAL all done."))

every_version = pytest.mark.parametrize(
    ("agent", "binary"), available(lambda agent: agent.name.startswith("claude-code"))
)


@pytest.fixture(autouse=True)
def rule(scene: Scene) -> None:
    scene.workspace.rule("no-bad-word", BAD, scope=["text", "tool", "thinking"])


def until_told(first: tuple[Any, ...], then: tuple[Any, ...]) -> Callable[[Asked], tuple[Any, ...]]:
    return lambda asked: then if asked.told else first


VIOLATING_TURN = [until_told((Say("I write it,"), BAD_WRITE), (Think("b"), CLEAN_WRITE)), DONE]


async def violating_turn(scene: Scene) -> None:
    """A turn with an interrupt, as the first of a session."""
    scene.model.plan = VIOLATING_TURN
    run = await scene.run("Create hello.py that prints hello")
    assert run.status == 0, run.output[-3000:]
    assert (scene.workspace.project / "hello.py").read_text() == CLEAN
    assert BAD not in run.output


async def actions(scene: Scene) -> list[str]:
    return [item["action"] for item in await scene.proxy.interrupts()]


@every_version
async def test_a_compaction_is_left_alone_and_the_session_goes_on(scene: Scene) -> None:
    await violating_turn(scene)
    scene.model.plan = [(Say(f"<summary>We talked about {BAD}.</summary>"),)]
    run = await scene.run("/compact", resume=True)
    assert run.status == 0, run.output[-3000:]
    assert await actions(scene) == ["interrupted", "observed"]
    # the reminder went with the history, so the model has to be told again
    scene.model.plan = [
        (Read("hello.py"),),
        until_told((Say("Again,"), BAD_WRITE), (Say("Better."), CLEAN_WRITE)),
        DONE,
    ]
    run = await scene.run("Write hello.py once more", resume=True)
    assert run.status == 0, run.output[-3000:]
    assert (scene.workspace.project / "hello.py").read_text() == CLEAN
    assert "FINAL all done." in run.output
    assert await actions(scene) == ["interrupted", "observed", "interrupted"]
    # Claude Code keeps the last answer with thinking that is bound to what it has dropped
    assert {refused["message"].split(": ", 1)[1] for refused in scene.upstream.refusals} <= {BOUND_ELSEWHERE}
    assert len(scene.upstream.refusals) <= 1


@every_version
async def test_the_answer_to_its_fallback_that_is_not_streamed_is_clean(scene: Scene) -> None:
    scene.model.plan = VIOLATING_TURN
    play = as_turn(scene.model)
    failed = []

    def answer(body: dict[str, Any]) -> Turn:
        if body.get("stream") and body.get("tools") and not failed:
            failed.append(body)
            return turn(text("Half an answer", stream_error("api_error", "scripted")))
        return play(body)

    scene.upstream.otherwise(answer)
    run = await scene.run("Create hello.py that prints hello")
    assert run.status == 0, run.output[-3000:]
    assert not scene.upstream.calls[-2].body.get("stream")
    assert (scene.workspace.project / "hello.py").read_text() == CLEAN
    assert BAD not in run.output
    assert scene.upstream.refusals == []
    assert await actions(scene) == ["interrupted"]
