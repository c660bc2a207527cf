"""The strict upstream refuses what Chat Completions refuses, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from coding_agent.chat import CHAT_TOOLS
from strict_anthropic import text, thinking, tool, turn
from strict_openai_chat import StrictChatUpstream, validate


def user(content: Any = "hi") -> dict[str, Any]:
    return {"role": "user", "content": content}


def calls(*ids: str, content: Any = None, **more: Any) -> dict[str, Any]:
    entries = [
        {"id": one, "type": "function", "function": {"name": "Write", "arguments": "{}"}} for one in ids
    ]
    return {"role": "assistant", "content": content, "tool_calls": entries, **more}


def result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "ok"}


def body(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": "gpt-x", "messages": list(messages), "tools": CHAT_TOOLS, **more}


OLDER = {"role": "assistant", "content": None, "function_call": {"name": "W", "arguments": "{}"}}
LEGAL = {
    "a question": body(user()),
    "calls and results": body(user(), calls("a", "b"), result("b"), result("a"), user()),
    "a system message anywhere": body(user(), {"role": "system", "content": "x"}, user()),
    "two user messages": body(user(), user()),
    "an answer at the end": body(user(), {"role": "assistant", "content": "I"}),
    "an older call": body(user(), OLDER, {"role": "function", "name": "W", "content": "ok"}),
    "unknown fields of the request": body(user(), brand_new=1),
}
REFUSED = {
    "no messages": (body(), "too short"),
    "an unknown role": (body({"role": "critic", "content": "x"}), "role"),
    "a call without result": (body(user(), calls("a")), "did not have response messages: a"),
    "one of two results": (body(user(), calls("a", "b"), result("a"), user()), "response messages: b"),
    "a message between call and result": (body(user(), calls("a"), user(), result("a")), "must be followed"),
    "a result without call": (body(user(), result("a")), "preceeding message"),
    "a result of another call": (body(user(), calls("a"), result("b")), "not found"),
    "two results of one call": (body(user(), calls("a"), result("a"), result("a")), "not found"),
    "no calls": (body(user(), calls(content="x")), "too short"),
    "calls with the same id": (body(user(), calls("a", "a"), result("a"), result("a")), "unique"),
    "an index in a call of the history": (
        body(user(), {**calls(), "tool_calls": [{**calls("a")["tool_calls"][0], "index": 0}]}),
        "Unknown parameter",
    ),
    "an answer that says nothing": (body(user(), {"role": "assistant", "content": None}), "got null"),
    "an empty answer": (body(user(), {"role": "assistant", "content": ""}), "says nothing"),
    "an empty list": (body(user([])), "empty array"),
    "a part without text": (body(user([{"type": "text", "text": ""}])), "without text"),
    "a private field": (body({**user(), "ttsr": 1}), "Unknown parameter"),
    "reasoning": (body(user(), {**calls("a"), "reasoning_content": "x"}, result("a")), "Unknown parameter"),
    "an older call without result": (body(user(), OLDER, user()), "no result"),
    "no tools": (body(user(), tools=[]), "too short"),
    "both caps": (body(user(), max_tokens=1, max_completion_tokens=1), "same time"),
    "a cap of nothing": (body(user(), max_tokens=0), "below minimum"),
    "options of a stream without one": (body(user(), stream_options={}), "only allowed"),
}


@pytest.mark.parametrize("case", LEGAL.values(), ids=LEGAL)
def test_a_legal_request_is_accepted(case: dict[str, Any]) -> None:
    assert validate(case) is None


@pytest.mark.parametrize(("case", "reason"), REFUSED.values(), ids=REFUSED)
def test_an_illegal_request_is_refused_with_the_reason(case: dict[str, Any], reason: str) -> None:
    error = validate(case)
    assert error is not None
    assert reason in error["message"]


async def test_a_conversation_is_the_same_streamed_and_not(
    upstream: StrictChatUpstream, new_agent: Any
) -> None:
    steps = (thinking("hm"), text("I ✓"), tool("Read", {"file_path": "x"}, id="call_one23456"))
    upstream.script(turn(*steps), turn(*steps), turn(text("Done.")))
    agent = await new_agent(upstream)
    streamed = await agent.say("one")
    agent.messages.clear()
    agent.stream = False
    whole = await agent.say("one")
    assert streamed.blocks == whole.blocks
    assert streamed.usage == whole.usage
    assert (await agent.results()).text == "Done."
    assert upstream.refusals == []


async def test_a_missing_credential_is_refused(upstream: StrictChatUpstream, new_agent: Any) -> None:
    agent = await new_agent(upstream, headers={"authorization": ""})
    assert (await agent.say("one")).status == 401
