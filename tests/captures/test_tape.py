"""What a tape keeps of an exchange."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ttsr_proxy.captures.tape import Label, Tape


def label(**fields: Any) -> Label:
    first = Label(
        id="req-1",
        record="r1",
        parent=None,
        time=1_772_366_400.25,
        project="default",
        root="/work/app",
        conversation="c1",
        turn=0,
        client="claude-code",
        agent="main",
        protocol="anthropic",
        observed=None,
    )
    return replace(first, **fields)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        self.now += 0.5
        return self.now


def test_messages_stand_in_their_order_with_their_times() -> None:
    tape = Tape(label(), 1000, Clock())
    tape.asked("POST", "/v1/messages", {"a": "b"}, b"question")
    tape.asks("POST", "http://up/v1/messages", {}, b"question")
    hear = tape.answered(200, {"c": "d"})
    hear(b"an ")
    tell = tape.answers(200, {})
    tell(b"an ")
    tape.lost("aborted")
    tape.asks("POST", "http://up/v1/messages", {}, b"again")
    tape.answered(200, {})(b"swer")
    tell(b"swer")
    tape.over("completed")
    assert [(m.kind, m.attempt, m.body, m.ended) for m in tape.messages] == [
        ("client_request", None, b"question", ""),
        ("upstream_request", 1, b"question", ""),
        ("upstream_response", 1, b"an ", "aborted"),
        ("client_response", None, b"an swer", "completed"),
        ("upstream_request", 2, b"again", ""),
        ("upstream_response", 2, b"swer", ""),
    ]
    assert tape.messages[3].timing == [(4.0, 3), (6.5, 4)]
    assert not tape.truncated


def test_a_call_that_was_never_answered_has_its_reason() -> None:
    tape = Tape(label(), 1000, Clock())
    tape.asks("POST", "http://up/", {}, b"q")
    tape.lost("cannot connect")
    tape.lost("later")
    assert [(m.kind, m.status, m.ended) for m in tape.messages[1:]] == [
        ("upstream_response", 0, "cannot connect")
    ]


def test_an_answer_that_passes_as_it_comes_is_kept_once() -> None:
    tape = Tape(label(), 1000, Clock())
    tape.asks("POST", "http://up/", {}, b"q")
    tape.answered(503, {})(b"busy")
    tape.relays()
    tape.over("upstream_failed")
    last = tape.messages[-1]
    assert (last.kind, last.status, last.body, last.ended) == ("client_response", 503, b"", "relayed")


def test_what_goes_beyond_the_limit_is_left_out_and_its_size_is_known() -> None:
    tape = Tape(label(), 5, Clock())
    tape.asked("POST", "/", {}, b"abc")
    tape.asks("POST", "/", {}, b"defgh")
    assert [m.body for m in tape.messages] == [b"abc", b"de"]
    assert tape.messages[1].timing[0][1] == 5
    assert tape.truncated
