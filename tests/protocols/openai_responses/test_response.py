from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strict_anthropic import ping, server_tool, stream_error, text, thinking, tool, turn
from strict_openai_responses import Writer, custom, reasoning, refusal, shell

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
)
from ttsr_proxy.protocols.openai_responses.response import ResponsesReader, initial_text, read_message

EVERYTHING = (
    reasoning("First part.", "Second part."),
    reasoning("raw thoughts", raw=True),
    text("Hello wörld 😀", ping(), " again"),
    server_tool("web_search", {"query": "x"}, []),
    refusal("I will not."),
    tool("write", {"path": "a.py", "content": 'x = "漢"\n'}, id="call_1"),
    custom("apply_patch", "*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch"),
    shell("rm -rf build"),
)


def stream_of(*steps: Any, **options: Any) -> bytes:
    writer = Writer(turn(*steps, **options), {"model": "gpt-x", "store": False})
    return b"".join(act for act in writer.stream() if isinstance(act, bytes))


def read(*chunks: bytes) -> list[ProtocolEvent]:
    reader = ResponsesReader()
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    return events + reader.finish()


def sse(*payloads: dict[str, Any]) -> bytes:
    return b"".join(f"event: {p['type']}\ndata: {json.dumps(p)}\n\n".encode() for p in payloads)


def block_text(events: list[ProtocolEvent], index: int) -> str:
    """All text of a block as a matcher gets it."""
    opened = "".join(initial_text(e) for e in events if isinstance(e, BlockStarted) and e.index == index)
    return opened + "".join(e.text for e in events if isinstance(e, BlockDelta) and e.index == index)


STREAM = stream_of(*EVERYTHING)


def test_a_stream_reads_as_its_items() -> None:
    events = read(STREAM)
    assert b"".join(event.raw for event in events) == STREAM
    assert isinstance(events[0], ResponseStarted)
    assert events[0].response_id.startswith("resp_")
    assert events[0].model == "gpt-x"
    assert isinstance(events[1], Other)
    starts = [event for event in events if isinstance(event, BlockStarted)]
    assert [(e.index, e.kind, e.tool, e.freeform) for e in starts] == [
        (0, "thinking", None, False),
        (1, "thinking", None, False),
        (2, "text", None, False),
        (3, "opaque", None, False),
        (4, "text", None, False),
        (5, "tool", "write", False),
        (6, "tool", "apply_patch", True),
        (7, "tool", "shell", False),
    ]
    assert starts[5].call_id == "call_1"
    assert [block_text(events, index) for index in range(8)] == [
        "First part.\n\nSecond part.",
        "raw thoughts",
        "Hello wörld 😀 again",
        "",
        "I will not.",
        '{"path": "a.py", "content": "x = \\"漢\\"\\n"}',
        "*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch",
        '{"command":"rm -rf build"}',
    ]
    assert isinstance(events[-2], ResponseEnding)
    assert events[-2].stop_reason == "completed"
    assert events[-2].usage.input_tokens
    assert isinstance(events[-1], ResponseEnded)


def test_a_block_ends_with_the_item_as_history_carries_it() -> None:
    values = [event.value for event in read(STREAM) if isinstance(event, BlockEnded)]
    final = json.loads(STREAM.rsplit(b"data: ", 1)[1])
    assert values == final["response"]["output"]


@pytest.mark.parametrize("eol", ["\r\n", "\r"])
def test_line_ends_do_not_matter(eol: str) -> None:
    stream = stream_of(text("Hello"), tool("write", {"path": "a"}), eol=eol)
    events = read(stream)
    assert b"".join(event.raw for event in events) == stream
    assert block_text(events, 0) == "Hello"


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_any_split_of_the_bytes_gives_the_same_events(cuts: list[int]) -> None:
    at = [0, *sorted(cuts), len(STREAM)]
    assert read(*(STREAM[a:b] for a, b in pairwise(at))) == read(STREAM)


@given(st.text(min_size=1), st.integers(1, 9))
def test_text_does_not_depend_on_how_it_was_cut_into_deltas(said: str, chunk: int) -> None:
    events = read(stream_of(text(said), custom("exec", said), chunk=chunk))
    assert block_text(events, 0) == said
    assert block_text(events, 1) == said


ADDED = {
    "type": "response.output_item.added",
    "output_index": 0,
    "item": {"id": "fc", "type": "function_call", "call_id": "c", "name": "write", "arguments": ""},
}
DONE = {
    "type": "response.output_item.done",
    "output_index": 0,
    "item": {"id": "fc", "type": "function_call", "call_id": "c", "name": "write", "arguments": '{"a":1}'},
}
ARGUMENTS_DONE = {
    "type": "response.function_call_arguments.done",
    "output_index": 0,
    "item_id": "fc",
    "arguments": '{"a":1}',
}
ARGUMENTS_DELTA = {
    "type": "response.function_call_arguments.delta",
    "output_index": 0,
    "item_id": "fc",
    "delta": '{"a"',
}


