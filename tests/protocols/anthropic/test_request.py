from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reminding import reminded, user_says

from ttsr_proxy.protocols.anthropic import ANTHROPIC
from ttsr_proxy.protocols.anthropic.history import (
    item_of_block,
    text_block,
    tool_result_item,
    without_thinking,
)
from ttsr_proxy.protocols.anthropic.request import read_request, write_request
from ttsr_proxy.protocols.request import ApiRequest

EPHEMERAL = {"type": "ephemeral"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a.py", "cache_control": EPHEMERAL}
AGENT_TURNS: list[dict[str, Any]] = [
    {"role": "user", "content": "list the files"},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}, CALL]},
    {"role": "user", "content": [RESULT]},
]


def request(messages: list[Any], **fields: Any) -> ApiRequest:
    read = read_request(json.dumps({"model": "claude-x", "messages": messages, **fields}).encode(), {})
    assert read is not None
    return read


def messages_of(body: bytes) -> list[Any]:
    messages = json.loads(body)["messages"]
    assert isinstance(messages, list)
    return messages


def test_what_the_request_says_about_itself() -> None:
    read = request(
        AGENT_TURNS,
        stream=True,
        max_tokens=1000,
        system=[
            {"type": "text", "text": "You are"},
            {"type": "text", "text": "an agent", "cache_control": EPHEMERAL},
        ],
        tools=[
            {"name": "Bash", "input_schema": {}},
            {"type": "web_search_20250305", "name": "web_search"},
            {},
        ],
    )
    assert (read.model, read.stream, read.max_tokens, read.choices) == ("claude-x", True, 1000, 1)
    assert read.tools == ("Bash", "web_search")
    assert read.system == "You are\n\nan agent"
    assert (read.structured_output, read.prefill) == (False, False)
    assert any(item.kind == "thinking" for item in read.items)


def test_history_is_one_item_per_block() -> None:
    read = request([*AGENT_TURNS, {"role": "system", "content": "be brief"}])
    assert [(item.role, item.kind, item.message) for item in read.items] == [
        ("user", "text", 0),
        ("assistant", "thinking", 1),
        ("assistant", "tool_call", 1),
        ("user", "tool_result", 2),
        ("system", "text", 3),
    ]
    prompt, thinking, call, result, _ = read.items
    assert prompt.text == "list the files"
    assert thinking.text == "hm"
    assert thinking.anchor is not None
    assert thinking.anchor.startswith("sig:")
    assert len(thinking.anchor) == len("sig:") + 32
    assert call.anchor == "call:toolu_1"
    assert (result.anchor, "cache_control" in result.text) == (None, False)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"{}", b'{"messages":{}}', b"\x28\xb5\x2f\xfd", b"[" * 100_000]
)
def test_a_body_without_messages_cannot_be_inspected(body: bytes) -> None:
    assert read_request(body, {}) is None


def test_json_nested_almost_too_deep_to_parse_is_no_error() -> None:
    for depth in (970, 980, 990, 1000):
        nested = b"[" * depth + b"]" * depth
        read_request(b'{"messages":[{"role":"user","content":[{"type":"x","v":' + nested + b"}]}]}", {})


def test_wrong_types_read_as_absent() -> None:
    read = request(
        [], model=3, stream="yes", max_tokens=True, system={"a": 1}, tools={"a": 1}, output_config=[]
    )
    assert (read.model, read.stream, read.max_tokens, read.system, read.tools) == ("", False, None, "", ())
    assert not read.structured_output


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"output_config": {"format": {"type": "json_schema", "schema": {}}}}, True),
        ({"output_format": {"type": "json_schema", "schema": {}}}, True),
        ({"response_format": {"type": "json_object"}}, True),
        ({"output_config": {"effort": "high"}}, False),
        ({"output_config": {"format": None}}, False),
        ({"response_format": {"type": "text"}}, False),
    ],
)
def test_structured_output(fields: dict[str, Any], expected: bool) -> None:
    assert request(AGENT_TURNS, **fields).structured_output is expected


