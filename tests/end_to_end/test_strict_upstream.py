"""The strict upstream refuses what the Messages API refuses, and nothing else."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import aiohttp
import pytest
from coding_agent import TOOLS, Agent
from strict_anthropic import (
    BOUND_ELSEWHERE,
    StrictUpstream,
    drop,
    http_error,
    redacted,
    server_tool,
    stall,
    strict_upstream,
    text,
    thinking,
    tool,
    turn,
    validate,
)
from strict_anthropic.canonical import prefix_text
from strict_anthropic.signing import read, sign

NEW = "claude-opus-5-5"
OLD = "claude-sonnet-4-5"


def t(value: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **more}


def call(id_: str, name: str = "Write") -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": {"file_path": "a"}}


def result(id_: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": "ok", **more}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def system(value: str = "Note.") -> dict[str, Any]:
    return {"role": "system", "content": value}


def body(*messages: dict[str, Any], model: str = NEW, **more: Any) -> dict[str, Any]:
    return {"model": model, "max_tokens": 4000, "tools": TOOLS, "messages": list(messages), **more}


def signed(before: dict[str, Any], value: str = "hm", prev: str | None = None) -> dict[str, Any]:
    """A thinking block as the API would make it in answer to the request `before`."""
    return {
        "type": "thinking",
        "thinking": value,
        "signature": sign("thinking", value, prefix_text(before), prev),
    }


def id_of(block: dict[str, Any]) -> str:
    found = read(block["signature"])
    assert found is not None
    return found.id


CACHED = {"cache_control": {"type": "ephemeral"}}
LEGAL = {
    "a plain question": body(user(t("hi"))),
    "string content": body({"role": "user", "content": "hi"}),
    "consecutive user messages": body(user(t("a")), user(t("b")), assistant(t("c")), user(t("d"))),
    "a tool call and its result": body(user(t("a")), assistant(t("b"), call("t1")), user(result("t1"))),
    "text after results": body(user(t("a")), assistant(call("t1")), user(result("t1"), t("note"))),
    "results split over adjacent user messages": body(
        user(t("a")), assistant(call("t1"), call("t2")), user(result("t1")), user(result("t2"), t("note"))
    ),
    "a trailing system message": body(user(t("a")), system()),
    "a system message before an answer": body(user(t("a")), system(), assistant(t("b")), user(t("c"))),
    "a system message after results": body(user(t("a")), assistant(call("t1")), user(result("t1")), system()),
    "four cache breakpoints": body(
        user(t("a", **CACHED), t("b", **CACHED)), system=[t("s", **CACHED), t("s2", **CACHED)]
    ),
    "prefill of an old model": body(user(t("a")), assistant(t("I say")), model=OLD),
    "a paused server tool at the end": body(
        user(t("a")), assistant({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}})
    ),
    "manual thinking without a tool loop": body(
        user(t("a")),
        assistant(t("b")),
        user(t("c")),
        model=OLD,
        thinking={"type": "enabled", "budget_tokens": 2000},
    ),
    "unknown fields of the request": body(user(t("a")), brand_new={"x": 1}),
}
REFUSED = {
    "assistant first": (body(assistant(t("a")), user(t("b"))), "first message"),
    "an unknown role": (body({"role": "tool", "content": "x"}), "role"),
    "system first": (body(system(), user(t("a"))), "first message"),
    "adjacent system messages": (body(user(t("a")), system(), system()), "adjacent"),
    "a system message before a user message": (body(user(t("a")), system(), user(t("b"))), "must be last"),
    "a system message after an answer": (
        body(user(t("a")), assistant(t("b")), system()),
        "directly follow a user",
    ),
    "a system message between call and result": (
        body(user(t("a")), assistant(call("t1")), system(), user(result("t1"))),
        "directly follow",
    ),
    "a system message to an old model": (body(user(t("a")), system(), model=OLD), "not supported"),
    "an empty text block": (body(user(t(""))), "non-empty"),
    "a whitespace text block": (body(user(t("a")), assistant(t(" \n")), user(t("b"))), "non-whitespace"),
    "a whitespace string": (body({"role": "user", "content": "  "}), "non-whitespace"),
    "an empty message": (body({"role": "user", "content": []}), "non-empty content"),
    "prefill of a new model": (body(user(t("a")), assistant(t("b"))), "prefill"),
    "prefill with trailing space": (body(user(t("a")), assistant(t("b ")), model=OLD), "trailing whitespace"),
    "a call without result": (
        body(user(t("a")), assistant(call("t1")), user(t("b"))),
        "without `tool_result`",
    ),
    "a call at the end": (body(user(t("a")), assistant(call("t1")), model=OLD), "without `tool_result`"),
    "one of two results": (
        body(user(t("a")), assistant(call("t1"), call("t2")), user(result("t1"))),
        "without `tool_result`",
    ),
    "text before the result": (
        body(user(t("a")), assistant(call("t1")), user(t("b"), result("t1"))),
        "at the beginning",
    ),
    "a result in a later message": (
        body(user(t("a")), assistant(call("t1")), user(t("b")), assistant(t("c")), user(result("t1"))),
        "without `tool_result`",
    ),
    "a result without call": (body(user(result("t9"))), "unexpected `tool_use_id`"),
    "two results of one call": (
        body(user(t("a")), assistant(call("t1")), user(result("t1"), result("t1"))),
        "single result",
    ),
    "a repeated call id": (
        body(
            user(t("a")), assistant(call("t1")), user(result("t1")), assistant(call("t1")), user(result("t1"))
        ),
        "unique",
    ),
    "tool blocks without tools": (
        body(user(t("a")), assistant(call("t1")), user(result("t1")), tools=[]),
        "must define tools",
    ),
    "input that is no object": (
        body(user(t("a")), assistant({**call("t1"), "input": "x"}), user(result("t1"))),
        "valid dictionary",
    ),
    "a private field in a block": (body(user(t("a", ttsr=1))), "Extra inputs"),
    "a private field in a message": (body({**user(t("a")), "ttsr": 1}), "Extra inputs"),
    "five cache breakpoints": (body(user(*[t("a", **CACHED)] * 5)), "maximum of 4"),
    "a fifth breakpoint inside a result": (
        body(
            user(*[t("a", **CACHED)] * 4),
            assistant(call("t1")),
            user(result("t1", content=[t("x", **CACHED)])),
        ),
        "maximum of 4",
    ),
    "no max_tokens": ({k: v for k, v in body(user(t("a"))).items() if k != "max_tokens"}, "max_tokens"),
    "max_tokens within the thinking budget": (
        body(user(t("a")), thinking={"type": "enabled", "budget_tokens": 4000}, model=OLD),
        "greater than",
    ),
    "unsigned thinking": (
        body(
            user(t("a")),
            assistant({"type": "thinking", "thinking": "x", "signature": ""}, t("b")),
            user(t("c")),
        ),
        "Invalid `signature`",
    ),
    "forged thinking": (
        body(
            user(t("a")),
            assistant({"type": "thinking", "thinking": "x", "signature": "Zm9v"}, t("b")),
            user(t("c")),
        ),
        "Invalid `signature`",
    ),
    "tool use in manual mode without thinking": (
        body(
            user(t("a")),
            assistant(t("b"), call("t1")),
            user(result("t1"), t("note")),
            model=OLD,
            thinking={"type": "enabled", "budget_tokens": 2000},
        ),
        "Expected `thinking`",
    ),
    "block_binding without its beta": (
        body(user(t("a")), thinking={"type": "adaptive", "block_binding": {}}),
        "Extra inputs",
    ),
}


@pytest.mark.parametrize("case", LEGAL.values(), ids=LEGAL)
def test_a_legal_request_is_accepted(case: dict[str, Any]) -> None:
    assert validate(case) is None


@pytest.mark.parametrize(("case", "reason"), REFUSED.values(), ids=REFUSED)
def test_an_illegal_request_is_refused_with_the_reason(case: dict[str, Any], reason: str) -> None:
    error = validate(case)
    assert error is not None
    assert error["type"] == "invalid_request_error"
    assert reason in error["message"]


def test_count_tokens_needs_no_max_tokens() -> None:
    case = body(user(t("a")))
    del case["max_tokens"]
    assert validate(case, counting=True) is None


@pytest.fixture
def thought() -> dict[str, Any]:
    """A request whose history has one signed thinking block."""
    first = body(user(t("question")), system=[t("s")])
    return body(user(t("question")), assistant(signed(first), t("answer")), user(t("next")), system=[t("s")])


def refusal(case: dict[str, Any]) -> str | None:
    error = validate(case)
    return error["message"] if error else None


def test_thinking_in_its_own_conversation_is_accepted(thought: dict[str, Any]) -> None:
    assert refusal(thought) is None


def edit_text(case: dict[str, Any]) -> None:
    case["messages"][0]["content"][0]["text"] = "other"


def add_block(case: dict[str, Any]) -> None:
    case["messages"][0]["content"].append(t("reminder"))


def edit_system(case: dict[str, Any]) -> None:
    case["system"] = "other"


def edit_tools(case: dict[str, Any]) -> None:
    case["tools"] = case["tools"][:1]


def put_message_before(case: dict[str, Any]) -> None:
    case["messages"][:0] = [user(t("earlier")), assistant(t("one"))]


@pytest.mark.parametrize("edit", [edit_text, add_block, edit_system, edit_tools, put_message_before])
def test_an_edit_before_bound_thinking_is_refused(thought: dict[str, Any], edit: Any) -> None:
    edit(thought)
    assert BOUND_ELSEWHERE in str(refusal(thought))


@pytest.mark.parametrize("edit", [edit_text, add_block, edit_system, edit_tools])
def test_an_older_model_does_not_bind_thinking(edit: Any) -> None:
    first = body(user(t("question")), system=[t("s")], model=OLD)
    case = body(
        user(t("question")),
        assistant(signed(first), t("answer")),
        user(t("next")),
        system=[t("s")],
        model=OLD,
    )
    edit(case)
    assert refusal(case) is None


def test_what_does_not_count_as_an_edit(thought: dict[str, Any]) -> None:
    thought["messages"][0]["content"] = "question"
    thought["system"] = [t("s", **CACHED)]
    thought["messages"][2]["content"].append(t("more"))
    thought["max_tokens"] = 10
    thought["temperature"] = 1
    thought["thinking"] = {"type": "adaptive"}
    assert refusal(thought) is None


def test_changed_thinking_text_is_refused(thought: dict[str, Any]) -> None:
    thought["messages"][1]["content"][0]["thinking"] = "hmm"
    assert "Invalid `signature`" in str(refusal(thought))


def test_thinking_cannot_be_the_last_block_of_a_message(thought: dict[str, Any]) -> None:
    del thought["messages"][1]["content"][1]
    assert "final block" in str(refusal(thought))


def three_thoughts() -> dict[str, Any]:
    case = body(user(t("q1")))
    previous = None
    for number in (2, 3, 4):
        block = signed(case, f"thought {number}", previous)
        previous = id_of(block)
        case = body(*case["messages"], assistant(block, t("answer")), user(t(f"q{number}")))
    return case


@pytest.mark.parametrize(
    ("left_out", "accepted"), [((1,), True), ((5,), True), ((1, 3, 5), True), ((3,), False)]
)
def test_thinking_may_be_left_out_everywhere_but_in_the_middle(
    left_out: tuple[int, ...], accepted: bool
) -> None:
    case = three_thoughts()
    for position in left_out:
        del case["messages"][position]["content"][0]
    assert (refusal(case) is None) is accepted


def test_the_caller_may_have_unbound_thinking_dropped(thought: dict[str, Any]) -> None:
    edit_text(thought)
    thought["thinking"] = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    assert validate(thought, betas=["thinking-binding-controls-2026-08-01"]) is None


@pytest.fixture
async def upstream() -> Any:
    async with strict_upstream() as server:
        yield server


async def test_a_conversation_with_every_kind_of_block_is_accepted(upstream: StrictUpstream) -> None:
    upstream.script(
        turn(thinking("first"), text("Writing."), tool("Write", {"file_path": "a", "content": "é✓"})),
        turn(thinking("", omitted=True), tool("Read", {"file_path": "a"}), tool("Bash", {"command": "ls"})),
        turn(redacted(), server_tool("web_search", {"query": "q"}, []), text("Done.")),
        turn(text("Bye.")),
    )
    async with Agent(upstream.url, thinking={"type": "adaptive"}) as agent:
        first = await agent.say("go")
        assert first.kinds == ["thinking", "text", "tool_use"]
        assert first.calls[0]["input"] == {"file_path": "a", "content": "é✓"}
        assert first.usage["output_tokens"] > 1
        await agent.results()
        third = await agent.results()
        assert third.kinds == ["redacted_thinking", "server_tool_use", "web_search_tool_result", "text"]
        last = await agent.say("thanks")
    assert upstream.refusals == []
    assert last.text == "Bye."
    assert upstream.unused == 0


async def test_an_edited_history_is_refused_over_the_wire(upstream: StrictUpstream) -> None:
    upstream.script(turn(thinking("hm"), text("a")), turn(text("b")))
    async with Agent(upstream.url) as agent:
        await agent.say("one")
        agent.messages[0]["content"].insert(0, t("inserted"))
        answer = await agent.say("two")
    assert answer.status == 400
    assert answer.error is not None
    assert BOUND_ELSEWHERE in answer.error["message"]
    assert upstream.unused == 1


async def test_not_streamed_and_streamed_answers_are_the_same(upstream: StrictUpstream) -> None:
    steps = (thinking("hm"), text("a"), tool("Read", {"file_path": "x"}, id="toolu_1"))
    upstream.script(turn(*steps), turn(*steps))
    async with Agent(upstream.url) as agent:
        streamed = await agent.say("one")
        agent.messages.clear()
        agent.stream = False
        whole = await agent.say("one")
    for answer in (streamed, whole):
        answer.blocks[0].pop("signature")
    assert streamed.blocks == whole.blocks
    assert streamed.stop_reason == whole.stop_reason == "tool_use"
    assert streamed.usage == whole.usage


async def test_scripted_errors_and_drops_arrive(upstream: StrictUpstream) -> None:
    upstream.script(http_error(529, headers={"retry-after": "7"}), turn(text("ab", drop())))
    async with Agent(upstream.url) as agent:
        answer = await agent.say("one")
        assert (answer.status, answer.headers["retry-after"]) == (529, "7")
        with pytest.raises(aiohttp.ClientPayloadError):
            await agent.ask()


async def test_a_caller_that_leaves_is_noticed(upstream: StrictUpstream) -> None:
    waiting = stall()
    upstream.script(turn(text("ab", waiting)))
    async with Agent(upstream.url) as agent:
        agent.add_user(t("one"))
        async with agent.request() as response:
            await waiting.reached.wait()
            response.close()
        await asyncio.wait_for(upstream.calls[0].aborted.wait(), 5)
    assert not upstream.calls[0].finished.is_set()


async def test_a_missing_credential_is_refused(upstream: StrictUpstream) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{upstream.url}/v1/messages", json=copy.deepcopy(LEGAL["a plain question"])
        ) as response,
    ):
        assert response.status == 401
