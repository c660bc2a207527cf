"""Any JSON value may stand at any place of a request or an event: nothing raises, whatever it means."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_http.dialects import DIALECTS
from stream_runs import play
from strict_anthropic import text, thinking, tool

from ttsr_proxy.protocols.anthropic import ANTHROPIC
from ttsr_proxy.protocols.openai_chat import OPENAI_CHAT
from ttsr_proxy.protocols.openai_responses import OPENAI_RESPONSES
from ttsr_proxy.protocols.protocol import WireProtocol
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.sessions.echoes import find_echoes
from ttsr_proxy.sessions.identity import identify

PROTOCOLS: dict[str, WireProtocol] = {
    "anthropic": ANTHROPIC, "chat": OPENAI_CHAT, "responses": OPENAI_RESPONSES
}  # fmt: skip
ODD: list[Any] = [{}, [], ["x"], {"a": 1}, 5, -1, 1.5, None, True, "x", "x\n\ny", "\ud800"]
BAD = Rule("no-bad-word", condition=("BADWORD",), scope=("text", "thinking", "tool"))
CALL = tool("Write", {"file_path": "a.py", "content": "x"})

REQUESTS: dict[str, dict[str, Any]] = {
    "anthropic": {
        "model": "m",
        "max_tokens": 5,
        "system": [{"type": "text", "text": "x"}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "x"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "x", "signature": "s"},
                    {"type": "tool_use", "id": "t", "name": "W", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "y"}]}
                ],
            },
        ],
        "tools": [{"name": "W"}],
        "metadata": {"user_id": "x"},
        "thinking": {"type": "enabled"},
    },
    "chat": {
        "model": "m",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "x"}]},
            {
                "role": "assistant",
                "content": "x",
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "W", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "r"},
        ],
        "tools": [{"type": "function", "function": {"name": "W"}}],
        "response_format": {"type": "json_object"},
    },
    "responses": {
        "model": "m",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]},
            {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "x"}]},
            {"type": "function_call", "call_id": "c", "name": "W", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "x"},
        ],
        "tools": [{"type": "function", "name": "W"}],
        "text": {"format": {"type": "text"}},
    },
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value within this one, itself included."""
    yield path
    for key, inner in (
        value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
    ):
        yield from places(inner, (*path, key))


def with_value(document: Any, path: tuple[Any, ...], value: Any) -> bytes:
    """The document as JSON with another value at this place."""
    if not path:
        return json.dumps(value).encode()
    changed = copy.deepcopy(document)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return json.dumps(changed).encode()


@pytest.mark.parametrize("name", PROTOCOLS)
def test_any_value_may_stand_at_any_place_of_a_request(name: str) -> None:
    protocol = PROTOCOLS[name]
    for path in places(REQUESTS[name]):
        for value in ODD:
            request = protocol.read_request(with_value(REQUESTS[name], path, value), {})
            if request is None:
                continue
            identify({}, request.body, path=protocol.paths[0])
            find_echoes(
                request.items, protocol.chain_text, prefill=request.prefill, previous=request.previous
            )
            protocol.write_request(request, protocol.without_thinking(protocol.strip_marks(request.items)))


def streams(name: str, said: str) -> list[tuple[list[bytes], int, bytes, Any]]:
    """An answer's events with each that is JSON: its position, what stands before its data, and the data."""
    events = DIALECTS[name].answer(thinking("hm"), text(said), CALL, chunk=20)
    found = []
    for at, event in enumerate(events):
        head, _, data = event.partition(b"data: ")
        if data.startswith(b"{"):
            found.append((events, at, head, json.loads(data)))
    return found


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("attempt", ["first", "retry"])
@given(st.data())
@settings(max_examples=150)
def test_any_value_may_stand_at_any_place_of_an_event(name: str, attempt: str, data: st.DataObject) -> None:
    dialect = DIALECTS[name]
    said = "Shown." if attempt == "retry" else data.draw(st.sampled_from(["Shown.", "Shown BADWORD."]))
    events, at, head, document = data.draw(st.sampled_from(streams(name, said)))
    path = data.draw(st.sampled_from(list(places(document))))
    value = data.draw(st.sampled_from(ODD))
    odd = head + b"data: " + with_value(document, path, value) + b"\n\n"
    answers = [b"".join([*events[:at], odd, *events[at + 1 :]])]
    if attempt == "retry":
        answers.insert(0, b"".join(dialect.events("Shown. ", "BADWORD")))
    answers += [b"".join(dialect.events("Fine."))] * 4
    run = play(
        PROTOCOLS[name], json.loads(dialect.body()), [BAD], [lambda body, one=one: one for one in answers]
    )
    assert run.finished


@pytest.mark.parametrize("name", PROTOCOLS)
def test_any_value_may_stand_at_any_place_of_a_whole_answer(name: str) -> None:
    protocol = PROTOCOLS[name]
    document = json.loads(DIALECTS[name].message("Shown BADWORD."))
    for path in places(document):
        for value in ODD:
            events = protocol.read_message(with_value(document, path, value))
            assert events is None or events


def test_an_item_announced_as_nothing_known_may_end_as_a_message() -> None:
    events, at, head, document = next(
        one for one in streams("responses", "Shown.") if b"output_item.added" in one[2]
    )
    odd = head + b"data: " + with_value(document, ("item",), {}) + b"\n\n"
    answer = b"".join([*events[:at], odd, *events[at + 1 :]])
    body = json.loads(DIALECTS["responses"].body())
    run = play(OPENAI_RESPONSES, body, [BAD], [lambda body: answer])
    assert (run.sent, run.finished) == (answer, True)


def test_figures_that_are_no_numbers_do_not_count() -> None:
    dialect = DIALECTS["responses"]
    *events, end = dialect.events("Fine.")
    head, _, data = end.partition(b"data: ")
    odd = head + b"data: " + with_value(json.loads(data), ("response", "usage", "input_tokens"), {}) + b"\n\n"
    answers = [b"".join(dialect.events("Shown. ", "BADWORD")), b"".join([*events, odd])]
    run = play(
        OPENAI_RESPONSES, json.loads(dialect.body()), [BAD], [lambda body, one=one: one for one in answers]
    )
    assert b"response.completed" in run.sent
    assert not run.broken
