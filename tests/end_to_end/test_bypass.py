"""A bypassed request in a conversation that was interrupted before."""

from __future__ import annotations

from typing import Any

from proxy_under_test import Workspace
from strict_anthropic import StrictUpstream, text, thinking, tool, turn
from ttsr_asserts import interrupts_in, reminders_in

BAD = "BADWORD"


async def test_what_was_hidden_before_is_still_put_back(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    workspace.rule("no-bad-word", BAD, scope="text")
    upstream.script(
        turn(text(f"{BAD} here.")),
        turn(thinking("ok"), text("A clean answer.")),
        turn(thinking("more"), text(f"Now {BAD} is fine.")),
        turn(text("Last.")),
    )
    agent = await new_agent(await start_proxy(allow_bypass=True, repeat_mode="always"))
    await agent.say("go")
    agent.headers["x-ttsr-bypass"] = "1"
    answer = await agent.say("and?")
    assert answer.texts == [f"Now {BAD} is fine."]
    del agent.headers["x-ttsr-bypass"]
    await agent.say("really?")
    assert upstream.refusals == []
    assert all(len(interrupts_in(call)) == 1 for call in upstream.calls[1:])


async def test_a_reminder_that_waits_is_not_placed_into_a_bypassed_request(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    workspace.rule("no-bad-word", BAD, scope="tool", interruptMode="never")
    upstream.script(
        turn(tool("Write", {"file_path": "a.py", "content": BAD})), turn(text("One.")), turn(text("Two."))
    )
    agent = await new_agent(await start_proxy(allow_bypass=True))
    await agent.say("go")
    agent.headers["x-ttsr-bypass"] = "1"
    await agent.results()
    assert reminders_in(upstream.calls[1]) == []
    assert upstream.refusals == []