def test_a_trailing_assistant_message_is_a_prefill() -> None:
    assert request([*AGENT_TURNS, {"role": "assistant", "content": "Sure"}]).prefill


# Blocks of every kind, well formed and not, in messages that are well formed and not.
JSON_VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just({"a": [1]})
BLOCKS = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "thinking", "tool_use", "tool_result", "image", "new"])},
    optional={
        "text": st.text(max_size=3),
        "id": st.sampled_from(["a", "b"]),
        "signature": st.text(max_size=2),
        "content": JSON_VALUES,
        "cache_control": st.just(EPHEMERAL),
    },
)
MESSAGES = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "system", "developer"]) | JSON_VALUES,
        "content": st.text(max_size=3) | st.lists(BLOCKS, max_size=3) | st.lists(JSON_VALUES, max_size=2),
    },
    optional={"output_config": JSON_VALUES, "name": JSON_VALUES},
)


@given(st.lists(MESSAGES | JSON_VALUES, max_size=6))
@settings(max_examples=100)
def test_an_untouched_history_is_written_as_it_was_read(messages: list[Any]) -> None:
    read = request(messages, stream=True, metadata={"user_id": "x"})
    assert json.loads(write_request(read, read.items)) == read.body


@given(st.lists(MESSAGES, max_size=6))
@settings(max_examples=100)
def test_a_reminder_changes_nothing_but_its_own_message(messages: list[Any]) -> None:
    read = request(messages)
    written = messages_of(write_request(read, reminded(ANTHROPIC, read.items, "stop")))
    # Where the reminder stood, the rest is the client's own.
    holders = [at for at, message in enumerate(written) if message not in messages]
    assert len(holders) == 1
    content = written[holders[0]]["content"]
    assert content[-1] == text_block("stop")
    assert written[holders[0]]["role"] == "user"
    others = written[: holders[0]] + written[holders[0] + 1 :]
    assert all(message in messages for message in others)


def test_a_reminder_follows_the_tool_results_and_precedes_a_trailing_system_message() -> None:
    system = {"role": "system", "content": [{"type": "text", "text": "be brief", "cache_control": EPHEMERAL}]}
    read = request([*AGENT_TURNS, system])
    written = messages_of(write_request(read, reminded(ANTHROPIC, read.items, "stop")))
    assert written == [*AGENT_TURNS[:2], {"role": "user", "content": [RESULT, text_block("stop")]}, system]


def test_a_reminder_precedes_a_prefill() -> None:
    prefill = {"role": "assistant", "content": "Sure"}
    read = request([AGENT_TURNS[0], prefill])
    written = messages_of(write_request(read, reminded(ANTHROPIC, read.items, "stop")))
    assert written[0]["content"] == [text_block("list the files"), text_block("stop")]
    assert written[1] == prefill


def test_a_history_without_a_user_message_gets_one() -> None:
    read = request([])
    assert messages_of(write_request(read, reminded(ANTHROPIC, read.items, "stop"))) == [
        {"role": "user", "content": [text_block("stop")]}
    ]


def test_delivered_text_and_reminder_become_two_messages_at_the_end() -> None:
    read = request(AGENT_TURNS)
    cut = item_of_block(text_block("So far"), "assistant")
    written = messages_of(write_request(read, [*read.items, cut, user_says(ANTHROPIC, "stop")]))
    assert written == [
        *AGENT_TURNS,
        {"role": "assistant", "content": [text_block("So far")]},
        {"role": "user", "content": [text_block("stop")]},
    ]


def test_delivered_text_joins_the_clients_prefill() -> None:
    read = request([AGENT_TURNS[0], {"role": "assistant", "content": "Sure"}])
    written = messages_of(
        write_request(read, [*read.items, item_of_block(text_block(" thing"), "assistant")])
    )
    assert written[1] == {"role": "assistant", "content": [text_block("Sure"), text_block(" thing")]}


