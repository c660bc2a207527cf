from __future__ import annotations

import json
import re
from typing import Any

import pytest
from strict_anthropic import ping, text, thinking, tool, turn
from strict_openai_responses import Writer

from ttsr_proxy.protocols.events import (
    BlockDelta,
    BlockEnded,
    BlockStarted,
    Other,
    ProtocolEvent,
    ResponseEnded,
    ResponseEnding,
    ResponseStarted,
)
from ttsr_proxy.protocols.openai_responses.request import read_request
from ttsr_proxy.protocols.openai_responses.response import ResponsesReader
from ttsr_proxy.protocols.openai_responses.writer import ResponsesWriter

REQUEST = read_request(b'{"model":"gpt-x","input":"x"}', {})


def events_of(*steps: Any, **options: Any) -> list[ProtocolEvent]:
    writer = Writer(turn(*steps, **options), {"model": "gpt-x", "store": False})
    stream = b"".join(act for act in writer.stream() if isinstance(act, bytes))
    return ResponsesReader().feed(stream)


def new_writer() -> ResponsesWriter:
    assert REQUEST is not None
    return ResponsesWriter(REQUEST)


def write(
    writer: ResponsesWriter, events: list[ProtocolEvent], base: int = 0, *, first: bool = True
) -> bytes:
    out = b""
    for event in events:
        match event:
            case ResponseStarted():
                out += writer.start(event) if first else b""
            case BlockStarted() | BlockDelta() | BlockEnded():
                out += writer.reindex(event, event.index + base)
            case ResponseEnding():
                out += writer.ending(event, usage_changes=None if first else {"input_tokens": 7})
            case ResponseEnded():
                out += writer.end(event)
            case Other():
                out += writer.other(event)
    return out


def payloads(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(block.split(b"data: ", 1)[1]) for block in data.split(b"\n\n") if b"data: " in block]


def test_a_first_attempt_passes_byte_for_byte() -> None:
    events = events_of(thinking("hm"), text("Hello", ping()), tool("write", {"a": 1}), extra={"new": 1})
    assert write(new_writer(), events) == b"".join(event.raw for event in events)


@pytest.mark.parametrize("number", ["0", "7", "99999"])
def test_numbers_that_do_not_count_pass_as_long_as_nothing_is_inserted(number: str) -> None:
    stream = b"".join(event.raw for event in events_of(text("Hello"), tool("write", {"a": 1})))
    stream = re.sub(rb'"sequence_number": \d+', b'"sequence_number": %s' % number.encode(), stream)
    assert write(new_writer(), ResponsesReader().feed(stream)) == stream


def cut_after(count: int) -> tuple[ResponsesWriter, bytes]:
    """A writer whose first attempt was aborted after so many events, and what it wrote, closing included."""
    writer = new_writer()
    out = write(writer, events_of(text("Hello wonderful world"))[:count])
    return writer, out + writer.break_off() + writer.stop_block(0)


def test_a_retry_continues_ids_indexes_and_numbers() -> None:
    writer, out = cut_after(6)
    out += write(writer, events_of(thinking("hm"), text("Better.")), 1, first=False)
    seen = payloads(out)
    assert [p["sequence_number"] for p in seen] == list(range(len(seen)))
    assert [p["type"] for p in seen].count("response.created") == 1
    assert [p["type"] for p in seen].count("response.in_progress") == 1
    last = seen[-1]["response"]
    assert last["id"] == seen[0]["response"]["id"]
    assert [item["type"] for item in last["output"]] == ["message", "reasoning", "message"]
    assert last["output"][0]["content"][0]["text"] == "Hello wonderfu"
    assert last["usage"]["input_tokens"] == 7
    assert last["usage"]["total_tokens"] == 7 + last["usage"]["output_tokens"]
    assert {p["output_index"] for p in seen if "output_index" in p} == {0, 1, 2}


