from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttsr_proxy.protocols.sse import SseDecoder, SseEvent, encode, parse

LINE_ENDS = [b"\n", b"\r\n", b"\r"]

# Bytes that are dense in everything that delimits, so that random streams hit the edges.
STREAMS = st.lists(
    st.sampled_from(
        [
            b"\r",
            b"\n",
            b"\r\n",
            b"data:",
            b"data: ",
            b"event: x",
            b":",
            b" ",
            b"a",
            b"id: 1",
            b"retry: 5",
            b"\xef\xbb\xbf",
            b"\xf0\x9f",
            b"\x98\x80",
            b"\xff",
            b"\x00",
            "漢".encode(),
        ]
    ),
    max_size=40,
).map(b"".join)


def decode(*chunks: bytes, max_event: int = 1 << 20) -> list[SseEvent]:
    decoder = SseDecoder(max_event)
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return events + decoder.finish()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    marks = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[a:b] for a, b in pairwise(marks)]


def meaning(events: list[SseEvent]) -> list[tuple[str, str]]:
    return [(event.event, event.data) for event in events if event.has_data]


def by_the_standard(stream: bytes) -> list[tuple[str, str]]:
    """The standard's own algorithm, word for word, over the whole stream."""
    text = stream.decode("utf-8", errors="replace").removeprefix("\ufeff")
    name, data, out = "", "", []
    lines = re.split("\r\n|\r|\n", text)
    for line in lines[:-1]:
        if line == "":
            if data:
                out.append((name, data.removesuffix("\n")))
            name, data = "", ""
        elif not line.startswith(":"):
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                name = value
            elif field == "data":
                data += value + "\n"
    return out


@given(STREAMS, st.lists(st.integers(0, 500), max_size=20))
@settings(max_examples=100)
def test_any_split_gives_the_same_blocks_and_loses_no_byte(stream: bytes, places: list[int]) -> None:
    whole = decode(stream)
    assert b"".join(event.raw for event in whole) == stream
    assert decode(*cut(stream, places)) == whole
    assert decode(*(bytes([byte]) for byte in stream)) == whole


@given(STREAMS)
@settings(max_examples=100)
def test_events_are_those_of_the_standard(stream: bytes) -> None:
    assert meaning(decode(stream)) == by_the_standard(stream)


@pytest.mark.parametrize("end", LINE_ENDS)
def test_an_event_is_out_with_the_last_byte_of_its_blank_line(end: bytes) -> None:
    decoder = SseDecoder()
    stream = end.join([b"event: a", b"data: 1", b"", b""])
    for byte in stream[:-1]:
        assert decoder.feed(bytes([byte])) == []
    assert meaning(decoder.feed(stream[-1:])) == [("a", "1")]


def test_the_end_completes_a_blank_line_whose_line_feed_might_have_come() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: 1\r\n\r") == []
    assert meaning(decoder.finish()) == [("", "1")]


def test_field_forms() -> None:
    stream = (
        b'\xef\xbb\xbf: hi\ndata:{"a":\ndata: 1}\nid: 7\nretry: 20\nretry: x\nid: a\0b\nunknown: 1\ndata\n\n'
    )
    (event,) = decode(stream)
    assert event.data == '{"a":\n1}\n'
    assert (event.event, event.id, event.retry, event.raw) == ("", "7", 20, stream)


def test_only_one_leading_space_belongs_to_the_field() -> None:
    assert parse(b"data:  a\n\n").data == " a"


def test_comments_and_blank_lines_come_out_as_blocks_without_data() -> None:
    events = decode(b": ping\n\n\n\ndata:\n\n")
    assert [(event.raw, event.has_data) for event in events] == [
        (b": ping\n\n", False),
        (b"\n\n", False),
        (b"data:\n\n", True),
    ]


def test_a_byte_order_mark_counts_only_at_the_start() -> None:
    assert meaning(decode(b"data: 1\n\n\xef\xbb\xbfdata: 2\n\n")) == [("", "1")]


def test_an_unfinished_event_is_not_interpreted_and_not_lost() -> None:
    (event,) = decode(b"data: 1\n")
    assert (event.raw, event.has_data, event.whole) == (b"data: 1\n", False, False)


@given(STREAMS, st.lists(st.integers(0, 500), max_size=20), st.integers(0, 30))
@settings(max_examples=100)
def test_events_above_the_cap_pass_without_interpretation_whatever_the_split(
    stream: bytes, places: list[int], cap: int
) -> None:
    unlimited = decode(stream)
    for chunks in ([stream], cut(stream, places), [bytes([byte]) for byte in stream]):
        capped = decode(*chunks, max_event=cap)
        assert b"".join(event.raw for event in capped) == stream
        assert [e for e in capped if e.whole] == [e for e in unlimited if e.whole and len(e.raw) <= cap]


def test_an_oversized_event_is_not_kept() -> None:
    decoder = SseDecoder(max_event=100)
    out = [decoder.feed(b"x" * 50) for _ in range(20)]
    assert sum(len(event.raw) for events in out for event in events) >= 1000 - 100
    assert all(not event.whole for events in out for event in events)
    assert [event.whole for event in decoder.feed(b"\n\ndata: 1\n\n")] == [False, True]


def test_an_encoded_event_reads_back_with_every_line() -> None:
    raw = encode("x", b"1\n2\r\n3")
    assert raw == b"event: x\ndata: 1\ndata: 2\ndata: 3\n\n"
    assert (parse(raw).event, parse(raw).data) == ("x", "1\n2\n3")
    assert encode("", b"[DONE]") == b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    ("name", "line"),
    [("a", b"event: a\n"), ("", b""), ("a\ndata: b", b""), ("a\r", b""), ("\ud800", b"event: ?\n")],
)
def test_a_name_is_one_line_or_none(name: str, line: bytes) -> None:
    assert encode(name, b"x") == line + b"data: x\n\n"
