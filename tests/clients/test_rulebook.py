"""Coding agents whose model reads a rule by `rule://`: nothing of it shows, and the session goes on."""

from __future__ import annotations

import pytest
from real_agents import Agent, Scene, available
from scripted_model import Read, Say, Shell, Think, Write

CLEAN = "print('hello')\n"
DB = "Never drop a column, said the rule."
RULE = Read("rule://db")
WRITE = Write("hello.py", CLEAN)
DONE = (Think("all done"), Say("FINAL all done."))

PLANS = {
    "alone": ((Think("a"), Say("I look it up."), RULE), (Think("b"), WRITE), DONE),
    "at the start": ((RULE,), (RULE,), (Say("I write it."), WRITE), DONE),
    "beside another call": ((Think("a"), RULE, Shell("true")), (WRITE,), DONE),
    "behind another call": ((Think("a"), Shell("true"), RULE), (WRITE,), DONE),
}


def has_tools(agent: Agent) -> bool:
    return agent.prose is None and agent.name != "omp"


@pytest.mark.parametrize(("agent", "binary"), available(has_tools))
@pytest.mark.parametrize("name", PLANS)
async def test_a_rule_is_read_and_the_agent_finishes(scene: Scene, name: str) -> None:
    plan = PLANS[name]
    scene.workspace.rule_file("brief", "Be brief, said the rule.", alwaysApply=True)
    scene.workspace.rule_file("db", DB, description="How we write migrations.")
    scene.model.plan = plan
    run = await scene.run("Create hello.py that prints hello")
    assert run.status == 0, run.output[-3000:]
    assert scene.trouble(run) == []
    assert (scene.workspace.project / "hello.py").read_text() == CLEAN
    assert "FINAL all done." in run.output
    for unseen in ("rule://", "said the rule"):
        assert unseen not in run.output
    turns = [asked for asked in scene.model.asked if asked.tools]
    assert len(turns) == len(plan)
    assert all("Be brief, said the rule." in asked.text for asked in turns)
    assert all(DB in asked.text for asked in turns[1:])
    scene.workspace.rule_file("brief", "Be long, said the rule.", alwaysApply=True)
    await scene.restart_proxy()
    scene.model.plan = [(Say("Next turn."),)]
    run = await scene.run("And now?", resume=True)
    assert run.status == 0, run.output[-3000:]
    assert "Next turn." in run.output
    assert scene.trouble(run) == []
    last = [asked for asked in scene.model.asked if asked.tools][-1]
    assert DB in last.text
    assert "Be brief, said the rule." in last.text
    assert "Be long" not in last.text
    assert scene.upstream.refusals == []
