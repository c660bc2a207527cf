from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttsr_proxy.protocols.anthropic.response import AnthropicReader, initial_text, read_message
from ttsr_proxy.protocols.events import (
    BlockDelta,
    BlockEnded,
    BlockStarted,
    Other,
    ProtocolEvent,
    ResponseEnded,
    ResponseEnding,
    ResponseStarted,
    StreamFailed,
    Usage,
)

Sse = Callable[..., bytes]
START_TEXT: dict[str, Any] = {
    "type": "content_block_start",
    "index": 0,
    "content_block": {"type": "text", "text": ""},
}
STOP = {"type": "content_block_stop", "index": 0}


def read(*chunks: bytes) -> list[ProtocolEvent]:
    reader = AnthropicReader()
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    return events + reader.finish()


def start(block: dict[str, Any], index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(piece: dict[str, Any], index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": piece}


def blocks(events: list[ProtocolEvent]) -> list[dict[str, Any]]:
    return [event.value for event in events if isinstance(event, BlockEnded)]


def text_of(events: list[ProtocolEvent] | tuple[ProtocolEvent, ...], index: int) -> str:
    return "".join(event.text for event in events if isinstance(event, BlockDelta) and event.index == index)


def test_a_stream_reads_as_its_blocks(answer: bytes, answer_blocks: list[dict[str, Any]]) -> None:
    events = read(answer)
    assert b"".join(event.raw for event in events) == answer
    first, ping = events[:2]
    assert isinstance(first, ResponseStarted)
    assert (first.response_id, first.model) == ("msg_1", "claude-x")
    assert (first.usage.input_tokens, first.usage.output_tokens) == (10, 1)
    assert isinstance(ping, Other)
    kinds = [(event.kind, event.tool, event.call_id) for event in events if isinstance(event, BlockStarted)]
    assert kinds == [
        ("thinking", None, None),
        ("opaque", None, None),
        ("text", None, None),
        ("opaque", None, None),
        ("opaque", None, None),
        ("tool", "Write", "toolu_1"),
    ]
    assert blocks(events) == answer_blocks
    channels = [(event.index, event.channel) for event in events if isinstance(event, BlockDelta)]
    assert channels == [
        *[(0, "thinking")] * 2,
        (0, "other"),
        (2, "text"),
        (2, "other"),
        (2, "text"),
        (3, "other"),
        *[(5, "arguments")] * 3,
    ]
    assert isinstance(events[-2], ResponseEnding)
    assert (events[-2].stop_reason, events[-2].usage.output_tokens) == ("tool_use", 42)
    assert isinstance(events[-1], ResponseEnded)


@pytest.mark.parametrize("end", [b"\r\n", b"\r"])
def test_line_ends_do_not_matter(answer: bytes, end: bytes, answer_blocks: list[dict[str, Any]]) -> None:
    stream = answer.replace(b"\n", end)
    events = read(stream)
    assert b"".join(event.raw for event in events) == stream
    assert blocks(events) == answer_blocks


def test_every_single_cut_gives_the_same_events(answer: bytes) -> None:
    whole = read(answer)
    assert read(*(answer[at : at + 1] for at in range(len(answer)))) == whole
    for at in range(0, len(answer), 7):
        assert read(answer[:at], answer[at:]) == whole


def test_data_without_event_lines_reads_by_its_type(answer: bytes) -> None:
    bare = b"".join(line + b"\n" for line in answer.split(b"\n")[:-1] if not line.startswith(b"event:"))
    assert [type(event) for event in read(bare)] == [type(event) for event in read(answer)]


def test_the_json_type_decides_over_the_event_line(sse: Sse) -> None:
    stream = sse(START_TEXT, delta({"type": "text_delta", "text": "x"}))
    assert text_of(read(stream.replace(b"event: content_block_delta", b"event: ping")), 0) == "x"


def test_the_event_line_serves_where_the_json_has_no_type() -> None:
    (event,) = read(b'event: message_stop\ndata: {"a": 1}\n\n')
    assert isinstance(event, ResponseEnded)


@pytest.mark.parametrize(
    "stream",
    [
        b": comment\n\n",
        b"event: message_start\ndata: {\n\n",
        b"event: content_block_delta\ndata: [1]\n\n",
        b'data: {"type":"message_start","message":3}\n\n',
        b'data: {"type":"content_block_start","index":"0","content_block":{"type":"text"}}\n\n',
        b'data: {"type":"content_block_start","index":true,"content_block":{"type":"text"}}\n\n',
        b'data: {"type":"content_block_start","index":0,"content_block":[]}\n\n',
        b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}\n\n',
        b'data: {"type":"content_block_stop","index":0}\n\n',
        b'data: {"type":"message_delta","delta":null}\n\n',
        b'data: {"type":"new_thing"}\n\n',
        b'data: {"type":["x"]}\n\n',
        b"data: \xff\xfe\n\n",
        b'data: {"type":"message_stop"}\n',
        b"data: " + b"[" * 100_000 + b"\n\n",
    ],
)
def test_what_does_not_fit_passes_uninterpreted(stream: bytes) -> None:
    assert read(stream) == [Other(stream)]


@pytest.mark.parametrize("piece", [None, 3, {"type": "text_delta", "text": 3}, {"type": "text_delta"}])
def test_a_malformed_delta_passes_uninterpreted(sse: Sse, piece: Any) -> None:
    stream = sse(START_TEXT, delta(piece), STOP)
    events = read(stream)
    assert isinstance(events[1], Other)
    assert blocks(events) == [{"type": "text", "text": ""}]


def test_deltas_outside_their_block_pass_uninterpreted(sse: Sse) -> None:
    piece = delta({"type": "text_delta", "text": "x"})
    events = read(sse(piece, START_TEXT, STOP, piece, STOP))
    assert [isinstance(event, Other) for event in events] == [True, False, False, True, True]


def test_a_second_start_of_an_open_block_passes_uninterpreted(sse: Sse) -> None:
    events = read(sse(START_TEXT, START_TEXT, delta({"type": "text_delta", "text": "x"}), STOP))
    assert isinstance(events[1], Other)
    assert blocks(events) == [{"type": "text", "text": "x"}]


def test_an_index_used_again_is_a_new_block(sse: Sse) -> None:
    tool = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    piece = delta({"type": "input_json_delta", "partial_json": '{"command":"ls"}'})
    events = read(sse(START_TEXT, STOP, start(tool), piece, STOP, start(START_TEXT["content_block"], 1)))
    assert [event.index for event in events if isinstance(event, BlockStarted)] == [0, 1, 2]
    assert text_of(events, 1) == '{"command":"ls"}'
    assert blocks(events)[1]["input"] == {"command": "ls"}


def test_blocks_may_be_open_at_the_same_time(sse: Sse) -> None:
    events = read(
        sse(
            START_TEXT,
            start({"type": "text", "text": ""}, 1),
            delta({"type": "text_delta", "text": "a"}),
            delta({"type": "text_delta", "text": "b"}, 1),
            {"type": "content_block_stop", "index": 1},
            STOP,
        )
    )
    assert blocks(events) == [{"type": "text", "text": "b"}, {"type": "text", "text": "a"}]


@pytest.mark.parametrize(
    ("whole_input", "pieces", "expected"),
    [
        ({}, [], {}),
        ({"a": 1}, [], {"a": 1}),
        ({"a": 1}, ["  "], {"a": 1}),
        ({}, ['{"a"', ":2}"], {"a": 2}),
        ({"a": 1}, ['{"a":2}'], {"a": 2}),
        ({}, ['{"a":"cut o'], {}),
        ({}, ["[1]"], {}),
        (None, [], {}),
    ],
)
def test_a_call_ends_with_an_object_as_input(
    sse: Sse, whole_input: Any, pieces: list[str], expected: dict[str, Any]
) -> None:
    block = {"type": "tool_use", "id": "t", "name": "Bash", "input": whole_input}
    deltas = [delta({"type": "input_json_delta", "partial_json": piece}) for piece in pieces]
    events = read(sse(start(block), *deltas, STOP))
    assert blocks(events)[0]["input"] == expected
    assert text_of(events, 0) == "".join(pieces)


def test_text_in_the_opening_event_is_part_of_the_block(sse: Sse) -> None:
    events = read(
        sse(start({"type": "text", "text": "Hi "}), delta({"type": "text_delta", "text": "you"}), STOP)
    )
    assert isinstance(events[0], BlockStarted)
    assert initial_text(events[0]) == "Hi "
    assert blocks(events) == [{"type": "text", "text": "Hi you"}]


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"type": "text", "text": ""}, ""),
        ({"type": "text"}, ""),
        ({"type": "thinking", "thinking": "hm"}, "hm"),
        ({"type": "tool_use", "name": "x", "input": {}}, ""),
        ({"type": "tool_use", "name": "x", "input": {"a": [1, "é"]}}, '{"a":[1,"é"]}'),
        ({"type": "server_tool_use", "name": "x", "input": {"a": 1}}, ""),
    ],
)
def test_initial_text(sse: Sse, block: dict[str, Any], expected: str) -> None:
    (event,) = read(sse(start(block)))
    assert isinstance(event, BlockStarted)
    assert initial_text(event) == expected


