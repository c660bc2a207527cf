from __future__ import annotations

from typing import Any

import pytest
from reminding import user_says

from ttsr_proxy.protocols.anthropic import ANTHROPIC
from ttsr_proxy.protocols.anthropic.history import (
    chain_text,
    item_of_block,
    keep_marks,
    strip_marks,
    text_block,
    tool_result_item,
    without_cache_marks,
    without_thinking,
)
from ttsr_proxy.protocols.history import Role

EPHEMERAL = {"type": "ephemeral"}


def chain(value: dict[str, Any], role: Role = "user") -> str | None:
    return chain_text(item_of_block(value, role))


@pytest.mark.parametrize(
    ("value", "kind", "anchor"),
    [
        ({"type": "text", "text": "x"}, "text", None),
        ({"type": "tool_use", "id": "toolu_1", "name": "x", "input": {}}, "tool_call", "call:toolu_1"),
        ({"type": "tool_use", "id": "", "name": "x", "input": {}}, "tool_call", None),
        ({"type": "tool_result", "tool_use_id": "toolu_1"}, "tool_result", None),
        ({"type": "thinking", "thinking": "x", "signature": ""}, "thinking", None),
        (
            {"type": "thinking", "thinking": "x", "signature": "a"},
            "thinking",
            "sig:ca978112ca1bbdcafac231b39a23dc4d",
        ),
        ({"type": "redacted_thinking", "data": "a"}, "thinking", "sig:ca978112ca1bbdcafac231b39a23dc4d"),
        ({"type": "server_tool_use", "id": "srv_1"}, "other", None),
        ({"type": 3}, "other", None),
        ({}, "other", None),
    ],
)
def test_kind_and_anchor_of_a_block(value: dict[str, Any], kind: str, anchor: str | None) -> None:
    item = item_of_block(value, "assistant", 4)
    assert (item.kind, item.anchor, item.value, item.message) == (kind, anchor, value, 4)


def test_an_items_text_is_its_prose_or_its_canonical_json_without_cache_marks() -> None:
    assert item_of_block({"type": "text", "text": " x\n", "cache_control": EPHEMERAL}, "user").text == " x\n"
    assert item_of_block({"type": "thinking", "thinking": "hm", "signature": "s"}, "assistant").text == "hm"
    assert item_of_block({"b": 1, "a": {"d": 1, "c": 2}, "cache_control": EPHEMERAL}, "user").text == (
        '{"a":{"c":2,"d":1},"b":1}'
    )


def test_cache_marks_are_taken_from_blocks_and_not_from_arguments() -> None:
    inner = {"type": "text", "text": "x", "cache_control": EPHEMERAL}
    block = {"content": [inner, "x"], "input": {"cache_control": 1}, "cache_control": EPHEMERAL}
    assert without_cache_marks(block) == {"content": [text_block("x"), "x"], "input": {"cache_control": 1}}
    assert "cache_control" in inner


def test_a_recorded_block_takes_the_breakpoint_of_its_echo_and_keeps_none_of_its_own() -> None:
    marked = {**text_block("x"), "cache_control": EPHEMERAL}
    assert keep_marks(text_block("x"), marked) == marked
    assert keep_marks(marked, text_block("x")) == text_block("x")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            {"type": "text", "text": "x"},
            {"type": "text", "text": "x", "cache_control": EPHEMERAL, "citations": None},
        ),
        (
            {"type": "tool_use", "id": "a", "name": "Edit", "input": {"x": 1}},
            {"type": "tool_use", "id": "a", "name": "Edit", "input": {"x": 1, "replace_all": False}},
        ),
        (
            {"type": "tool_result", "tool_use_id": "a", "content": "x"},
            {
                "type": "tool_result",
                "is_error": False,
                "content": [{"type": "text", "text": "x", "cache_control": EPHEMERAL}],
                "tool_use_id": "a",
                "cache_control": EPHEMERAL,
            },
        ),
    ],
)
def test_what_clients_spell_differently_is_the_same_in_the_chain(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert chain(one) == chain(other) is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"type": "text", "text": "x"}, {"type": "text", "text": "y"}),
        (
            {"type": "tool_use", "id": "a", "name": "Edit", "input": {}},
            {"type": "tool_use", "id": "b", "name": "Edit", "input": {}},
        ),
        (
            {"type": "tool_result", "tool_use_id": "a", "content": "x"},
            {"type": "tool_result", "tool_use_id": "a", "content": "x", "is_error": True},
        ),
        ({"type": "image", "source": {"data": "a"}}, {"type": "image", "source": {"data": "b"}}),
    ],
)
def test_what_differs_in_content_differs_in_the_chain(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert chain(one) != chain(other)


@pytest.mark.parametrize(
    "value",
    [{"type": "thinking", "thinking": "x", "signature": "s"}, {"type": "redacted_thinking"}, text_block("")],
)
def test_thinking_and_empty_text_do_not_count_in_the_chain(value: dict[str, Any]) -> None:
    assert chain(value, "assistant") is None


def test_only_thinking_with_the_proxys_mark_is_stripped() -> None:
    marked = item_of_block({"type": "thinking", "thinking": "x", "signature": "ttsr:1"}, "assistant")
    signed = item_of_block({"type": "thinking", "thinking": "x", "signature": "c2ln"}, "assistant")
    lookalike = item_of_block({"type": "new", "signature": "ttsr:1"}, "assistant")
    text = user_says(ANTHROPIC, "ttsr:1")
    assert strip_marks([marked, signed, lookalike, text]) == (signed, lookalike, text)


def test_without_thinking_leaves_all_else() -> None:
    redacted = item_of_block({"type": "redacted_thinking", "data": "x"}, "assistant")
    signed = item_of_block({"type": "thinking", "thinking": "x", "signature": "c2ln"}, "assistant")
    result = tool_result_item("a", "x", is_error=False)
    assert without_thinking([redacted, result, signed]) == (result,)
    assert result.value["is_error"] is False