@pytest.mark.parametrize(
    "payloads",
    [
        [ADDED, ARGUMENTS_DONE, DONE],
        [ADDED, DONE],
        [DONE],
        [ADDED, ARGUMENTS_DELTA, DONE],
        [ADDED, ARGUMENTS_DELTA, ARGUMENTS_DONE, DONE],
        [{**ADDED, "item": DONE["item"]}, DONE],
    ],
)
def test_the_input_of_a_call_is_read_wherever_it_stands(payloads: list[dict[str, Any]]) -> None:
    events = read(sse(*payloads))
    assert block_text(events, 0) == '{"a":1}'
    assert [event.value for event in events if isinstance(event, BlockEnded)] == [DONE["item"]]


def test_an_item_that_says_something_else_when_it_is_done_is_read_again() -> None:
    last = {**DONE, "item": {**DONE["item"], "arguments": '{"b":2}'}}
    assert block_text(read(sse(ADDED, ARGUMENTS_DELTA, last)), 0) == '{"a"{"b":2}'


def test_text_of_an_item_that_was_never_announced_is_read() -> None:
    delta = {"type": "response.output_text.delta", "output_index": 4, "item_id": "m", "delta": "hidden"}
    events = read(sse({**delta, "content_index": 0}))
    assert [type(event) for event in events] == [BlockStarted, BlockDelta]
    assert block_text(events, events[0].index if isinstance(events[0], BlockStarted) else 0) == "hidden"


def test_what_only_the_final_response_says_is_read() -> None:
    output = [DONE["item"], {"id": "m", "type": "message", "content": [{"type": "output_text", "text": "x"}]}]
    last = {"type": "response.completed", "response": {"status": "completed", "output": output}}
    events = read(sse(ADDED, DONE, last))
    assert block_text(events, 1) == "x"
    assert isinstance(events[-1], ResponseEnded)


def test_an_item_left_open_ends_before_the_response_does() -> None:
    last = {"type": "response.completed", "response": {"status": "completed", "output": []}}
    events = read(sse(ADDED, ARGUMENTS_DELTA, last))
    ended = [event for event in events if isinstance(event, BlockEnded)]
    assert [(event.raw, event.value["arguments"]) for event in ended] == [(b"", '{"a"')]


def test_errors_of_both_forms_are_failures() -> None:
    failed = read(stream_of(text("x"), stream_error("server_error", "oh")))[-1]
    assert isinstance(failed, StreamFailed)
    assert failed.error == {"code": "server_error", "message": "oh"}
    bare = read(sse({"type": "error", "code": "server_error", "message": "oh"}))[-1]
    assert isinstance(bare, StreamFailed)
    assert bare.error["code"] == "server_error"


def test_an_incomplete_response_ends_with_its_reason() -> None:
    ending = read(stream_of(text("x"), stop_reason="max_output_tokens"))[-2]
    assert isinstance(ending, ResponseEnding)
    assert ending.stop_reason == "max_output_tokens"


@pytest.mark.parametrize(
    "data",
    [
        b"data: [DONE]\n\n",
        b": comment\n\n",
        b"event: response.output_item.added\ndata: {}\n\n",
        b'data: {"type":"response.output_item.done","item":5}\n\n',
        b'data: {"type":"response.completed"}\n\n',
        b'data: {"type":5}\n\n',
        b"data: {",
    ],
)
def test_what_does_not_fit_passes(data: bytes) -> None:
    assert read(data) == [Other(data)]


@given(st.lists(st.sampled_from([ADDED, DONE, ARGUMENTS_DONE, ARGUMENTS_DELTA, {"type": "x"}]), max_size=8))
def test_no_order_of_events_loses_bytes(payloads: list[dict[str, Any]]) -> None:
    stream = sse(*payloads)
    assert b"".join(event.raw for event in read(stream)) == stream


def test_a_complete_response_reads_as_its_stream() -> None:
    writer = Writer(turn(*EVERYTHING), {"model": "gpt-x"})
    events = read_message(json.dumps(writer.message()).encode())
    assert events is not None
    streamed = read(STREAM)
    for index in range(8):
        assert block_text(list(events), index) == block_text(streamed, index)
    assert not any(event.raw for event in events)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"error":{}}', b'{"output":[],"status":"queued"}'])
def test_what_is_no_finished_response_is_not_read(body: bytes) -> None:
    assert read_message(body) is None


def test_thinking_step_without_summary_has_no_text() -> None:
    assert block_text(read(stream_of(thinking("x", omitted=True), text("y"))), 0) == ""