def test_an_echoed_message_can_be_split_by_hidden_turns() -> None:
    echoed = {"role": "assistant", "content": [text_block("cut"), text_block("retry"), CALL], "name": "x"}
    read = request([AGENT_TURNS[0], echoed, AGENT_TURNS[2]])
    prompt, cut, *rest = read.items
    written = messages_of(write_request(read, [prompt, cut, user_says(ANTHROPIC, "stop"), *rest]))
    assert written == [
        AGENT_TURNS[0],
        {"role": "assistant", "content": [text_block("cut")], "name": "x"},
        {"role": "user", "content": [text_block("stop")]},
        {"role": "assistant", "content": [text_block("retry"), CALL], "name": "x"},
        AGENT_TURNS[2],
    ]


def test_a_hidden_call_and_its_result_are_turns_of_their_own() -> None:
    read = request([AGENT_TURNS[0]])
    hidden = item_of_block(CALL, "assistant")
    result = tool_result_item("toolu_1", "not executed")
    written = messages_of(write_request(read, [*read.items, hidden, result, user_says(ANTHROPIC, "stop")]))
    assert written[1] == {"role": "assistant", "content": [CALL]}
    assert written[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "not executed", "is_error": True},
        text_block("stop"),
    ]


def test_what_stands_before_the_clients_message_of_the_same_role_is_part_of_it() -> None:
    read = request([AGENT_TURNS[0]])
    written = messages_of(write_request(read, [user_says(ANTHROPIC, "first"), *read.items]))
    assert written == [{"role": "user", "content": [text_block("first"), text_block("list the files")]}]


@pytest.mark.parametrize("blank", ["", " \n"])
def test_no_blank_text_is_added(blank: str) -> None:
    read = request(AGENT_TURNS)
    added = [item_of_block(text_block(blank), "assistant"), user_says(ANTHROPIC, blank)]
    assert messages_of(write_request(read, [*read.items, *added])) == AGENT_TURNS


def test_a_message_that_was_only_thinking_is_gone_without_it() -> None:
    read = request(
        [AGENT_TURNS[0], {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]}]
    )
    assert messages_of(write_request(read, without_thinking(read.items))) == [AGENT_TURNS[0]]
    read = request(AGENT_TURNS)
    assert messages_of(write_request(read, without_thinking(read.items)))[1]["content"] == [CALL]


def test_messages_of_unknown_shape_keep_their_place() -> None:
    strange: list[Any] = [{"role": "user", "content": ""}, {"role": "developer", "content": "x"}, 7]
    read = request([strange[0], AGENT_TURNS[0], *strange[1:], AGENT_TURNS[1]])
    written = messages_of(write_request(read, reminded(ANTHROPIC, read.items, "stop")))
    assert [written[0], *written[2:]] == [*strange, AGENT_TURNS[1]]


def test_a_smaller_cap_takes_the_thinking_budget_with_it() -> None:
    thinking = {"type": "enabled", "budget_tokens": 3000, "display": "summarized"}
    read = request(AGENT_TURNS, max_tokens=4000, thinking=thinking)
    body = json.loads(write_request(read, read.items, max_tokens=2000))
    assert (body["max_tokens"], body["thinking"]) == (2000, {**thinking, "budget_tokens": 1999})
    body = json.loads(write_request(read, read.items, max_tokens=-5))
    assert (body["max_tokens"], body["thinking"]["budget_tokens"]) == (1025, 1024)
    assert read.body["thinking"] == thinking


def test_a_smaller_cap_alone() -> None:
    read = request(AGENT_TURNS, max_tokens=4000, thinking={"type": "adaptive"})
    body = json.loads(write_request(read, read.items, max_tokens=0))
    assert (body["max_tokens"], body["thinking"]) == (1, {"type": "adaptive"})


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        (None, [text_block("rules")]),
        ("", [text_block("rules")]),
        ("own", [text_block("own"), text_block("rules")]),
        (
            [{"type": "text", "text": "own", "cache_control": EPHEMERAL}],
            [{"type": "text", "text": "own", "cache_control": EPHEMERAL}, text_block("rules")],
        ),
    ],
)
def test_more_system_text_follows_the_clients(system: Any, expected: list[Any]) -> None:
    read = request(AGENT_TURNS, system=system)
    assert json.loads(write_request(read, read.items, system_suffix="rules"))["system"] == expected
    assert read.body["system"] == system
