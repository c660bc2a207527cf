"""Answers that are not streamed: judged whole, asked for again whole."""

from __future__ import annotations

from typing import Any

import pytest
from playbook import Playbook, aborted, answers, asked, finished, replied, results, rule, says
from strict_anthropic import text, thinking, tool

BAD = rule("no-bad-word", "BADWORD")
WRITE = {"file_path": "a.py", "content": "x = 1"}
BAD_WRITE = {"file_path": "a.py", "content": "BADWORD"}
WRITTEN = 'Write {"file_path":"a.py","content":"x = 1"}'


@pytest.fixture
def book(playbook: Any) -> Playbook:
    made: Playbook = playbook(BAD)
    made.agent.stream = False
    return made


def test_a_clean_answer_is_upstreams_own_bytes(book: Playbook) -> None:
    book >> says("go") << asked("user: go") >> answers(thinking("hm"), text("Good."))
    book << replied(200, "(hm) | Good. | end_turn") << finished()
    book >> says("more") << asked("user: go", "assistant: (hm) | Good.", "user: more")


@pytest.mark.parametrize(
    "steps",
    [
        [text("Hello."), text("BADWORD")],
        [thinking("BADWORD"), text("Hello.")],
        [tool("Write", WRITE), tool("Write", BAD_WRITE)],
        [text("Hello."), tool("Write", BAD_WRITE)],
    ],
    ids=["text", "thinking", "second call", "call after text"],
)
def test_a_violation_anywhere_asks_for_a_whole_new_answer(book: Playbook, steps: Any) -> None:
    (
        book
        >> says("go")
        << asked("user: go")
        >> answers(*steps)
        << aborted()
        << asked("user: go | INTERRUPT(no-bad-word)")
        >> answers(thinking("better"), tool("Write", WRITE))
        << replied(200, f"(better) | {WRITTEN} | tool_use")
        << finished()
        >> results()
        << asked("user: go | INTERRUPT(no-bad-word)", f"assistant: (better) | {WRITTEN}", "user: =ok")
    )


def test_sibling_calls_of_a_withheld_call_are_said_to_be_withheld(book: Playbook) -> None:
    book >> says("go") << asked("user: go")
    book >> answers(tool("Read", {"file_path": "b"}), tool("Write", BAD_WRITE)) << aborted()
    book << asked("user: go | INTERRUPT(no-bad-word)")
    told = book.requests[-1]["messages"][-1]["content"][-1]["text"]
    assert "Other tool calls of the same output were not executed either (Read)." in told


def test_a_match_that_does_not_interrupt_is_reminded_of(playbook: Any) -> None:
    book = playbook(rule("no-bad-word", "BADWORD", interrupt_mode="never"))
    book.agent.stream = False
    book >> says("go") << asked("user: go") >> answers(text("BADWORD"))
    book << replied(200, "BADWORD | end_turn") << finished()
    book >> says("more") << asked("user: go", "assistant: BADWORD", "user: more | REMINDER(no-bad-word)")


def test_a_later_streamed_request_knows_the_hidden_reminder(book: Playbook) -> None:
    book >> says("go") << asked("user: go") >> answers(text("BADWORD")) << aborted()
    book << asked("user: go | INTERRUPT(no-bad-word)") >> answers(text("Good."))
    book << replied(200, "Good. | end_turn") << finished()
    book.agent.stream = True
    book >> says("more") << asked("user: go | INTERRUPT(no-bad-word)", "assistant: Good.", "user: more")
