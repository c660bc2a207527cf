from __future__ import annotations

import json
from typing import Any

import pytest
from reminding import reminded

from ttsr_proxy.protocols.history import HistoryItem
from ttsr_proxy.protocols.openai_responses import OPENAI_RESPONSES
from ttsr_proxy.protocols.openai_responses.history import (
    chain_text,
    item_of_block,
    salvage,
    text_block,
    tool_result_item,
    with_input,
    without_thinking,
)
from ttsr_proxy.protocols.openai_responses.request import read_request, write_request
from ttsr_proxy.protocols.request import ApiRequest

USER = {"role": "user", "content": "hello"}
REASONING = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "E"}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
}
CALL = {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "write", "arguments": '{"a":1}'}
CUSTOM = {"id": "ctc_1", "type": "custom_tool_call", "call_id": "c2", "name": "exec", "input": "run()"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "ok"}


def request_of(**fields: Any) -> ApiRequest:
    read = read_request(json.dumps({"model": "gpt-x", **fields}).encode(), {})
    assert read is not None
    return read


def body_of(request: ApiRequest, items: Any = None, **changes: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(
        write_request(request, request.items if items is None else items, **changes)
    )
    return body


def test_items_are_read_with_who_speaks_and_what_they_are() -> None:
    developer = {"role": "developer", "content": "rules"}
    tools = {"type": "additional_tools", "role": "developer", "tools": [{"type": "custom", "name": "exec"}]}
    read = request_of(
        input=[tools, developer, USER, REASONING, MESSAGE, CALL, CUSTOM, OUTPUT, {"type": "new_thing"}]
    )
    assert [(item.role, item.kind) for item in read.items] == [
        ("system", "other"),
        ("system", "text"),
        ("user", "text"),
        ("assistant", "thinking"),
        ("assistant", "text"),
        ("assistant", "tool_call"),
        ("assistant", "tool_call"),
        ("user", "tool_result"),
        ("assistant", "other"),
    ]
    assert read.tools == ("exec",)
    assert any(item.kind == "thinking" for item in read.items)
    assert [item.anchor for item in read.items[4:7]] == ["item:msg_1", "call:c1", "call:c2"]
    assert read.items[5].alias == "item:fc_1"


def test_a_string_is_one_user_message() -> None:
    read = request_of(input="hello")
    assert [(item.role, item.text) for item in read.items] == [("user", "hello")]
    body = body_of(read, reminded(OPENAI_RESPONSES, read.items, "stop"))
    assert [item["role"] for item in body["input"]] == ["user", "user"]
    assert body["input"][1]["content"] == [{"type": "input_text", "text": "stop"}]


def test_untouched_items_are_written_as_they_came() -> None:
    given = [USER, REASONING, MESSAGE, CALL, OUTPUT, {"type": "new_thing", "x": [1]}]
    read = request_of(input=given, stream=True, custom_field={"a": 1})
    assert body_of(read) == read.body


@pytest.mark.parametrize("body", [b"", b"[]", b'{"input":5}', b'{"input":["x"]}', b'{"input":{"a":1}}'])
def test_other_shapes_are_not_inspected(body: bytes) -> None:
    assert read_request(body, {}) is None


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "kept by upstream"),
        ({"input": [USER, {"type": "compaction_trigger"}]}, "compaction"),
        ({"background": False, "conversation": None}, None),
    ],
)
def test_what_cannot_be_asked_again_is_observed(fields: dict[str, Any], reason: str | None) -> None:
    observed = request_of(**{"input": "x", **fields}).observed
    assert observed is None if reason is None else reason in str(observed)


def test_fields_of_the_request() -> None:
    read = request_of(
        input="x",
        instructions="be kind",
        store=False,
        previous_response_id="resp_1",
        max_output_tokens=50,
        text={"format": {"type": "json_schema"}},
        tools=[
            {"type": "function", "name": "write"},
            {"type": "web_search"},
            {"type": "namespace", "tools": []},
        ],
    )
    assert (read.system, read.stored, read.previous, read.max_tokens) == ("be kind", False, "resp_1", 50)
    assert read.structured_output
    assert read.tools == ("write", "web_search")
    assert body_of(read, max_tokens=3)["max_output_tokens"] == 16
    assert body_of(read, system_suffix="more")["instructions"] == "be kind\n\nmore"


def test_a_reminder_follows_results_and_precedes_a_trailing_developer_message() -> None:
    read = request_of(input=[USER, CALL, OUTPUT, {"role": "developer", "content": "late"}])
    items = reminded(OPENAI_RESPONSES, read.items, "stop")
    assert [item.text for item in items][-2] == "stop"


def test_the_result_of_the_proxy_fits_the_call() -> None:
    read = request_of(input=[USER, CALL, CUSTOM])
    items = [*read.items, tool_result_item("c1", "no"), tool_result_item("c2", "no")]
    assert [item["type"] for item in body_of(read, items)["input"][-2:]] == [
        "function_call_output",
        "custom_tool_call_output",
    ]


def test_a_cut_call_keeps_its_form() -> None:
    assert with_input(CALL, {"a": 2})["arguments"] == '{"a":2}'
    assert with_input(CUSTOM, "run(")["input"] == "run("


def test_text_of_the_proxy_is_written_for_who_speaks() -> None:
    read = request_of(input=[USER])
    items = [*read.items, item_of_block(text_block("cut"), "assistant")]
    assert body_of(read, items)["input"][1] == {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "cut"}],
    }


def test_what_clients_add_and_drop_does_not_change_an_item() -> None:
    spaced = {
        "type": "function_call",
        "call_id": "c1",
        "name": "write",
        "arguments": '{ "a": 1 }',
        "id": None,
    }
    assert item_of_block(spaced, "assistant").text == item_of_block(CALL, "assistant").text
    parts = {**OUTPUT, "output": [{"type": "input_text", "text": "ok"}]}
    assert chain_text(item_of_block(parts, "user")) == chain_text(item_of_block(OUTPUT, "user"))
    assert chain_text(item_of_block(REASONING, "assistant")) is None


def test_without_reasoning_what_followed_it_loses_its_id() -> None:
    read = request_of(input=[USER, REASONING, MESSAGE, CALL])
    assert ["id" in item.value for item in without_thinking(read.items)] == [False, False, False]


def test_of_an_aborted_answer_only_what_upstream_can_take_is_kept() -> None:
    bare = {"id": "rs_2", "type": "reasoning", "summary": []}
    search = {"id": "ws_1", "type": "web_search_call"}
    nameless: HistoryItem | dict[str, Any] = {key: value for key, value in MESSAGE.items() if key != "id"}
    assert salvage([REASONING, MESSAGE, bare, CALL, search], ()) == [
        REASONING,
        nameless,
        None,
        {key: value for key, value in CALL.items() if key != "id"},
        search,
    ]
    assert salvage([REASONING, MESSAGE], {1}) == [None, nameless]
    assert salvage([MESSAGE, REASONING], ()) == [nameless, None]


@pytest.mark.parametrize(
    ("message", "binding"),
    [
        ("The encrypted content for item rs_1 could not be verified.", True),
        ("Item 'rs_1' of type 'reasoning' was provided without its required following item.", True),
        ("Item with id 'rs_1' not found.", True),
        ("Invalid 'max_output_tokens'", False),
    ],
)
def test_a_refusal_of_reasoning_is_known(message: str, binding: bool) -> None:
    assert OPENAI_RESPONSES.is_binding_error({"message": message}) is binding
