"""Coding agents through the proxy: a model that breaks a rule until it is reminded of it.

An agent takes part when its variable lists its executables, separated by `:`; see docs/compatibility.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from real_agents import Scene, available
from scripted_model import Edit, Plan, Read, Say, Shell, Think, Write

BAD = "BADWORD"
CLEAN = "print('hello')"
DONE = (Think("all done"), Say("FINAL all done."))


def write(line: str) -> Write:
    return Write("hello.py", f"{line}\n")


def until_told(first: tuple[Any, ...], then: tuple[Any, ...], times: int = 1) -> Any:
    return lambda asked: first if asked.told < times else then


BAD_WRITE = write(f"print('{BAD}')")
CLEAN_WRITE = write(CLEAN)


@dataclass(frozen=True, slots=True)
class Scenario:
    plan: Plan
    actions: tuple[str, ...] = ("interrupted",)
    rule: dict[str, Any] | None = None
    before: str | None = None
    """What hello.py says before the run."""


SCENARIOS = {
    "nothing wrong": Scenario(((Think("a"), Say("I write it."), CLEAN_WRITE), DONE), actions=()),
    "text at the start": Scenario(
        (until_told((Say(f"{BAD} is how I start"),), (Say("I write it."), CLEAN_WRITE)), DONE)
    ),
    "text after text": Scenario(
        (
            until_told(
                (Think("a"), Say(f"I will write, {BAD} and more"), BAD_WRITE),
                (Think("b"), Say("I write it."), CLEAN_WRITE),
            ),
            DONE,
        )
    ),
    "thinking": Scenario(
        (until_told((Think(f"half a thought {BAD}"), BAD_WRITE), (Think("b"), CLEAN_WRITE)), DONE),
    ),
    "a written file": Scenario(
        (until_told((Think("a"), BAD_WRITE), (Think("b"), CLEAN_WRITE)), DONE),
    ),
    "a written file after text": Scenario(
        (
            until_told(
                (Think("a"), Say("I write it."), BAD_WRITE), (Think("b"), Say("Better."), CLEAN_WRITE)
            ),
            DONE,
        )
    ),
    "a clean edit": Scenario(
        (
            (Say("I read it."), Read("hello.py")),
            (Say("I edit it."), Edit("hello.py", "print('old')", CLEAN)),
            DONE,
        ),
        actions=(),
        before="print('old')\n",
    ),
    "an edit": Scenario(
        (
            (Read("hello.py"),),
            until_told(
                (Say("I edit it."), Edit("hello.py", "print('old')", f"print('{BAD}')")),
                (Edit("hello.py", "print('old')", CLEAN),),
            ),
            DONE,
        ),
        before="print('old')\n",
    ),
    "the second of two calls": Scenario(
        (
            (Think("a"), Shell("true"), BAD_WRITE),
            (Think("b"), CLEAN_WRITE),
            DONE,
        ),
        actions=("truncated",),
    ),
    "always, until told twice": Scenario(
        (
            until_told((Think("a"), Say("One."), BAD_WRITE), (CLEAN_WRITE,), times=2),
            DONE,
        ),
        actions=("interrupted", "interrupted"),
        rule={"repeatMode": "always"},
    ),
    "a reminder without an interrupt": Scenario(
        ((Say("I write it."), BAD_WRITE), until_told((BAD_WRITE,), (CLEAN_WRITE,)), DONE),
        actions=("reminded",),
        rule={"interruptMode": "never"},
    ),
}


@pytest.mark.parametrize(("agent", "binary"), available(lambda agent: agent.prose is None))
@pytest.mark.parametrize("name", SCENARIOS)
async def test_the_file_is_clean_and_the_next_turn_is_accepted(scene: Scene, name: str) -> None:
    scenario = SCENARIOS[name]
    front = {"scope": ["text", "tool", "thinking"], **(scenario.rule or {})}
    scene.workspace.rule("no-bad-word", BAD, **front)
    path = scene.workspace.project / "hello.py"
    if scenario.before is not None:
        path.write_text(scenario.before)
    scene.model.plan = scenario.plan
    run = await scene.run("Create hello.py that prints hello")
    assert run.status == 0, run.output[-3000:]
    assert scene.trouble(run) == []
    assert path.read_text() == f"{CLEAN}\n"
    assert "FINAL all done." in run.output
    if scenario.actions != ("reminded",):
        assert BAD not in run.output
    assert len(scene.model.asked) == len(scenario.plan) + scenario.actions.count("interrupted")
    scene.model.plan = [(Say("Next turn."),)]
    run = await scene.run("And now?", resume=True)
    assert run.status == 0, run.output[-3000:]
    assert "Next turn." in run.output
    assert scene.trouble(run) == []
    assert scene.upstream.refusals == []
    items = await scene.proxy.interrupts()
    assert tuple(item["action"] for item in items) == scenario.actions, items


@pytest.mark.parametrize(("agent", "binary"), available(lambda agent: agent.prose is None))
@pytest.mark.parametrize("state", ["kept", "lost"])
async def test_a_session_goes_on_when_the_proxy_was_restarted(scene: Scene, state: str) -> None:
    scene.workspace.rule("no-bad-word", BAD, scope=["text", "tool"])
    scene.model.plan = [
        until_told((Say("I write it,"), BAD_WRITE), (Think("b"), Say("Better."), CLEAN_WRITE)),
        DONE,
    ]
    run = await scene.run("Create hello.py that prints hello")
    assert run.status == 0, run.output[-3000:]
    assert (scene.workspace.project / "hello.py").read_text() == f"{CLEAN}\n"
    if state == "lost":
        scene.workspace.forget_state()
    await scene.restart_proxy()
    scene.model.plan = [(Say("Next turn."),)]
    run = await scene.run("And now?", resume=True)
    assert run.status == 0, run.output[-3000:]
    assert scene.trouble(run) == []
    assert "Next turn." in run.output
    assert scene.model.asked[-1].told == (state == "kept")
    if state == "kept":
        assert scene.upstream.refusals == []


FILES = ["tool:write(*.py)", "tool:edit(*.py)"]
PROSE = {
    "nothing wrong": ((Say("Here it is.\n"), CLEAN_WRITE), FILES),
    "text at the start": ((Say(f"{BAD} is how I start"),), ["text"]),
    "an edit": ((Say("I write it.\n"), BAD_WRITE), FILES),
    "the second of two edits": ((Say("Both.\n"), Write("other.py", "pass\n"), BAD_WRITE), FILES),
}


@pytest.mark.parametrize(("agent", "binary"), available(lambda agent: agent.prose is not None))
@pytest.mark.parametrize("name", PROSE)
async def test_an_edit_in_prose_is_applied_clean(scene: Scene, name: str) -> None:
    first, scope = PROSE[name]
    scene.workspace.rule("no-bad-word", BAD, scope=scope)
    scene.model.plan = [until_told(first, (Say("Here it is.\n"), CLEAN_WRITE))]
    run = await scene.run("Create hello.py that prints hello")
    assert run.status == 0, run.output[-3000:]
    assert scene.trouble(run) == []
    assert (scene.workspace.project / "hello.py").read_text() == f"{CLEAN}\n"
    assert (scene.workspace.project / "other.py").exists() is (name == "the second of two edits")
    assert BAD not in run.output
    expected = [] if name == "nothing wrong" else ["interrupted"]
    assert len(scene.model.asked) == 1 + len(expected)
    assert scene.upstream.refusals == []
    assert [item["action"] for item in await scene.proxy.interrupts()] == expected
