"""One legal response for the client, whatever the number of attempts behind it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chat_chunks import DONE, call, chunk, joined, stream, usage

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
from ttsr_proxy.protocols.openai_chat.request import read_request
from ttsr_proxy.protocols.openai_chat.response import ChatReader
from ttsr_proxy.protocols.openai_chat.usage import usage_changes
from ttsr_proxy.protocols.openai_chat.writer import ChatWriter

BOTH_AT_ONCE = chunk({"role": "assistant", "content": "Hi ", **call(0, "{}", id="call_abcdefgh1", name="A")})


def writer(**body: Any) -> ChatWriter:
    messages = [{"role": "user", "content": "x" * 40}]
    request = read_request(json.dumps({"messages": messages, **body}).encode(), {})
    assert request is not None
    return ChatWriter(request)


def read(source: bytes) -> list[ProtocolEvent]:
    reader = ChatReader()
    return [*reader.feed(source), *reader.finish()]


def write(
    one: ChatWriter, events: list[ProtocolEvent], *, first_block: int = 0, started: bool = True
) -> bytes:
    written = b""
    for event in events:
        match event:
            case ResponseStarted():
                written += one.start(event) if started else b""
            case BlockStarted() | BlockDelta() | BlockEnded():
                written += one.reindex(event, first_block + event.index)
            case ResponseEnding():
                written += one.ending(event)
            case ResponseEnded():
                written += one.end(event)
            case Other():
                written += one.other(event)
    return written


def until_call(source: bytes) -> list[ProtocolEvent]:
    """The events before the first tool call."""
    events = read(source)
    at = next(i for i, event in enumerate(events) if isinstance(event, BlockStarted) and event.kind == "tool")
    return events[:at]


@pytest.mark.parametrize(
    "source",
    [
        stream(
            chunk({"role": "assistant", "content": ""}), chunk({"content": "Hi"}), chunk({}, "stop"), usage()
        ),
        stream(BOTH_AT_ONCE, chunk({}, "tool_calls")),
        stream(chunk({"role": "assistant", "content": "Hi"}, "stop", usage=usage()["usage"])),
        b"\xef\xbb\xbf: hello\r\n\r\n"
        + stream(chunk({"content": "Hi"}), chunk({}, "stop")).replace(b"\n", b"\r\n"),
    ],
)
def test_one_attempt_is_written_as_it_came(source: bytes) -> None:
    assert write(writer(), read(source)) == source


def test_a_part_is_written_when_its_chunk_is_whole() -> None:
    one = writer()
    events = read(stream(BOTH_AT_ONCE))
    pieces = [write(one, [event]) for event in events]
    assert [piece for piece in pieces if piece] == [stream(BOTH_AT_ONCE, done=False), DONE]


def test_what_was_let_out_of_a_chunk_is_written_when_the_attempt_is_aborted() -> None:
    one = writer()
    assert write(one, until_call(stream(BOTH_AT_ONCE))) == b""
    told = joined(one.break_off())
    assert (told["role"], told["content"]) == ("assistant", "Hi ")
    assert "tool_calls" not in told


def test_a_role_alone_is_not_worth_a_chunk_when_the_attempt_is_aborted() -> None:
    one = writer()
    first = stream(chunk({"role": "assistant", **call(0, "{}", id="call_abcdefgh1", name="A")}))
    assert write(one, until_call(first)) == b""
    assert one.break_off() == b""
    retry = stream(
        chunk({"role": "assistant", "content": "Ok"}, id="chatcmpl-B"), chunk({}, "stop", id="chatcmpl-B")
    )
    assert write(one, read(retry)) == retry


def spliced(first: list[ProtocolEvent], retry: bytes, one: ChatWriter | None = None) -> dict[str, Any]:
    """What a client has of an aborted attempt and the next."""
    one = one or writer()
    given = sum(isinstance(event, BlockStarted) for event in first)
    written = write(one, first) + one.break_off()
    return joined(written + write(one, read(retry), first_block=given, started=False))


FIRST = [*read(stream(chunk({"role": "assistant", "content": ""}), chunk({"content": "Hello,"}), done=False))]
RETRY = stream(
    chunk(
        {"role": "assistant", "content": ""}, id="chatcmpl-B", created=1700000009, system_fingerprint="fp_2"
    ),
    chunk({"role": "assistant", "content": "world."}, id="chatcmpl-B"),
    chunk(call(0, "", id="call_abcdefgh1", name="A"), id="chatcmpl-B"),
    chunk(call(0, "{}"), id="chatcmpl-B"),
    chunk(call(1, "[]", id="call_abcdefgh2", name="B"), id="chatcmpl-B"),
    chunk({}, "tool_calls", id="chatcmpl-B"),
    usage(20, 7, id="chatcmpl-B"),
)


def test_a_later_attempt_continues_the_response() -> None:
    told = spliced(FIRST, RETRY)
    assert told["ids"] == {"chatcmpl-A"}
    assert told["role"] == "assistant"
    assert told["content"] == "Hello,\n\nworld."
    assert told["tool_calls"] == [
        {"id": "call_abcdefgh1", "name": "A", "arguments": "{}"},
        {"id": "call_abcdefgh2", "name": "B", "arguments": "[]"},
    ]
    assert told["finish"] == ["tool_calls"]
    assert told["usage"] == [usage(20, 7)["usage"]]
    assert told["done"] == 1


def test_every_chunk_of_a_later_attempt_has_the_first_identity() -> None:
    one = writer()
    written = write(one, FIRST) + one.break_off() + write(one, read(RETRY), first_block=1, started=False)
    chunks = [
        json.loads(event[6:]) for event in written.decode().split("\n\n") if event.startswith("data: {")
    ]
    identities = {(c["id"], c["created"], c["model"], c["system_fingerprint"]) for c in chunks}
    assert identities == {("chatcmpl-A", 1700000000, "gpt-x", "fp_1")}
    assert [c["choices"][0]["delta"].get("role") for c in chunks if c["choices"]].count("assistant") == 1


def test_calls_of_a_later_attempt_count_on_from_none_though_the_server_counts_all_as_0() -> None:
    retry = stream(
        chunk({"content": "So:"}),
        chunk(call(0, "{}", id="call_abcdefgh1", name="A")),
        chunk(call(0, "{}", id="call_abcdefgh2", name="B")),
        chunk({}, "tool_calls"),
    )
    assert [one["name"] for one in spliced(FIRST, retry)["tool_calls"]] == ["A", "B"]


@pytest.mark.parametrize(("end", "gap"), [("Hello,", "\n\n"), ("Hello.\n", "\n"), ("Hello.\n\n", "")])
def test_text_that_follows_an_interrupt_begins_a_new_paragraph(end: str, gap: str) -> None:
    first = read(stream(chunk({"role": "assistant"}), chunk({"content": end}), done=False))
    told = spliced(first, stream(chunk({"content": "World"}), chunk({}, "stop")))
    assert told["content"] == f"{end}{gap}World"


def test_text_that_follows_a_call_of_the_same_attempt_does_not() -> None:
    retry = stream(
        chunk({"content": "a"}),
        chunk(call(0, "{}", id="call_abcdefgh1", name="A")),
        chunk({"content": "b"}),
        chunk({}, "tool_calls"),
    )
    assert spliced(FIRST, retry)["content"] == "Hello,\n\nab"


def test_reasoning_is_set_off_in_its_own_field() -> None:
    first = read(
        stream(chunk({"role": "assistant"}), chunk({"reasoning": "Hm"}), chunk({"content": "Hi"}), done=False)
    )
    told = spliced(first, stream(chunk({"reasoning": "So"}), chunk({"content": "Ho"}), chunk({}, "stop")))
    assert told["reasoning"] == "Hm\n\nSo"
    assert told["content"] == "Hi\n\nHo"


def test_a_cut_delta_says_its_part_and_nothing_that_repeats_the_rest() -> None:
    logprobs = {"content": [{"token": "secret"}]}
    whole = chunk(
        {
            "reasoning_content": "open secret",
            "reasoning": "open secret",
            "reasoning_details": [{"text": "open secret"}],
        }
    )
    whole["choices"][0]["logprobs"] = logprobs
    one = writer()
    events = read(stream(chunk({"role": "assistant"}), whole, done=False))
    (delta,) = [event for event in events if isinstance(event, BlockDelta)]
    written = write(one, [events[0]]) + one.part_of(delta, 0, "open ")
    assert b"secret" not in written
    told = joined(written)
    assert (told["reasoning_content"], told["reasoning"]) == ("open ", "open ")


def test_filter_results_of_the_prompt_are_told_once() -> None:
    azure = {"id": "", "model": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]}
    one = writer()
    written = write(one, [*read(stream(azure, done=False)), *FIRST]) + one.break_off()
    written += write(
        one, read(stream(azure, chunk({"content": "x"}), chunk({}, "stop"))), first_block=1, started=False
    )
    assert written.count(b"prompt_filter_results") == 1


def test_comments_of_a_later_attempt_pass() -> None:
    one = writer()
    write(one, FIRST)
    one.break_off()
    assert one.other(Other(b": OPENROUTER PROCESSING\n\n")) == b": OPENROUTER PROCESSING\n\n"


def test_the_usage_is_the_last_attempts_with_what_was_delivered_before() -> None:
    one = writer()
    write(one, FIRST)
    one.break_off()
    (ending,) = [
        event
        for event in read(stream(chunk({"content": "x"}), chunk({}, "stop"), usage(20, 7)))
        if isinstance(event, ResponseEnding) and event.usage.fields
    ]
    told = joined(one.ending(ending, usage_changes=usage_changes(None, ending.usage, 3)))
    assert told["usage"] == [{"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30}]


def test_an_end_of_the_proxys_own_is_legal() -> None:
    one = writer()
    told = joined(write(one, FIRST) + one.finish("stop", {"completion_tokens": 3}))
    assert (told["content"], told["finish"], told["usage"], told["done"]) == ("Hello,", ["stop"], [], 1)


def test_it_tells_a_usage_if_the_client_asked_for_one() -> None:
    one = writer(stream_options={"include_usage": True})
    told = joined(write(one, FIRST) + one.finish("stop", {"completion_tokens": 3}))
    assert told["usage"] == [{"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}]


def test_behind_an_older_function_call_it_gives_the_older_reason() -> None:
    first = read(
        stream(chunk({"role": "assistant", "function_call": {"name": "A", "arguments": "{}"}}), done=False)
    )
    one = writer()
    assert joined(write(one, first) + one.finish("tool_calls", {}))["finish"] == ["function_call"]


def test_signs_of_life_say_nothing() -> None:
    one = writer()
    assert one.keepalive(None, True) == b": keep-alive\n\n"
    write(one, FIRST)
    assert one.keepalive(None, False) == b": keep-alive\n\n"
    told = joined(one.keepalive((0, "text"), True))
    assert (told["content"], told["finish"], told["ids"]) == ("", [], {"chatcmpl-A"})


def test_an_error_is_an_event_of_its_own() -> None:
    assert (
        writer().error({"message": "no", "code": None}) == b'data: {"error":{"message":"no","code":null}}\n\n'
    )
