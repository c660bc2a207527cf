"""Chat clients resend what they know; upstream sees what it saw before, hidden turns included."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from chat_chunks import chunk, data
from coding_agent import EchoStyle
from proxy_under_test import Workspace
from strict_anthropic import http_error, raw, stall, text, thinking, tool, turn
from strict_openai_chat import Dialect, StrictChatUpstream
from ttsr_asserts import assert_clean

BAD = "BADWORD"
CLEAN_WRITE = {"file_path": "a.py", "content": "print('fine')\n"}
BAD_WRITE = {"file_path": "a.py", "content": f"print('{BAD}')\n"}
EDIT = {"file_path": "a.py", "old_string": "a", "new_string": "b"}

StartProxy = Callable[..., Awaitable[Any]]


@pytest.fixture(autouse=True)
def rule(workspace: Workspace) -> None:
    workspace.rule("no-bad-word", BAD, scope=["text", "tool"])


STYLES: dict[str, dict[str, Any]] = {
    "as it came": {},
    "parts": {"parts": True},
    "other spelling of arguments": {"style": EchoStyle(reserialise=True, add_defaults=True)},
    "with its reasoning": {"echo_reasoning": True},
    "with a system message at the end": {},
}


def _as_string(message: dict[str, Any]) -> dict[str, Any]:
    match message["content"]:
        case [{"type": "text", "text": only}]:
            return {**message, "content": only}
        case _:
            return message


def assert_grows(upstream: StrictChatUpstream) -> None:
    """Every accepted request begins with all that upstream saw before, a trailing system message aside."""
    accepted = [
        [_as_string(message) for message in call.messages if message["role"] != "system"]
        for call in upstream.calls
        if call.refused is None
    ]
    for before, after in itertools.pairwise(accepted):
        assert after[: len(before)] == before


@pytest.mark.parametrize("name", STYLES)
async def test_a_continued_answer_is_restored_in_every_later_request(
    upstream: StrictChatUpstream, start_proxy: StartProxy, new_agent: Any, name: str
) -> None:
    upstream.dialect = Dialect(takes_reasoning=True)
    agent = await new_agent(await start_proxy(), **STYLES[name])
    if name == "with a system message at the end":
        agent.trailing_system = "Be brief."
    upstream.script(
        turn(thinking("Hm."), text(f"Shown words, then {BAD}")),
        turn(thinking("So."), text("the rest."), tool("Write", CLEAN_WRITE), tool("Edit", EDIT)),
        turn(text("More.")),
        turn(tool("Read", {"file_path": "a"})),
        turn(text("Bye.")),
    )
    assert_clean(await agent.say("go"), BAD)
    for step in (agent.results, lambda: agent.say("on"), agent.results):
        answer = await step()
        assert answer.complete, answer.error
    assert upstream.refusals == []
    assert upstream.unused == 0
    assert_grows(upstream)
    last = [m for m in upstream.calls[-1].messages if m["role"] != "system"]
    assert [m["role"] for m in last[:6]] == ["user", "assistant", "user", "assistant", "tool", "tool"]
    assert BAD not in str(last)


async def test_it_is_restored_after_the_proxy_was_started_again(
    upstream: StrictChatUpstream, start_proxy: StartProxy, new_agent: Any
) -> None:
    agent = await new_agent(await start_proxy())
    upstream.script(turn(text(f"Shown, {BAD}")), turn(text("rest.")), turn(text("More.")))
    await agent.say("go")
    agent.base_url = (await start_proxy()).url
    await agent.say("on")
    assert_grows(upstream)
    assert "<system-interrupt" in str(upstream.calls[-1].messages)


async def test_a_rewound_and_a_forked_conversation_follow_their_own_path(
    upstream: StrictChatUpstream, start_proxy: StartProxy, new_agent: Any
) -> None:
    agent = await new_agent(await start_proxy())
    upstream.script(
        turn(text("First.")),
        turn(text(f"Shown, {BAD}")),
        turn(text("rest."), tool("Write", CLEAN_WRITE)),
        turn(text("Left.")),
        turn(text("Right.")),
        turn(text("Rewound.")),
    )
    await agent.say("one")
    rewound = agent.fork()
    await agent.say("two")
    other = agent.fork()
    await agent.results()
    await other.results(Write="other result")
    hidden = [str(call.messages).count("<system-interrupt") for call in upstream.calls[-2:]]
    assert hidden == [1, 1]
    await rewound.say("two, differently")
    assert "<system-interrupt" not in str(upstream.calls[-1].messages)
    assert upstream.refusals == []


async def test_an_answer_that_the_user_cut_short_is_still_known(
    upstream: StrictChatUpstream, start_proxy: StartProxy, new_agent: Any
) -> None:
    agent = await new_agent(await start_proxy())
    upstream.script(turn(text(f"Shown words, {BAD}")), turn(text("and a long rest.")), turn(text("Ok.")))
    await agent.say("go")
    agent.messages[-1]["content"] = "Shown words, \n\nand a"
    await agent.say("stop")
    assert [m["role"] for m in upstream.calls[-1].messages] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]


async def test_a_reminder_waits_for_the_result_of_the_call(
    upstream: StrictChatUpstream, workspace: Workspace, start_proxy: StartProxy, new_agent: Any
) -> None:
    workspace.rule("no-bad-word", BAD, scope=["text", "tool"], interruptMode="never")
    proxy = await start_proxy()
    agent = await new_agent(proxy)
    upstream.script(
        turn(tool("Write", BAD_WRITE), tool("Read", {"file_path": "b"})),
        turn(text("Sorry.")),
        turn(text("On.")),
    )
    answer = await agent.say("go")
    assert answer.calls[0]["input"] == BAD_WRITE
    await agent.results()
    await agent.say("on")
    assert_grows(upstream)
    placed = upstream.calls[1].messages[-1]
    assert placed["role"] == "user"
    assert placed["content"].startswith("<system-reminder")
    await proxy.log(("reminded", "clean"))


async def test_a_reminder_about_prose_waits_for_the_users_next_message(
    upstream: StrictChatUpstream, workspace: Workspace, start_proxy: StartProxy, new_agent: Any
) -> None:
    workspace.rule("no-bad-word", BAD, scope=["text", "tool"], interruptMode="never")
    proxy = await start_proxy()
    agent = await new_agent(proxy, parts=True)
    upstream.script(turn(text(f"A {BAD}.")), turn(text("Sorry.")), turn(text("On.")))
    await agent.say("go")
    await agent.say("next")
    await agent.say("on")
    assert_grows(upstream)
    next_message = upstream.calls[1].messages[-1]
    assert next_message["content"][0]["text"] == "next"
    assert next_message["content"][1]["text"].startswith("<system-reminder")
    await proxy.log(("deferred", "clean"))


async def test_a_client_that_leaves_at_the_reason_to_stop_has_the_whole_answer(
    upstream: StrictChatUpstream, workspace: Workspace, start_proxy: StartProxy, new_agent: Any
) -> None:
    workspace.rule("no-bad-word", BAD, scope=["text", "tool"], interruptMode="never")
    proxy = await start_proxy()
    agent = await new_agent(proxy)
    upstream.script(turn(text(f"A {BAD}."), raw(data(chunk({}, "stop"))), stall()), turn(text("Sorry.")))
    agent.add_user({"type": "text", "text": "go"})
    async with agent.request() as response:
        got = b""
        while b'"finish_reason": "stop"' not in got:
            got += await response.content.readany()
        response.close()
    await proxy.log(("deferred", "pending"))
    agent.messages.append({"role": "assistant", "content": f"A {BAD}."})
    await agent.say("next")
    assert "<system-reminder" in upstream.calls[1].messages[-1]["content"]
    await proxy.log(("deferred", "clean"))


async def test_a_reminder_that_upstream_refuses_is_left_out(
    upstream: StrictChatUpstream, start_proxy: StartProxy, new_agent: Any
) -> None:
    upstream.script(
        turn(text(BAD)), http_error(400, message="after tool comes assistant"), turn(text(f"Again {BAD}"))
    )
    proxy = await start_proxy()
    agent = await new_agent(proxy)
    answer = await agent.say("go")
    assert answer.text == f"Again {BAD}"
    await proxy.log(("interrupted", "failed"), ("exhausted", "violated again"))


@pytest.mark.parametrize("ids", ["functions.Write:0", ""], ids=["ids that only count", "no ids"])
async def test_calls_without_an_id_of_their_own_do_not_mix_conversations_up(
    upstream: StrictChatUpstream, start_proxy: StartProxy, new_agent: Any, ids: str
) -> None:
    upstream.dialect = Dialect(ids=bool(ids))
    proxy = await start_proxy()
    hidden, plain = await new_agent(proxy), await new_agent(proxy)
    upstream.script(
        turn(tool("Write", BAD_WRITE, id=ids)),
        turn(tool("Write", CLEAN_WRITE, id=ids)),
        turn(tool("Write", CLEAN_WRITE, id=ids)),
        turn(text("Hidden.")),
        turn(text("Plain.")),
    )
    await hidden.say("go")
    await plain.say("another question")
    for agent in (hidden, plain):
        for call in agent.messages[-1]["tool_calls"]:
            call["id"] = call["id"] or f"made-up-by-the-client-{id(agent)}"
        await agent.results()
    assert upstream.refusals == []
    with_hidden, without = upstream.calls[-2:]
    assert "<system-interrupt" in str(with_hidden.messages)
    assert "<system-interrupt" not in str(without.messages)
