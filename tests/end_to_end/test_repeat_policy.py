"""When a rule that has fired may fire again, and whose conversation is whose."""

from __future__ import annotations

from typing import Any

from coding_agent import Agent
from proxy_under_test import Proxy, Workspace
from strict_anthropic import StrictUpstream, text, thinking, tool, turn
from ttsr_asserts import assert_clean, interrupts_in

BAD = "BADWORD"


async def actions(proxy: Proxy) -> list[str]:
    return [item["action"] for item in await proxy.interrupts()]


async def test_once_means_once_in_a_conversation(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    workspace.rule("no-bad-word", BAD, scope="text")
    upstream.script(
        turn(text(f"{BAD} 1")), turn(text("Clean.")), turn(text(f"{BAD} 2")), turn(text(f"{BAD} 3"))
    )
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy)
    assert_clean(await agent.say("go"), BAD)
    assert (await agent.say("more")).text == f"{BAD} 2"
    assert (await agent.say("more")).text == f"{BAD} 3"
    assert await actions(proxy) == ["interrupted", "suppressed", "suppressed"]
    assert upstream.refusals == []


async def test_after_gap_fires_again_when_enough_responses_lie_between(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    workspace.rule("no-bad-word", BAD, scope="text", repeatMode="after-gap", repeatGap=2)
    upstream.script(
        turn(text(f"{BAD} 1")),
        turn(text("Clean.")),
        turn(text(f"{BAD} 2")),
        turn(text(f"{BAD} 3")),
        turn(text("Clean again.")),
        turn(text(f"{BAD} 4")),
    )
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy)
    answers = [(await agent.say(word)).text for word in ("go", "two", "three", "four")]
    assert answers == ["Clean.", f"{BAD} 2", "Clean again.", f"{BAD} 4"]
    assert await actions(proxy) == ["interrupted", "suppressed", "interrupted", "suppressed"]


async def test_always_fires_each_time(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    workspace.rule("no-bad-word", BAD, scope="text", repeatMode="always")
    for _ in range(3):
        upstream.script(turn(thinking("a"), text(f"{BAD} 1")), turn(thinking("b"), text("Clean.")))
    agent: Agent = await new_agent(await start_proxy())
    for word in ("one", "two", "three"):
        assert_clean(await agent.say(word), BAD)
    assert upstream.refusals == []


async def test_a_fork_inherits_only_what_came_before_it(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    workspace.rule("no-bad-word", BAD, scope="text")
    upstream.script(
        turn(text("Start.")),
        turn(text(f"{BAD} in one")),
        turn(text("Clean one.")),
        turn(text(f"{BAD} in two")),
        turn(text("Clean two.")),
        turn(text(f"{BAD} in one again")),
    )
    agent: Agent = await new_agent(await start_proxy())
    await agent.say("go")
    one, two = agent.fork(), agent.fork()
    assert (await one.say("a")).text == "Clean one."
    assert (await two.say("b")).text == "Clean two."
    assert (await one.say("c")).text == f"{BAD} in one again"


async def test_a_sub_agent_starts_fresh(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    workspace.rule("no-bad-word", BAD, scope="text")
    session = {"x-claude-code-session-id": "5c2f0d6a-0000-4000-8000-000000000001"}
    upstream.script(
        turn(text(f"{BAD} parent")),
        turn(text("Clean parent.")),
        turn(text(f"{BAD} child")),
        turn(text("Clean child.")),
        turn(text(f"{BAD} parent again")),
    )
    proxy = await start_proxy()
    parent: Agent = await new_agent(proxy, headers=session)
    child: Agent = await new_agent(
        proxy, system="You help.", headers={**session, "x-claude-code-agent-id": "a0123456789abcdef"}
    )
    assert (await parent.say("go")).text == "Clean parent."
    assert (await child.say("help")).text == "Clean child."
    assert (await parent.say("more")).text == f"{BAD} parent again"
    assert await actions(proxy) == ["interrupted", "interrupted", "suppressed"]


async def test_two_identical_fresh_prompts_are_two_conversations(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    workspace.rule("no-bad-word", BAD, scope="text")
    for name in ("one", "two"):
        upstream.script(
            turn(thinking("a"), text(f"{BAD} {name}")), turn(thinking("b"), text("The same answer."))
        )
    upstream.otherwise(lambda body: turn(thinking("c"), text("Next.")))
    proxy = await start_proxy()
    one: Agent = await new_agent(proxy)
    two: Agent = await new_agent(proxy)
    assert_clean(await one.say("go"), BAD)
    assert_clean(await two.say("go"), BAD)
    await one.say("more")
    await two.say("more")
    assert upstream.refusals == []
    assert [len(interrupts_in(call)) for call in upstream.calls[-2:]] == [1, 1]
    assert await actions(proxy) == ["interrupted", "interrupted"]


async def test_a_compacted_history_may_fire_again(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    workspace.rule("no-bad-word", BAD, scope="text")
    upstream.script(turn(text(f"{BAD} 1")), turn(text("A.")), turn(text(f"{BAD} 2")), turn(text("B.")))
    agent: Agent = await new_agent(await start_proxy())
    await agent.say("go")
    agent.messages.clear()
    assert (await agent.say("Summary: nothing.")).text == "B."


async def test_a_compacted_history_that_keeps_its_last_answer_may_fire_again(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    workspace.rule("no-bad-word", BAD, scope="text")
    upstream.script(
        turn(text(f"{BAD} 1")),
        turn(text("A.")),
        # no thinking, which would be bound to what is dropped: the call's id is what is recognised
        turn(tool("Read", {"file_path": "a.py"})),
        turn(text(f"{BAD} 2")),
        turn(text("B.")),
    )
    agent: Agent = await new_agent(await start_proxy(), thinking=None)
    await agent.say("go")
    await agent.say("Read it.")
    agent.messages[:] = [{"role": "user", "content": "Summary: nothing."}, agent.messages[-1]]
    assert (await agent.results()).text == "B."
    assert upstream.refusals == []