def test_a_delta_of_another_kind_does_not_count_as_the_blocks_text(sse: Sse) -> None:
    events = read(sse(START_TEXT, delta({"type": "thinking_delta", "thinking": "x"}), STOP))
    assert isinstance(events[1], BlockDelta)
    assert events[1].channel == "other"
    assert blocks(events) == [{"type": "text", "text": ""}]


def test_what_belongs_to_another_kind_of_block_stays_out_of_history(sse: Sse) -> None:
    tool = {"type": "tool_use", "id": "t", "name": "x", "input": {}}
    strays = [
        delta({"type": "signature_delta", "signature": "s"}),
        delta({"type": "citations_delta", "citation": {}}),
    ]
    assert blocks(read(sse(start(tool), *strays, STOP))) == [tool]


def test_a_compaction_block_keeps_what_its_delta_brought(sse: Sse) -> None:
    piece = {"type": "compaction_delta", "content": "summary", "encrypted_content": "x"}
    events = read(sse(start({"type": "compaction", "content": None}), delta(piece), STOP))
    assert blocks(events) == [{"type": "compaction", "content": "summary", "encrypted_content": "x"}]


def test_a_message_delta_without_a_reason_is_only_a_sign_of_life(sse: Sse) -> None:
    stream = sse({"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"output_tokens": 0}})
    assert read(stream) == [Other(stream)]


def test_errors_in_the_stream(sse: Sse) -> None:
    overloaded = {"type": "overloaded_error", "message": "Overloaded"}
    stream = sse({"type": "error", "error": overloaded})
    assert read(stream) == [StreamFailed(stream, overloaded)]
    plain = b"event: error\ndata: upstream is gone\n\n"
    assert read(plain) == [StreamFailed(plain, {"type": "api_error", "message": "upstream is gone"})]


def test_surrogate_halves_in_two_deltas_make_one_character(sse: Sse) -> None:
    tool = start({"type": "tool_use", "id": "t", "name": "x", "input": {}})
    pieces = [
        delta({"type": "input_json_delta", "partial_json": half}) for half in ('{"a":"\\ud83d', '\\ude00"}')
    ]
    stream = sse(tool, *pieces)
    assert blocks(read(stream + sse(STOP)))[0]["input"] == {"a": "😀"}


def test_a_complete_message_reads_as_its_stream(answer: bytes, answer_blocks: list[dict[str, Any]]) -> None:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": answer_blocks,
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 10, "output_tokens": 42},
    }
    events = read_message(json.dumps(message).encode())
    assert events is not None
    streamed = read(answer)
    assert {event.raw for event in events} == {b""}
    assert events[0] == ResponseStarted(
        b"", "msg_1", "claude-x", Usage(10, 42, {"input_tokens": 10, "output_tokens": 42})
    )
    assert blocks(list(events)) == blocks(streamed)
    for kind in (BlockStarted, BlockEnded, ResponseEnding, ResponseEnded):
        assert [type(e) for e in events if isinstance(e, kind)] == [
            type(e) for e in streamed if isinstance(e, kind)
        ]
    for index in (0, 2):
        assert text_of(events, index) == text_of(streamed, index)
    assert json.loads(text_of(events, 5)) == json.loads(text_of(streamed, 5))
    assert all(initial_text(event) == "" for event in events if isinstance(event, BlockStarted))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"type":"error","error":{"type":"api_error"}}',
        b'{"input_tokens": 3}',
        b'{"content":[]}',
        b"<html>",
    ],
)
def test_what_is_no_message_is_not_read_as_one(body: bytes) -> None:
    assert read_message(body) is None


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
PAYLOADS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            [
                "message_start",
                "content_block_start",
                "content_block_delta",
                "content_block_stop",
                "message_delta",
                "message_stop",
                "error",
                "ping",
            ]
        )
    },
    optional={
        "index": st.integers(0, 2) | JSON_VALUES,
        "message": JSON_VALUES,
        "usage": JSON_VALUES,
        "error": JSON_VALUES,
        "content_block": st.fixed_dictionaries(
            {"type": st.sampled_from(["text", "thinking", "tool_use", "other"]) | JSON_VALUES},
            optional={"text": JSON_VALUES, "input": JSON_VALUES, "citations": JSON_VALUES, "id": JSON_VALUES},
        )
        | JSON_VALUES,
        "delta": st.fixed_dictionaries(
            {
                "type": st.sampled_from(
                    ["text_delta", "input_json_delta", "citations_delta", "signature_delta"]
                )
            },
            optional={"text": JSON_VALUES, "partial_json": JSON_VALUES, "citation": JSON_VALUES},
        )
        | JSON_VALUES,
    },
)


@given(st.lists(PAYLOADS, max_size=12), st.data())
@settings(max_examples=100)
def test_any_events_at_any_split_are_read_without_an_error(
    payloads: list[dict[str, Any]], data: st.DataObject
) -> None:
    stream = b"".join(b"data: " + json.dumps(payload).encode() + b"\n\n" for payload in payloads)
    events = read(stream)
    assert b"".join(event.raw for event in events) == stream
    at = data.draw(st.integers(0, len(stream)))
    assert read(stream[:at], stream[at:]) == events


@given(JSON_VALUES)
def test_any_content_of_a_message_is_read_without_an_error(content: Any) -> None:
    body = json.dumps(
        {"type": "message", "content": [content, {"type": "text", "text": content}], "usage": content}
    )
    assert read_message(body.encode()) is not None
