from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttsr_proxy.protocols.anthropic.response import AnthropicReader
from ttsr_proxy.protocols.anthropic.usage import usage_changes
from ttsr_proxy.protocols.anthropic.writer import AnthropicWriter
from ttsr_proxy.protocols.events import (
    BlockDelta,
    BlockEnded,
    BlockStarted,
    Other,
    ProtocolEvent,
    ResponseEnded,
    ResponseEnding,
    ResponseStarted,
    Usage,
)
from ttsr_proxy.protocols.sse import SseDecoder

Sse = Callable[..., bytes]
writer = AnthropicWriter()


def read(stream: bytes) -> list[ProtocolEvent]:
    return AnthropicReader().feed(stream)


def payloads(stream: bytes) -> list[dict[str, Any]]:
    """The events' JSON, after checking that each has an event line that says the same as its type."""
    events = SseDecoder().feed(stream)
    assert b"".join(event.raw for event in events) == stream
    out = [json.loads(event.data) for event in events]
    assert [event.event for event in events] == [payload["type"] for payload in out]
    return out


def payload(stream: bytes) -> dict[str, Any]:
    (only,) = payloads(stream)
    return only


def test_an_unchanged_attempt_is_written_as_it_came(answer: bytes) -> None:
    written = b""
    for event in read(answer):
        match event:
            case ResponseStarted():
                written += writer.start(event)
            case BlockStarted() | BlockDelta() | BlockEnded():
                written += writer.reindex(event, event.index)
            case ResponseEnding():
                written += writer.ending(event, usage_changes={"output_tokens": 42})
            case ResponseEnded():
                written += writer.end(event)
            case Other():
                written += writer.other(event)
    assert written == answer


def test_reindexing_changes_the_index_alone(answer: bytes) -> None:
    for event in read(answer):
        if isinstance(event, BlockStarted | BlockDelta | BlockEnded):
            before, after = payload(event.raw), payload(writer.reindex(event, event.index + 3))
            assert after == {**before, "index": event.index + 3}


def test_reindexing_keeps_unknown_fields_and_understands_any_spelling() -> None:
    raw = b'\xef\xbb\xbfdata:{"type":"content_block_start","new":1,\r\n'
    raw += b'data: "index":0,"content_block":{"type":"x"}}\r\n\r\n'
    (event,) = read(raw)
    assert isinstance(event, BlockStarted)
    assert payload(writer.reindex(event, 2)) == {
        "type": "content_block_start",
        "new": 1,
        "index": 2,
        "content_block": {"type": "x"},
    }


@pytest.mark.parametrize(
    ("block", "piece", "field"),
    [
        ({"type": "text", "text": ""}, {"type": "text_delta", "text": "good bad", "new": 1}, "text"),
        (
            {"type": "thinking", "thinking": ""},
            {"type": "thinking_delta", "thinking": "good bad"},
            "thinking",
        ),
        (
            {"type": "tool_use", "id": "t", "name": "x", "input": {}},
            {"type": "input_json_delta", "partial_json": "good bad"},
            "partial_json",
        ),
    ],
)
def test_a_part_of_a_delta_keeps_all_but_the_text(
    sse: Sse, block: dict[str, Any], piece: Any, field: str
) -> None:
    start = {"type": "content_block_start", "index": 0, "content_block": block}
    _, event = read(sse(start, {"type": "content_block_delta", "index": 0, "delta": piece}))
    assert isinstance(event, BlockDelta)
    part = payload(writer.part_of(event, 4, "good "))
    assert part == {"type": "content_block_delta", "index": 4, "delta": {**piece, field: "good "}}
    assert writer.part_of(event, 0, event.text) == event.raw


@given(st.text(), st.integers(0, 9))
def test_new_text_reads_back_whatever_it_is(text: str, index: int) -> None:
    assert payload(writer.delta("text", index, text)) == {
        "type": "content_block_delta",
        "index": index,
        "delta": {"type": "text_delta", "text": text},
    }


