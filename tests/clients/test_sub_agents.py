"""A sub-agent breaks a rule: it is interrupted in its own conversation; its parent hears nothing of it."""

from __future__ import annotations

from typing import Any

import pytest
from real_agents import Scene, available
from scripted_model import Asked, Say, Shell, Spawn, Think, Write

BAD = "BADWORD"
CLEAN = "print('hello')\n"
DONE = (Think("all done"), Say("FINAL all done."))
TASK = "SUBTASK: write hello.py"
CLOSING = "failed to record rollout items"
"""Codex, when it ends while its sub-agent's last answer is being written down."""
DELEGATING = {
    ("claude-code", "anthropic"),
    ("claude-code-4.5", "anthropic"),
    ("opencode", "anthropic"),
    ("opencode", "chat"),
    ("opencode", "responses"),
    ("codex-shell", "responses"),
}


def is_sub_agent(asked: Asked) -> bool:
    """Whether the task is what this conversation began with; its parent has it in a call."""
    said = [item for item in asked.body.get("messages") or asked.body["input"] if item.get("role") == "user"]
    # in the Anthropic API results of calls are user messages too, later ones
    return any(TASK in str(item["content"]) for item in (said[:1] if "messages" in asked.body else said))


def first(asked: Asked) -> tuple[Any, ...]:
    if not is_sub_agent(asked):
        return (Say("I delegate it."), Spawn(TASK))
    if asked.told:
        return (Say("Better."), Write("hello.py", CLEAN))
    return (Say("I write it."), Write("hello.py", f"print('{BAD}')\n"))


def second(asked: Asked) -> tuple[Any, ...]:
    # some agents go on while their sub-agent works, and end when they have nothing more to do
    return DONE if is_sub_agent(asked) else (Shell("until [ -s hello.py ]; do sleep 0.1; done"),)


@pytest.mark.parametrize(
    ("agent", "binary"), available(lambda agent: (agent.name, agent.protocol) in DELEGATING)
)
async def test_a_sub_agents_violation_is_interrupted_in_its_own_conversation(scene: Scene) -> None:
    scene.workspace.rule("no-bad-word", BAD, scope=["text", "tool", "thinking"])
    scene.model.plan = [first, second, DONE]
    run = await scene.run("Let a sub-agent create hello.py")
    assert run.status == 0, run.output[-3000:]
    assert [line for line in scene.trouble(run) if CLOSING not in line] == []
    assert (scene.workspace.project / "hello.py").read_text() == CLEAN
    assert BAD not in run.output
    assert scene.upstream.refusals == []
    assert [item["action"] for item in await scene.proxy.interrupts()] == ["interrupted"]
    told = [asked for asked in scene.model.asked if asked.told]
    assert told
    assert all(is_sub_agent(asked) for asked in told)
