"""Streams of many servers, read into blocks."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from chat_chunks import DONE, call, chunk, data, stream, usage
from hypothesis import given
from hypothesis import strategies as st

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
from ttsr_proxy.protocols.openai_chat.response import ChatReader, read_message

WRITE = '{"path":"a.py","content":"x = 1"}'


def read(*pieces: bytes) -> list[ProtocolEvent]:
    reader = ChatReader()
    events = [event for piece in pieces for event in reader.feed(piece)]
    return events + reader.finish()


def blocks(events: list[ProtocolEvent]) -> list[dict[str, Any]]:
    return [event.value for event in events if isinstance(event, BlockEnded)]


def kinds(events: list[ProtocolEvent]) -> list[str]:
    return [type(event).__name__.removeprefix("Chunk") for event in events]


def text_of(events: list[ProtocolEvent], index: int) -> str:
    return "".join(event.text for event in events if isinstance(event, BlockDelta) and event.index == index)


def function(name: str, arguments: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}


OPENAI = stream(
    chunk({"role": "assistant", "content": "", "refusal": None}),
    chunk({"content": "Hello "}),
    chunk({"content": "wörld 😀"}),
    chunk(call(0, "", id="call_abcdefgh1", name="Write")),
    chunk(call(0, WRITE[:9])),
    chunk(call(0, WRITE[9:])),
    chunk(call(1, "", id="call_abcdefgh2", name="Read")),
    chunk(call(1, "{}")),
    chunk({}, "tool_calls"),
    usage(),
)
OPENAI_BLOCKS = [
    {"type": "text", "text": "Hello wörld 😀"},
    function("Write", WRITE, id="call_abcdefgh1"),
    function("Read", "{}", id="call_abcdefgh2"),
]
REASONING = stream(
    b": OPENROUTER PROCESSING\n\n",
    chunk({"role": "assistant", "content": "", "reasoning": "Hm, "}),
    chunk({"content": "", "reasoning": "so."}),
    chunk({"content": "Yes."}),
    chunk({"content": ""}, "stop"),
    usage(),
)
ONE_CHUNK = stream(
    chunk(
        {
            "role": "assistant",
            "content": "I write.",
            "tool_calls": [
                {"index": 0, "id": "call_x1y2z3w4", **function("Write", WRITE)},
                {"index": 0, "id": "call_x1y2z3w5", **function("Read", "{}")},
            ],
        },
        "tool_calls",
        usage=usage()["usage"],
    ),
)
AZURE = stream(
    {"id": "", "object": "", "model": "", "created": 0, "choices": [], "prompt_filter_results": [{}]},
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "Hi"}, content_filter_results={}),
    chunk({}, "stop"),
)
STREAMS = {"openai": OPENAI, "reasoning": REASONING, "one chunk": ONE_CHUNK, "azure": AZURE}


def test_a_stream_of_openai_is_read_into_its_blocks() -> None:
    events = read(OPENAI)
    assert blocks(events) == OPENAI_BLOCKS
    assert [event.index for event in events if isinstance(event, BlockStarted)] == [0, 1, 2]
    assert text_of(events, 0) == "Hello wörld 😀"
    assert text_of(events, 1) == WRITE
    endings = [event for event in events if isinstance(event, ResponseEnding)]
    assert [(one.stop_reason, one.usage.input_tokens) for one in endings] == [
        ("tool_calls", None),
        (None, 10),
    ]
    assert isinstance(events[0], ResponseStarted)
    assert events[0].response_id == "chatcmpl-A"
    assert isinstance(events[-1], ResponseEnded)


def test_a_call_is_complete_when_the_next_begins() -> None:
    ends = [event.index for event in read(OPENAI) if isinstance(event, BlockEnded | BlockStarted)]
    assert ends == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("source", STREAMS.values(), ids=STREAMS)
@given(cuts=st.lists(st.integers(0, 2000), max_size=8))
def test_any_split_gives_the_same_events_and_loses_no_byte(source: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(source)) for cut in cuts), len(source)]
    pieces = [source[a:b] for a, b in itertools.pairwise(places)]
    split, whole = read(*pieces), read(source)
    assert b"".join(event.raw for event in split) == source
    assert kinds(split) == kinds(whole)
    assert blocks(split) == blocks(whole)


def test_reasoning_is_thinking_and_its_field_is_kept() -> None:
    events = read(REASONING)
    assert blocks(events) == [{"type": "reasoning", "reasoning": "Hm, so."}, {"type": "text", "text": "Yes."}]
    assert [event.kind for event in events if isinstance(event, BlockStarted)] == ["thinking", "text"]
    assert events[0] == Other(b": OPENROUTER PROCESSING\n\n")


def test_reasoning_details_stay_with_the_reasoning() -> None:
    signature = [{"type": "reasoning.encrypted", "data": "b3BhcXVl"}]
    events = read(
        stream(chunk({"reasoning": "Hm"}), chunk({"reasoning_details": signature}), chunk({}, "stop"))
    )
    assert blocks(events) == [{"type": "reasoning", "reasoning": "Hm", "reasoning_details": signature}]


def test_a_list_of_typed_parts_is_read_as_what_its_parts_are() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}
    events = read(
        stream(
            chunk({"role": "assistant", "content": [thinking]}),
            chunk({"content": [{"type": "text", "text": "Yes"}]}),
            chunk({}, "stop"),
        )
    )
    assert blocks(events) == [thinking, {"type": "text", "text": "Yes"}]
    assert (text_of(events, 0), text_of(events, 1)) == ("Hm", "Yes")


def test_a_refusal_is_text_of_its_own_kind() -> None:
    events = read(stream(chunk({"refusal": "I "}), chunk({"refusal": "won't"}), chunk({}, "stop")))
    assert blocks(events) == [{"type": "refusal", "refusal": "I won't"}]
    assert text_of(events, 0) == "I won't"


def test_everything_in_one_chunk_keeps_its_bytes_in_the_last_part() -> None:
    events = read(ONE_CHUNK)
    assert [block.get("type") for block in blocks(events)] == ["text", "function", "function"]
    assert [event.raw for event in events if event.raw] == [ONE_CHUNK.removesuffix(DONE), DONE]
    (ending,) = [event for event in events if isinstance(event, ResponseEnding)]
    assert (ending.stop_reason, ending.usage.output_tokens) == ("tool_calls", 5)


CALL_SPELLINGS = {
    "index 0 for every call": [
        chunk(call(0, '{"a":1}', id="call_aaaaaaa1", name="A")),
        chunk(call(0, '{"b":1}', id="call_aaaaaaa2", name="B")),
    ],
    "no index": [
        chunk(call(None, '{"a"', id="call_aaaaaaa1", name="A")),
        chunk(call(None, ":1}")),
        chunk(call(None, '{"b":1}', id="call_aaaaaaa2", name="B")),
    ],
    "no ids": [
        chunk(call(0, '{"a"', name="A")),
        chunk(call(0, ":1}")),
        chunk(call(1, '{"b":1}', name="B")),
    ],
    "no ids and index 0": [chunk(call(0, '{"a":1}', name="A")), chunk(call(0, '{"b":1}', name="B"))],
    "id and name in every piece": [
        chunk(call(0, '{"a"', id="call_aaaaaaa1", name="A")),
        chunk(call(0, ":1}", id="call_aaaaaaa1", name="A")),
        chunk(call(1, '{"b":1}', id="call_aaaaaaa2", name="B")),
    ],
    "name in every piece without ids": [
        chunk(call(0, '{"a"', name="A")),
        chunk(call(0, ":1}", name="A")),
        chunk(call(1, '{"b":1}', name="B")),
    ],
    "calls that alternate": [
        chunk(call(0, '{"a"', id="call_aaaaaaa1", name="A")),
        chunk(call(1, '{"b"', id="call_aaaaaaa2", name="B")),
        chunk(call(0, ":1}")),
        chunk(call(1, ":1}")),
    ],
    "blank text between the pieces": [
        chunk(call(0, '{"a"', id="call_aaaaaaa1", name="A")),
        chunk({"content": ""}),
        chunk(call(0, ":1}")),
        chunk(call(1, '{"b":1}', id="call_aaaaaaa2", name="B")),
    ],
    "arguments as an object": [
        chunk({"tool_calls": [{"index": 0, "function": {"name": "A", "arguments": {"a": 1}}}]}),
        chunk({"tool_calls": [{"index": 1, "function": {"name": "B", "arguments": {"b": 1}}}]}),
    ],
}


@pytest.mark.parametrize("chunks", CALL_SPELLINGS.values(), ids=CALL_SPELLINGS)
def test_calls_are_told_apart_however_a_server_numbers_them(chunks: list[dict[str, Any]]) -> None:
    events = read(stream(chunk({"role": "assistant"}), *chunks, chunk({}, "tool_calls")))
    found = [
        (block["function"]["name"], json.loads(block["function"]["arguments"])) for block in blocks(events)
    ]
    assert found == [("A", {"a": 1}), ("B", {"b": 1})]
    starts = [event for event in events if isinstance(event, BlockStarted)]
    assert [(event.tool, text_of(events, event.index)) for event in starts] == [
        ("A", '{"a":1}'),
        ("B", '{"b":1}'),
    ]


def test_vendor_fields_of_a_call_stay_with_it() -> None:
    extra = {"google": {"thought_signature": "c2ln"}}
    entry = {"index": 0, "id": "call_aaaaaaa1", "extra_content": extra, **function("A", "{}")}
    events = read(stream(chunk({"tool_calls": [entry]}), chunk({}, "tool_calls")))
    assert blocks(events) == [function("A", "{}", id="call_aaaaaaa1", extra_content=extra)]


def test_a_custom_tool_has_plain_text_as_input() -> None:
    events = read(
        stream(
            chunk(
                {
                    "tool_calls": [
                        {"index": 0, "id": "call_aaaaaaa1", "type": "custom", "custom": {"name": "patch"}}
                    ]
                }
            ),
            chunk({"tool_calls": [{"index": 0, "custom": {"input": "*** Begin"}}]}),
            chunk({}, "tool_calls"),
        )
    )
    (start,) = [event for event in events if isinstance(event, BlockStarted)]
    assert (start.tool, start.freeform) == ("patch", True)
    assert blocks(events)[0]["custom"] == {"name": "patch", "input": "*** Begin"}


def test_the_older_function_call_is_a_call() -> None:
    events = read(
        stream(
            chunk(
                {"role": "assistant", "content": None, "function_call": {"name": "Write", "arguments": ""}}
            ),
            chunk({"function_call": {"arguments": WRITE}}),
            chunk({}, "function_call"),
        )
    )
    assert blocks(events) == [{"function_call": {"name": "Write", "arguments": WRITE}}]
    assert [event.tool for event in events if isinstance(event, BlockStarted)] == ["Write"]


def test_several_choices_have_blocks_of_their_own() -> None:
    events = read(
        stream(
            chunk({"role": "assistant", "content": ""}),
            chunk({"role": "assistant", "content": ""}, index=1),
            chunk({"content": "a"}),
            chunk({"content": "x"}, index=1),
            chunk({"content": "b"}),
            chunk({}, "stop"),
            chunk({"content": "y"}, index=1),
            chunk({}, "stop", index=1),
        )
    )
    assert [(event.choice, event.index) for event in events if isinstance(event, BlockStarted)] == [
        (0, 0),
        (1, 1),
    ]
    assert blocks(events) == [{"type": "text", "text": "ab"}, {"type": "text", "text": "xy"}]
    assert [event.stop_reason for event in events if isinstance(event, ResponseEnding)] == ["stop"]


def test_without_done_an_answer_that_stopped_is_complete() -> None:
    events = read(stream(chunk({"content": "Hi"}), chunk({}, "stop"), done=False))
    assert events[-1] == ResponseEnded(b"")


def test_without_done_and_a_reason_to_stop_it_is_not() -> None:
    events = read(stream(chunk({"content": "Hi"}), done=False))
    assert not any(isinstance(event, ResponseEnded | BlockEnded) for event in events)


def test_a_finish_chunk_without_a_delta_stops_the_answer() -> None:
    finish = {"id": "x", "choices": [{"index": 0, "finish_reason": "stop"}]}
    events = read(stream(chunk({"content": "Hi"}), finish))
    assert blocks(events) == [{"type": "text", "text": "Hi"}]


@pytest.mark.parametrize(
    "source",
    [
        data({"error": {"message": "busy", "code": 429}}),
        b'event: error\ndata: {"error": {"message": "busy", "code": 429}}\n\n',
        data({**chunk({}, "error"), "error": {"message": "busy", "code": 429}}),
    ],
)
def test_an_error_in_the_stream_is_one(source: bytes) -> None:
    assert read(source) == [StreamFailed(source, {"message": "busy", "code": 429})]


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "choices",
                        "delta",
                        "index",
                        "content",
                        "tool_calls",
                        "function",
                        "arguments",
                        "name",
                        "id",
                        "usage",
                        "finish_reason",
                        "message",
                        "error",
                        "reasoning",
                        "function_call",
                    ]
                ),
                inner,
                max_size=5,
            )
        ),
        max_leaves=12,
    )
)
def test_no_json_breaks_the_reader(payload: Any) -> None:
    source = data(payload) + data({"choices": [{"delta": payload, "message": payload}]})
    assert b"".join(event.raw for event in read(source)) == source
    read_message(json.dumps({"choices": [{"message": payload}], "usage": payload}).encode())


def test_a_complete_message_gives_the_events_of_its_stream() -> None:
    message = {
        "role": "assistant",
        "content": "Hello wörld 😀",
        "refusal": None,
        "tool_calls": [
            function("Write", WRITE, id="call_abcdefgh1"),
            function("Read", "{}", id="call_abcdefgh2"),
        ],
    }
    body = {**chunk(), "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    events = read_message(json.dumps({**body, "usage": usage()["usage"]}).encode())
    assert events is not None
    assert blocks(list(events)) == OPENAI_BLOCKS
    assert {event.raw for event in events} == {b""}
    assert isinstance(events[0], ResponseStarted)
    assert isinstance(events[-1], ResponseEnded)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"error":{"message":"no"}}', b'{"choices":[]}', b'{"choices":[{"text":"x"}]}']
)
def test_a_body_that_is_no_answer_is_none(body: bytes) -> None:
    assert read_message(body) is None