def test_thinking_is_closed_with_the_mark() -> None:
    assert [
        payload.get("delta", payload)
        for payload in payloads(
            writer.delta("thinking", 1, "x") + writer.marker(1, "ttsr:9") + writer.stop_block(1)
        )
    ] == [
        {"type": "thinking_delta", "thinking": "x"},
        {"type": "signature_delta", "signature": "ttsr:9"},
        {"type": "content_block_stop", "index": 1},
    ]


def ending(sse: Sse, delta: dict[str, Any], usage: dict[str, Any]) -> ResponseEnding:
    (event,) = read(sse({"type": "message_delta", "delta": delta, "usage": usage, "context_management": {}}))
    assert isinstance(event, ResponseEnding)
    return event


def test_an_ending_takes_new_usage_and_keeps_the_rest(sse: Sse) -> None:
    delta = {"stop_reason": "end_turn", "stop_sequence": None, "container": {"id": "c"}}
    event = ending(sse, delta, {"output_tokens": 5, "server_tool_use": {"web_search_requests": 1}})
    assert payload(writer.ending(event, usage_changes={"output_tokens": 9, "input_tokens": 3})) == {
        "type": "message_delta",
        "delta": delta,
        "usage": {"output_tokens": 9, "server_tool_use": {"web_search_requests": 1}, "input_tokens": 3},
        "context_management": {},
    }


def test_a_new_stop_reason_takes_the_old_ones_explanation_away(sse: Sse) -> None:
    delta = {
        "stop_reason": "stop_sequence",
        "stop_sequence": "END",
        "stop_details": {"type": "x"},
        "container": {},
    }
    event = ending(sse, delta, {"output_tokens": 5})
    assert payload(writer.ending(event, stop_reason="tool_use"))["delta"] == {
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "stop_details": None,
        "container": {},
    }


@pytest.mark.parametrize("changes", [None, {}, {"output_tokens": 5}])
def test_an_ending_without_changes_is_written_as_it_came(sse: Sse, changes: dict[str, int] | None) -> None:
    event = ending(sse, {"stop_reason": "end_turn"}, {"output_tokens": 5})
    assert writer.ending(event, stop_reason="end_turn", usage_changes=changes) == event.raw


def test_a_made_up_end_is_complete() -> None:
    delta, stop = payloads(writer.finish("end_turn", {"input_tokens": 3}))
    assert delta["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}
    assert delta["usage"] == {"output_tokens": 0, "input_tokens": 3}
    assert stop == {"type": "message_stop"}


@pytest.mark.parametrize(
    ("open_block", "active", "types"),
    [
        (None, False, ["ping"]),
        ((1, "text"), False, ["ping"]),
        (None, True, ["ping", "message_delta"]),
        ((1, "text"), True, ["ping", "content_block_delta"]),
        ((1, "thinking"), True, ["ping", "content_block_delta"]),
        ((1, "opaque"), True, ["ping", "message_delta"]),
    ],
)
def test_signs_of_life(open_block: Any, active: bool, types: list[str]) -> None:
    stream = writer.keepalive(open_block, active)
    assert [payload["type"] for payload in payloads(stream)] == types
    # A proxy behind this one must not take them for the end of the answer.
    assert all(isinstance(event, Other) for event in read(stream))


def test_an_error_in_the_stream() -> None:
    error = {"type": "overloaded_error", "message": "x"}
    assert payload(writer.error(error)) == {"type": "error", "error": error}


def test_the_client_is_told_the_last_attempts_input_and_an_estimate_on_top_of_its_output() -> None:
    started = Usage(7, 1, {"input_tokens": 7, "cache_read_input_tokens": 5, "output_tokens": 1})
    last = Usage(None, 20, {"output_tokens": 20, "cache_read_input_tokens": 6})
    assert usage_changes(started, last, 4) == {
        "input_tokens": 7,
        "cache_read_input_tokens": 6,
        "output_tokens": 24,
    }
    assert usage_changes(started, None, 4)["output_tokens"] == 5
    assert usage_changes(None, None, 4) == {"output_tokens": 4}
    assert usage_changes(Usage(None, None, {"input_tokens": None, "output_tokens": "x"}), None, 0) == {
        "output_tokens": 0
    }
