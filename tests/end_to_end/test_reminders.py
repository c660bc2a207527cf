"""Matches that do not interrupt: the reminder waits for the request that echoes the response."""

from __future__ import annotations

from typing import Any

import pytest
from coding_agent import Agent
from proxy_under_test import Workspace
from strict_anthropic import StrictUpstream, http_error, text, thinking, tool, turn
from ttsr_asserts import interrupts_in, last_user_blocks, reminders_in

BAD = "BADWORD"
BAD_WRITE = {"file_path": "a.py", "content": f"print('{BAD}')\n"}


@pytest.fixture(autouse=True)
def rule(workspace: Workspace) -> None:
    workspace.rule("no-bad-word", BAD, scope=["text", "tool"], interruptMode="never")


async def test_a_reminder_about_a_call_follows_its_result(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(thinking("a"), tool("Write", BAD_WRITE)),
        turn(thinking("b"), tool("Read", {"file_path": "a"})),
        turn(text("Done.")),
    )
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy)
    answer = await agent.say("go")
    assert answer.calls[0]["input"] == BAD_WRITE
    items = await proxy.interrupts()
    assert [(item["action"], item["outcome"]) for item in items] in (
        [("reminded", "pending")],
        [("deferred", "pending")],
    )
    await agent.results(Write="written")
    blocks = last_user_blocks(upstream.calls[1])
    assert blocks[0]["type"] == "tool_result"
    assert blocks[0]["content"] == "written"
    assert blocks[-1]["text"].startswith("<system-reminder")
    assert 'rule="no-bad-word"' in blocks[-1]["text"]
    await agent.results()
    assert upstream.refusals == []
    assert reminders_in(upstream.calls[2]) == [blocks[-1]["text"]]
    assert interrupts_in(upstream.calls[2]) == []


async def test_a_file_that_a_command_writes_is_one_finding(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    command = f"cat > a.py <<'EOF'\nprint('{BAD}')\nEOF"
    upstream.script(turn(tool("Bash", {"command": command})))
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy)
    await agent.say("go")
    await proxy.log(("reminded", "pending"))


async def test_sibling_calls_get_one_reminder_after_all_results(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(tool("Write", BAD_WRITE), tool("Write", {**BAD_WRITE, "file_path": "b.py"})), turn(text("Done."))
    )
    agent: Agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert len(answer.calls) == 2
    await agent.results()
    kinds = [block["type"] for block in last_user_blocks(upstream.calls[1])]
    assert kinds == ["tool_result", "tool_result", "text"]
    assert upstream.refusals == []


async def test_a_reminder_about_prose_ends_the_users_next_message(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(thinking("a"), text(f"It is {BAD} here.")),
        turn(thinking("b"), text("Two.")),
        turn(text("Three.")),
    )
    agent: Agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert answer.texts == [f"It is {BAD} here."]
    await agent.say("more")
    blocks = last_user_blocks(upstream.calls[1])
    assert blocks[0]["text"] == "more"
    assert blocks[-1]["text"].startswith("<system-reminder")
    await agent.say("bye")
    assert len(reminders_in(upstream.calls[2])) == 1
    assert upstream.refusals == []


async def test_a_reminder_goes_before_a_trailing_system_message(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(thinking("a"), tool("Write", BAD_WRITE)), turn(thinking("b"), text("Two.")), turn(text("3"))
    )
    agent: Agent = await new_agent(await start_proxy())
    agent.trailing_system = "Today is Monday."
    await agent.say("go")
    await agent.results()
    assert upstream.calls[1].messages[-1]["role"] == "system"
    assert last_user_blocks(upstream.calls[1])[-1]["text"].startswith("<system-reminder")
    await agent.say("bye")
    assert upstream.refusals == []


async def test_a_reminder_that_upstream_did_not_accept_is_placed_again(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(tool("Write", BAD_WRITE)), http_error(529), turn(text("Two.")))
    agent: Agent = await new_agent(await start_proxy())
    await agent.say("go")
    agent.add_results()
    assert (await agent.ask()).status == 529
    assert (await agent.ask()).complete
    assert len(reminders_in(upstream.calls[2])) == 1


async def test_each_fork_gets_the_reminder(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(thinking("a"), text(f"It is {BAD}.")), *[turn(thinking("x"), text("Next.")) for _ in range(4)]
    )
    agent: Agent = await new_agent(await start_proxy())
    await agent.say("go")
    one, two = agent.fork(), agent.fork()
    for fork in (one, two, one, two):
        await fork.say("more")
    assert [len(reminders_in(call)) for call in upstream.calls] == [0, 1, 1, 1, 1]
    assert upstream.refusals == []
