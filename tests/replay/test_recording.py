"""Lines that cannot be read, and files that are no transcripts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcripts import ClaudeCode, Codex, as_bytes, says

from ttsr_proxy.replay import recording
from ttsr_proxy.replay.recording import LostLine, NoTranscript, steps

from .conftest import BAD, replayer


def claude_code() -> list[bytes]:
    session = ClaudeCode()
    session.assistant("msg_1", says("BAD"))
    session.user()
    session.assistant("msg_2", says("BAD"))
    return as_bytes(session.lines)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{not json}\n", "is no JSON object"),
        (b"[1]\n", "is no JSON object"),
        (b"\xff\xfe\n", "is no JSON object"),
        (
            b'{"type":"assistant","uuid":"u","parentUuid":null,"message":7}\n',
            "`message` is no answer of a model",
        ),
        (b'{"type":"assistant","uuid":"u","parentUuid":4}\n', "`parentUuid` is no text"),
    ],
)
def test_a_line_that_cannot_be_read_costs_itself_only(line: bytes, reason: str) -> None:
    lines = claude_code()
    judge = replayer([BAD])
    found, lost = [], []
    for step in steps([*lines[:2], line, *lines[2:]]):
        if isinstance(step, LostLine):
            lost.append(step)
        else:
            found += judge.take(step)
    assert lost == [LostLine(3, reason)]
    assert [(one.line, one.action) for one in found] == [(2, "interrupted"), (5, "suppressed")]


def test_a_line_that_is_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MAX_LINE", 400)
    lines = claude_code()
    assert max(map(len, lines)) < 400 + 200
    lost = [step for step in steps([*lines, b"x" * 401]) if isinstance(step, LostLine)]
    assert lost[-1] == LostLine(5, "is longer than 400 bytes")


def test_a_codex_line_without_a_payload_is_lost() -> None:
    lines = [*as_bytes(Codex().lines), b'{"type": "response_item"}\n']
    assert [step for step in steps(lines) if isinstance(step, LostLine)] == [
        LostLine(5, "`payload` is no object")
    ]


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [b"\n"],
        [b'{"type": {}}\n'],
        [b'{"display": "a prompt"}\n'],
        [b"text\n"] * 3,
        [b"{}\n"] * 200 + claude_code(),
    ],
)
def test_what_is_no_transcript_is_said_so(lines: list[bytes]) -> None:
    with pytest.raises(NoTranscript):
        list(steps(lines))


def test_lines_before_the_first_known_one_do_not_matter() -> None:
    lines = [b'{"type": "summary", "summary": "x"}\n', b"\n", *claude_code()]
    assert [step.line for step in steps(lines) if not isinstance(step, LostLine)] == [4, 5, 6]


@given(
    st.lists(st.one_of(st.sampled_from(claude_code()), st.binary(max_size=60), st.just(b'{"type":"user"}')))
)
def test_no_line_makes_reading_fail(lines: list[bytes]) -> None:
    judge = replayer([BAD])
    try:
        for step in steps(lines):
            if not isinstance(step, LostLine):
                list(judge.take(step))
    except NoTranscript:
        pass


NAMES = ["type", "content", "text", "input", "name", "id", "role", "message", "summary", "action"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=12,
)


@given(VALUES)
def test_no_shape_of_an_item_makes_reading_fail(value: object) -> None:
    lines = [
        *as_bytes(Codex().lines),
        json.dumps({"type": "response_item", "payload": value}).encode(),
    ]
    claude = ClaudeCode()
    claude.assistant("msg_1", says("x"))
    claude.lines[-1]["message"]["content"] = [value]
    for recorded in (lines, as_bytes(claude.lines)):
        judge = replayer([BAD])
        for step in steps(recorded):
            if not isinstance(step, LostLine):
                list(judge.take(step))
