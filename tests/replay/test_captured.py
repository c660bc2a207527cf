"""Captures of the proxy, replayed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raw_http.dialects import DIALECTS, Dialect
from strict_anthropic.script import text, tool

from ttsr_proxy.captures.lines import lines
from ttsr_proxy.captures.tape import Label, Tape
from ttsr_proxy.replay.findings import Finding
from ttsr_proxy.replay.recording import LostLine, steps
from ttsr_proxy.replay.replayer import Replayer
from ttsr_proxy.web.proxy import PROTOCOLS

from .conftest import BAD, replayer, rule

PROTOCOL = {
    name: next(p for p in PROTOCOLS if p.paths[0].endswith(DIALECTS[name].path[3:])) for name in DIALECTS
}
STREAM = {"content-type": "text/event-stream; charset=utf-8"}


def label(dialect: Dialect, record: str, parent: str | None = None, **fields: Any) -> Label:
    return Label(
        id=f"req-{record}",
        record=record,
        parent=parent,
        time=1_772_366_400.0,
        project="default",
        root="/work/app",
        conversation="c1",
        turn=0,
        client="claude-code",
        agent=fields.pop("agent", "main"),
        protocol=PROTOCOL[dialect.name].name,
        observed=fields.pop("observed", None),
    )


def capture(
    dialect: Dialect, label: Label, *attempts: list[bytes], body: bytes | None = None, aside: bytes = b""
) -> list[bytes]:
    """The lines of an exchange whose attempts were answered with these events."""
    tape = Tape(label, 1_000_000, lambda: 1.0)
    asked = dialect.body() if body is None else body
    tape.asked("POST", dialect.path, {}, asked)
    for events in attempts:
        tape.asks("POST", f"http://up{dialect.path}", {}, asked + aside)
        hear = tape.answered(200, STREAM)
        for event in events:
            hear(event)
    return [*lines(tape, PROTOCOL[dialect.name])]


def findings(judge: Replayer, *files: Iterable[bytes]) -> list[Finding]:
    found = []
    for file in files:
        for step in steps(file):
            assert not isinstance(step, LostLine), step
            found += judge.take(step)
    return found


@pytest.fixture(params=DIALECTS.values(), ids=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    found: Dialect = request.param
    return found


def test_every_attempt_is_judged_as_the_model_wrote_it(dialect: Dialect) -> None:
    attempts = [dialect.events("so B", "AD")[:-1], dialect.events("fine")]
    (found,) = findings(replayer([BAD]), capture(dialect, label(dialect, "r1"), *attempts))
    assert (found.action, found.attempt, found.turn, found.source, found.matched) == (
        "interrupted", 1, 0, "text", "BAD",
    )  # fmt: skip
    assert (found.client, found.conversation, found.model) == (
        "claude-code", "c1", dialect.request["model"],
    )  # fmt: skip
    assert found.time == "2026-03-01T12:00:00.000Z"


def test_a_retry_may_be_interrupted_again_within_the_budget(dialect: Dialect) -> None:
    lines = capture(dialect, label(dialect, "r1"), *([dialect.events("BAD")] * 3))
    assert [(one.attempt, one.action) for one in findings(replayer([BAD]), lines)] == [
        (1, "interrupted"),
        (2, "interrupted"),
        (3, "exhausted"),
    ]


def test_exchanges_are_linked_as_the_proxy_linked_them(dialect: Dialect) -> None:
    said = dialect.events("BAD")
    files = [
        capture(dialect, label(dialect, name, parent), said)
        for name, parent in [("r1", None), ("r2", "r1"), ("other", None), ("fork", "r1"), ("lost", "deleted")]
    ]
    assert [(one.turn, one.action) for one in findings(replayer([BAD]), *files)] == [
        (0, "interrupted"),
        (1, "suppressed"),
        (0, "interrupted"),
        (1, "suppressed"),
        (0, "interrupted"),
    ]


def test_tool_calls_and_paths_are_those_of_the_answer(dialect: Dialect) -> None:
    call = tool("Write", {"file_path": "/work/app/src/a.py", "content": "BAD"})
    lines = capture(dialect, label(dialect, "r1"), dialect.answer(text("ok"), call))
    (found,) = findings(replayer([rule("no-bad", "BAD", globs=("src/*.py",))]), lines)
    assert (found.tool, found.paths) == ("Write", ("src/a.py",))


def test_helper_calls_stay_observed_and_sub_agents_keep_their_names(dialect: Dialect) -> None:
    lines = capture(dialect, label(dialect, "r1", observed="no tools", agent="scout"), dialect.events("BAD"))
    (found,) = findings(replayer([BAD]), lines)
    assert (found.action, found.detail, found.agent) == ("observed", "no tools", "scout")


def test_a_model_that_repeats_its_reminder_does_not_break_the_rule() -> None:
    dialect = DIALECTS["anthropic"]
    line = "Never use the word BAD in any of your answers, please."
    reminder = f'<system-interrupt reason="rule_violation" rule="no-bad">\n{line}\n</system-interrupt>'
    body = dialect.body(messages=[{"role": "user", "content": reminder}])
    judge = replayer([BAD])
    assert findings(judge, capture(dialect, label(dialect, "r1"), dialect.events(line), body=body)) == []


def test_edits_in_prose_are_tool_calls_where_the_request_told_the_format() -> None:
    dialect = DIALECTS["chat"]
    prompt = "Answer with *SEARCH/REPLACE blocks*:\n<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE"
    body = dialect.body(messages=[{"role": "system", "content": prompt}, {"role": "user", "content": "go"}])
    edit = "a.py\n```python\n<<<<<<< SEARCH\nx\n=======\nBAD\n>>>>>>> REPLACE\n```\n"
    lines = capture(dialect, label(dialect, "r1"), dialect.events(edit), body=body)
    (found,) = findings(replayer([rule("no-bad", "BAD", scope=("tool:edit(*.py)",))]), lines)
    assert (found.source, found.paths) == ("tool", ("a.py",))


@pytest.mark.parametrize("status", [401, 0])
def test_calls_that_upstream_refused_are_nothing_to_judge(status: int) -> None:
    dialect = DIALECTS["anthropic"]
    recorded = [json.loads(line) for line in capture(dialect, label(dialect, "r1"), dialect.events("BAD"))]
    recorded[-1]["status"] = status
    assert findings(replayer([BAD]), [json.dumps(line).encode() for line in recorded]) == []


def test_an_answer_that_is_not_streamed_is_judged() -> None:
    dialect = DIALECTS["anthropic"]
    recorded = [json.loads(line) for line in capture(dialect, label(dialect, "r1"), [b""])]
    recorded[-1]["headers"] = {"content-type": "application/json"}
    recorded[-1]["body"] = json.dumps({"type": "message", "content": [{"type": "text", "text": "BAD"}]})
    assert len(findings(replayer([BAD]), [json.dumps(line).encode() for line in recorded])) == 1


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("ttsr_capture", 2, "a capture of format 2; known is 1"),
        ("protocol", "gopher", "`protocol` names none that is known"),
    ],
)
def test_a_capture_that_is_not_understood_says_why_once(field: str, value: object, reason: str) -> None:
    dialect = DIALECTS["anthropic"]
    recorded = [json.loads(line) for line in capture(dialect, label(dialect, "r1"), dialect.events("BAD"))]
    recorded[0][field] = value
    assert list(steps(json.dumps(line).encode() for line in recorded)) == [LostLine(1, reason)]


@given(st.data(), st.sampled_from(list(DIALECTS)))
def test_findings_do_not_depend_on_how_the_answer_was_cut(data: st.DataObject, name: str) -> None:
    dialect = DIALECTS[name]
    said = data.draw(st.sampled_from(["so BAD words", "related BAD", "fine", "x BAD eval(1) related"]))
    rules = (BAD, rule("end", "words?$"), rule("ahead", r"related(?! to)", repeat_mode="always"))
    places = sorted(data.draw(st.sets(st.integers(1, len(said) - 1), max_size=4)))
    pieces = [said[start:end] for start, end in zip([0, *places], [*places, len(said)], strict=True)]
    whole = findings(replayer(rules), capture(dialect, label(dialect, "r1"), dialect.events(said)))
    cut = findings(replayer(rules), capture(dialect, label(dialect, "r1"), dialect.events(*pieces)))
    assert cut == whole


FIELDS = st.sampled_from(["kind", "body", "status", "headers", "attempt", "at"])
KINDS = ["client_request", "upstream_request", "upstream_response"]


@given(st.dictionaries(FIELDS, st.sampled_from([*KINDS, 200, {}, [], None, "\ud800", 1e400])))
def test_no_shape_of_a_message_makes_reading_fail(message: dict[str, Any]) -> None:
    dialect = DIALECTS["anthropic"]
    recorded = capture(dialect, label(dialect, "r1"), dialect.events("BAD"))
    judge = replayer([BAD])
    for step in steps([recorded[0], json.dumps(message).encode(), *recorded[1:]]):
        if not isinstance(step, LostLine):
            list(judge.take(step))
