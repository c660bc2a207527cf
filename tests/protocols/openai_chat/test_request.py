"""Requests: what they ask for, and how their messages are taken apart and put together again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reminding import reminded, user_says

from ttsr_proxy.protocols.history import HistoryItem
from ttsr_proxy.protocols.openai_chat import OPENAI_CHAT, history
from ttsr_proxy.protocols.openai_chat.history import item_of_block
from ttsr_proxy.protocols.openai_chat.request import read_request, write_request
from ttsr_proxy.protocols.request import ApiRequest

Json = dict[str, Any]


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


def called(*ids: str, content: Any = None, **more: Any) -> Json:
    calls = [{"id": one, "type": "function", "function": {"name": "Write", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": content, "tool_calls": calls, **more}


def result(call_id: str, content: Any = "ok") -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def read(*messages: Any, **body: Any) -> ApiRequest:
    request = read_request(json.dumps({"model": "m", "messages": list(messages), **body}).encode(), {})
    assert request is not None
    return request


def written(request: ApiRequest, items: Any, **changes: Any) -> list[Any]:
    body = json.loads(write_request(request, tuple(items), **changes))
    return list(body["messages"])


SYSTEM = {"role": "system", "content": "You write code."}
HISTORIES: dict[str, list[Any]] = {
    "strings": [SYSTEM, user("hi"), {"role": "assistant", "content": "yes"}, user("go")],
    "parts": [
        user([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:,"}}])
    ],
    "calls": [
        user("go"),
        called("call_aaaaaaa1", "call_aaaaaaa2"),
        result("call_aaaaaaa1"),
        result("call_aaaaaaa2"),
    ],
    "text and calls": [
        user("go"),
        called("call_aaaaaaa1", content="I do"),
        result("call_aaaaaaa1", [{"type": "text", "text": "ok"}]),
    ],
    "reasoning": [
        user("go"),
        called("call_aaaaaaa1", content="", reasoning_content="hm"),
        result("call_aaaaaaa1"),
    ],
    "refusal": [user("go"), {"role": "assistant", "content": None, "refusal": "no"}, user("please")],
    "older functions": [
        user("go"),
        {"role": "assistant", "content": None, "function_call": {"name": "W", "arguments": "{}"}},
        {"role": "function", "name": "W", "content": "ok"},
    ],
    "empty": [user("go"), {"role": "assistant", "content": ""}, user(""), {"role": "assistant"}, user("on")],
    "unknown": [
        7,
        {"role": "critic", "content": "bad"},
        user(["bare string"]),
        {"content": "no role"},
        user("go"),
    ],
    "vendor fields": [
        {"role": "developer", "content": "x", "name": "d"},
        {**called("call_aaaaaaa1"), "annotations": []},
        result("call_aaaaaaa1"),
    ],
}


@pytest.mark.parametrize("messages", HISTORIES.values(), ids=HISTORIES)
def test_an_untouched_history_is_written_as_it_was(messages: list[Any]) -> None:
    request = read(*messages, unknown={"x": 1})
    body = json.loads(write_request(request, request.items))
    assert body == {"model": "m", "messages": messages, "unknown": {"x": 1}}


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "role",
                    "content",
                    "type",
                    "text",
                    "tool_calls",
                    "function",
                    "id",
                    "name",
                    "arguments",
                    "reasoning",
                    "refusal",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)
MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system", "developer", "x"]), "content": JSON},
    optional={"tool_calls": JSON, "refusal": JSON, "reasoning_content": JSON, "function_call": JSON},
)


@given(st.lists(MESSAGES, max_size=4))
def test_no_history_is_changed_or_breaks_anything(messages: list[Any]) -> None:
    request = read(*messages)
    assert written(request, request.items) == messages
    for item in request.items:
        history.chain_text(item)
        history.keep_marks(item.value, item.value)
    written(request, reminded(OPENAI_CHAT, request.items, "note"))
    written(request, [*request.items, item_of_block({"type": "text", "text": "more"}, "assistant")])


def test_what_a_request_asks_for() -> None:
    request = read(
        user("hi"),
        stream=True,
        n=2,
        max_tokens=9,
        max_completion_tokens=7,
        tools=[
            {"type": "function", "function": {"name": "Write"}},
            {"type": "custom", "custom": {"name": "patch"}},
        ],
        functions=[{"name": "old"}],
        response_format={"type": "json_schema", "json_schema": {}},
    )
    assert (request.model, request.stream, request.choices, request.max_tokens) == ("m", True, 2, 7)
    assert request.tools == ("Write", "patch", "old")
    assert request.structured_output
    assert not read(user("hi"), response_format={"type": "text"}).structured_output


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"messages": "hi"}'])
def test_a_body_without_messages_is_not_inspected(body: bytes) -> None:
    assert read_request(body, {}) is None


def test_an_answer_that_is_to_be_continued_is_a_prefill() -> None:
    assert read(user("hi"), {"role": "assistant", "content": "I"}).prefill
    assert not read(user("hi"), called("call_aaaaaaa1")).prefill


def test_the_items_of_an_answer_in_order() -> None:
    request = read(called("call_aaaaaaa1", content="I do", reasoning_content="hm", refusal="but"))
    assert [(item.kind, item.text) for item in request.items[:3]] == [
        ("thinking", "hm"),
        ("text", "I do"),
        ("text", "but"),
    ]
    assert [(item.kind, item.anchor) for item in request.items[3:]] == [("tool_call", "call:call_aaaaaaa1")]


@pytest.mark.parametrize(
    ("call_id", "unique"),
    [
        ("call_a1b2c3d4e5", True),
        ("chatcmpl-tool-0f0e0d0c0b0a09080706050403020100", True),
        ("D681PevKs", True),
        ("732156412", True),
        ("functions.Write:0", False),
        ("call_0", False),
        ("tool-12", False),
        ("0", False),
        ("", False),
    ],
)
def test_an_id_that_only_counts_is_no_anchor(call_id: str, unique: bool) -> None:
    (item,) = read(called(call_id)).items
    assert item.anchor == (f"call:{call_id}" if unique else None)


# Reminders.


def test_a_reminder_joins_the_users_last_message_in_its_own_form() -> None:
    request = read(SYSTEM, user("hi"))
    assert written(request, reminded(OPENAI_CHAT, request.items, "note")) == [SYSTEM, user("hi\n\nnote")]
    listed = read(SYSTEM, user([{"type": "text", "text": "hi"}]))
    assert written(listed, reminded(OPENAI_CHAT, listed.items, "note")) == [
        SYSTEM,
        user([{"type": "text", "text": "hi"}, {"type": "text", "text": "note"}]),
    ]


def test_behind_results_it_is_a_message_of_its_own() -> None:
    messages = [
        user("go"),
        called("call_aaaaaaa1", "call_aaaaaaa2"),
        result("call_aaaaaaa1"),
        result("call_aaaaaaa2"),
    ]
    request = read(*messages)
    assert written(request, reminded(OPENAI_CHAT, request.items, "note")) == [*messages, user("note")]


def test_it_stands_before_a_system_message_and_before_a_prefill() -> None:
    tail = [{"role": "system", "content": "s"}, {"role": "assistant", "content": "I"}]
    request = read(user("go"), *tail)
    assert written(request, reminded(OPENAI_CHAT, request.items, "note")) == [user("go\n\nnote"), *tail]


# What an interrupted answer was made of.


def test_an_answer_is_split_where_something_hidden_stood() -> None:
    echo = called("call_aaaaaaa1", content="Cut,\n\nrest.", name="bot", annotations=[1])
    request = read(user("go"), echo, result("call_aaaaaaa1"))
    text, call = request.items[1:3]
    split = [
        request.items[0],
        text._replace(value={"type": "text", "text": "Cut,"}),
        user_says(OPENAI_CHAT, "note"),
        text._replace(value={"type": "text", "text": "rest."}),
        call,
        request.items[3],
    ]
    assert written(request, split) == [
        user("go"),
        {"role": "assistant", "name": "bot", "content": "Cut,"},
        user("note"),
        {
            "role": "assistant",
            "name": "bot",
            "content": "rest.",
            "annotations": [1],
            "tool_calls": echo["tool_calls"],
        },
        result("call_aaaaaaa1"),
    ]


def test_a_hidden_call_and_its_result_stand_together() -> None:
    request = read(user("go"))
    (call,) = read(called("call_aaaaaaa1")).items
    hidden = [
        call._replace(message=None),
        history.tool_result_item("call_aaaaaaa1", "no"),
        user_says(OPENAI_CHAT, "note"),
    ]
    assert written(request, [*request.items, *hidden]) == [
        user("go"),
        called("call_aaaaaaa1"),
        result("call_aaaaaaa1", "no"),
        user("note"),
    ]


def test_text_and_call_of_an_aborted_answer_are_one_message() -> None:
    request = read(user("go"))
    items = read(called("call_aaaaaaa1", content="I do")).items
    made = [*request.items, *(item._replace(message=None) for item in items)]
    assert written(request, made) == [user("go"), called("call_aaaaaaa1", content="I do")]


def test_a_prefill_and_its_continuation_are_one_message() -> None:
    request = read(user("go"), {"role": "assistant", "content": "I "})
    more = item_of_block({"type": "text", "text": "do."}, "assistant")
    assert written(request, [*request.items, more, user_says(OPENAI_CHAT, "note")])[1:] == [
        {"role": "assistant", "content": "I do."},
        user("note"),
    ]


def reasoning_item() -> HistoryItem:
    return item_of_block({"type": "reasoning", "reasoning_content": "hm"}, "assistant")


def test_reasoning_goes_back_only_where_the_client_sends_it_back() -> None:
    request = read(user("go"))
    answer = item_of_block({"type": "text", "text": "Yes"}, "assistant")
    assert written(request, [*request.items, reasoning_item(), answer])[1] == {
        "role": "assistant",
        "content": "Yes",
    }
    echoed = read(
        user("go"), {"role": "assistant", "content": "No", "reasoning_content": "hm hm"}, user("on")
    )
    items = [
        echoed.items[0],
        reasoning_item()._replace(message=1),
        answer._replace(message=1),
        echoed.items[3],
    ]
    assert written(echoed, items)[1] == {"role": "assistant", "content": "Yes", "reasoning_content": "hm"}


def test_both_names_of_the_cap_are_lowered() -> None:
    request = read(user("go"), max_tokens=9, max_completion_tokens=8)
    body = json.loads(write_request(request, request.items, max_tokens=5))
    assert (body["max_tokens"], body["max_completion_tokens"]) == (5, 5)
    assert "max_tokens" not in json.loads(write_request(read(user("go")), (), max_tokens=5))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], [{"role": "system", "content": "more"}]),
        ([SYSTEM], [{"role": "system", "content": "You write code.\n\nmore"}]),
        (
            [SYSTEM, {"role": "developer", "content": [{"type": "text", "text": "b"}]}],
            [
                SYSTEM,
                {
                    "role": "developer",
                    "content": [{"type": "text", "text": "b"}, {"type": "text", "text": "more"}],
                },
            ],
        ),
    ],
)
def test_more_system_text_goes_to_the_end_of_the_clients_own(before: list[Json], after: list[Json]) -> None:
    request = read(*before, user("go"))
    assert written(request, request.items, system_suffix="more") == [*after, user("go")]


# What is the same however a client spells it.


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (user("hi"), user([{"type": "text", "text": "hi"}])),
        (result("call_aaaaaaa1", "ok"), result("call_aaaaaaa1", [{"type": "text", "text": "ok"}])),
        (called("call_aaaaaaa1"), {**called("call_aaaaaaa1"), "content": ""}),
    ],
)
def test_spellings_of_the_same_message_are_equal(one: Json, other: Json) -> None:
    assert [history.chain_text(item) for item in read(one).items] == [
        history.chain_text(item) for item in read(other).items
    ]


def test_arguments_are_compared_as_json() -> None:
    def text(arguments: str) -> str:
        call = {"id": "call_aaaaaaa1", "function": {"name": "W", "arguments": arguments}}
        return item_of_block(call, "assistant").text

    assert text('{"a": 1, "b": 2}') == text('{"b":2,"a":1}')
    assert text('{"a": 1}') != text('{"a": 2}')
    assert text('{"a":') != text("{}")


def test_a_call_can_be_given_other_arguments() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "W", "arguments": '{"a'}}
    assert history.with_input(call, {"a": 1})["function"] == {"name": "W", "arguments": '{"a":1}'}
    custom = {"id": "c", "type": "custom", "custom": {"name": "P", "input": "x"}}
    assert history.with_input(custom, "y")["custom"] == {"name": "P", "input": "y"}