def test_a_cut_message_is_closed_with_all_its_events() -> None:
    _, out = cut_after(6)
    seen = payloads(out)[-3:]
    assert [p["type"] for p in seen] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
    ]
    assert seen[0]["text"] == "Hello wonderfu"
    assert seen[2]["item"]["status"] == "completed"
    assert seen[0]["item_id"] == seen[2]["item"]["id"]


def test_a_message_that_was_closed_but_not_done_gets_only_what_is_missing() -> None:
    count = next(
        i for i, e in enumerate(events_of(text("Hello wonderful world"))) if b"output_text.done" in e.raw
    )
    _, out = cut_after(count + 1)
    assert [p["type"] for p in payloads(out)][-2:] == [
        "response.content_part.done",
        "response.output_item.done",
    ]


def test_reasoning_that_was_cut_stays_open_and_stands_in_the_end() -> None:
    writer = new_writer()
    events = events_of(thinking("a long thought about it"))
    out = write(writer, events[:6]) + writer.break_off() + writer.marker(0, "ttsr:x:0") + writer.stop_block(0)
    assert out == b"".join(event.raw for event in events[:6])
    last = payloads(writer.finish("completed", {"input_tokens": 3, "output_tokens": 4}))[0]["response"]
    assert last["status"] == "completed"
    assert [(item["type"], item["status"]) for item in last["output"]] == [("reasoning", "incomplete")]
    assert last["usage"]["total_tokens"] == 7


def test_part_of_a_delta_keeps_its_fields_but_not_its_tokens() -> None:
    writer = new_writer()
    events = events_of(text("Hello"))
    write(writer, events[:4])
    delta = events[4]
    assert isinstance(delta, BlockDelta)
    raw = delta.raw.replace(b'"logprobs": []', b'"logprobs": [{"token": "Hello"}]')
    (seen,) = payloads(writer.part_of(BlockDelta(raw, 0, "text", "Hello"), 0, "He"))
    assert (seen["delta"], seen["logprobs"], seen["obfuscation"]) == ("He", [], "x")


def test_part_of_text_that_came_without_deltas_is_a_delta_of_an_announced_item() -> None:
    writer = new_writer()
    write(writer, events_of(text("x"))[:1])
    item = {"id": "m", "type": "message", "role": "assistant", "content": []}
    writer.reindex(BlockStarted(b"", 0, "text", None, None, item), 0)
    out = writer.part_of(BlockDelta(b"", 0, "text", "Hello"), 0, "He") + writer.stop_block(0)
    assert [p["type"] for p in payloads(out)] == [
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
    ]


def test_keepalives_are_comments_or_events_that_count() -> None:
    writer = new_writer()
    events = events_of(text("Hello"))
    write(writer, events[:5])
    assert writer.keepalive((0, "text"), False).startswith(b":")
    seen = payloads(writer.keepalive((0, "text"), True))
    assert [p["type"] for p in seen] == ["response.in_progress", "response.output_text.delta"]
    assert seen[1]["delta"] == ""
    rest = payloads(write(writer, events[5:]))
    numbers = [p["sequence_number"] for p in (*seen, *rest)]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert rest[-1]["response"]["output"][0]["content"][0]["text"] == "Hello"


def test_an_error_is_a_failed_response_of_the_same_id() -> None:
    writer = new_writer()
    (opened,) = payloads(write(writer, events_of(text("x"))[:1]))
    (failed,) = payloads(writer.error({"type": "invalid_request_error", "message": "no", "code": None}))
    assert failed["type"] == "response.failed"
    assert failed["response"]["id"] == opened["response"]["id"]
    assert failed["response"]["status"] == "failed"
    assert failed["response"]["error"] == {"code": "invalid_prompt", "message": "no"}
    assert failed["sequence_number"] == 1


def test_an_end_without_input_figures_reports_no_usage() -> None:
    writer = new_writer()
    write(writer, events_of(text("x"))[:1])
    assert payloads(writer.finish("completed", {"output_tokens": 4}))[0]["response"]["usage"] is None
