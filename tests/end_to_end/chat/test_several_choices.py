"""Several answers at once: streamed they are watched, never stopped; the client goes on with one of them."""

from __future__ import annotations

from typing import Any

import pytest
from chat_chunks import DONE, call, chunk, data, stream, usage
from proxy_under_test import Workspace
from strict_anthropic import raw, text, turn
from strict_openai_chat import StrictChatUpstream

BAD = "BADWORD"


@pytest.fixture(autouse=True)
def rule(workspace: Workspace) -> None:
    workspace.rule("no-bad-word", BAD, scope=["text", "tool"])


ANSWERS = stream(
    chunk({"role": "assistant", "content": ""}),
    chunk({"role": "assistant", "content": ""}, index=1),
    chunk({"content": "Fine"}),
    chunk({"content": "BAD"}, index=1),
    chunk({"content": " words."}),
    chunk({"content": "WORD."}, index=1),
    chunk(call(0, '{"file_path": "b"}', id="call_abcdefgh1", name="Read"), index=1),
    chunk({}, "stop"),
    chunk({}, "tool_calls", index=1),
    usage(),
    done=False,
)
"""A stream of two answers; the second breaks the rule and then calls a tool."""

FIRST = {"role": "assistant", "content": "Fine words."}
SECOND = {
    "role": "assistant",
    "content": "BADWORD.",
    "tool_calls": [
        {
            "id": "call_abcdefgh1",
            "type": "function",
            "function": {"name": "Read", "arguments": '{"file_path": "b"}'},
        }
    ],
}
RESULT = {"role": "tool", "tool_call_id": "call_abcdefgh1", "content": "ok"}


async def asked_for_two(upstream: StrictChatUpstream, proxy: Any, new_agent: Any) -> Any:
    """An agent that was given both answers and has not chosen yet."""
    upstream.script(turn(raw(ANSWERS), raw(DONE)))
    agent = await new_agent(proxy, extra={"n": 2})
    agent.add_user({"type": "text", "text": "go"})
    async with agent.request() as response:
        got = await response.read()
    assert got.startswith(got[: got.index(b"\n\n") + 2] + ANSWERS)
    agent.extra = {}
    return agent


async def test_nothing_of_them_is_held_or_stopped(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    proxy = await start_proxy()
    await asked_for_two(upstream, proxy, new_agent)
    assert len(upstream.calls) == 1
    (item,) = await proxy.log(("deferred", "pending"))
    assert item["detail"] == "several choices are streamed at once"


async def test_the_reminder_goes_with_the_answer_that_broke_the_rule(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    proxy = await start_proxy()
    agent = await asked_for_two(upstream, proxy, new_agent)
    other = agent.fork()
    upstream.script(turn(text("On.")), turn(text("On.")))
    other.messages.append(FIRST)
    await other.say("more")
    assert "<system-reminder" not in str(upstream.calls[-1].messages)
    agent.messages += [SECOND, RESULT]
    await agent.ask()
    assert upstream.refusals == []
    assert upstream.calls[-1].messages[-1]["content"].startswith("<system-reminder")
    await proxy.log(("deferred", "clean"))


async def test_each_answer_is_told_of_its_own_violation(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    both = [
        data(chunk({"role": "assistant", "content": f"{BAD} {number}"}, "stop", index=number))
        for number in (0, 1)
    ]
    upstream.script(turn(raw(b"".join(both)), raw(DONE)), turn(text("On.")))
    proxy = await start_proxy()
    agent = await new_agent(proxy, extra={"n": 2})
    agent.add_user({"type": "text", "text": "go"})
    async with agent.request() as response:
        await response.read()
    await proxy.log(("deferred", "pending"), ("deferred", "pending"))
    agent.extra = {}
    agent.messages.append({"role": "assistant", "content": f"{BAD} 1"})
    await agent.say("more")
    assert str(upstream.calls[-1].messages).count("<system-reminder") == 1
