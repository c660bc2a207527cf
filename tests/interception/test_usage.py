"""What the client is told of tokens, and what the log is told of waste."""

from __future__ import annotations

from typing import Any

from playbook import aborted, answers, asked, finished, gets, rule, says
from strict_anthropic import text, tool

BAD = rule("no-bad-word", "BADWORD")
WRITE = {"file_path": "a.py", "content": "x = 1"}
BAD_WRITE = {"file_path": "a.py", "content": "BADWORD"}


def test_a_clean_answers_usage_is_upstreams(playbook: Any) -> None:
    book = playbook(BAD) >> says("go") << asked("user: go") >> answers(text("x" * 40), input_tokens=100)
    book << gets(f"start text[{'x' * 40}] end_turn stop") << finished()
    assert (book.answer.usage["input_tokens"], book.answer.usage["output_tokens"]) == (100, 11)


def test_after_a_restart_it_is_the_last_attempts(playbook: Any) -> None:
    book = playbook(BAD) >> says("go") << asked("user: go") >> answers(text("BADWORD"), input_tokens=100)
    book << gets("start") << aborted() << asked("user: go | INTERRUPT(no-bad-word)")
    book >> answers(text("x" * 40), input_tokens=130) << gets(f"text[{'x' * 40}] end_turn stop")
    book << finished()
    assert (book.answer.usage["input_tokens"], book.answer.usage["output_tokens"]) == (130, 11)
    assert book.log[0].tokens_wasted == 100 + 2
    assert book.log[0].tokens_estimated


def test_after_a_continuation_what_was_delivered_before_is_estimated(playbook: Any) -> None:
    shown = "y" * 80
    book = playbook(BAD) >> says("go") << asked("user: go") >> answers(text(shown, "BADWORD"))
    book << gets(f"start text[{shown}") << aborted()
    book << asked("user: go", f"assistant: {shown}", "user: INTERRUPT(no-bad-word)")
    book >> answers(text("x" * 40)) << gets(f"] text[{'x' * 40}] end_turn stop") << finished()
    assert book.answer.usage["output_tokens"] == 20 + 11


def test_a_truncated_answers_output_is_estimated(playbook: Any) -> None:
    book = playbook(BAD) >> says("go") << asked("user: go")
    book >> answers(tool("Write", WRITE), tool("Write", BAD_WRITE), input_tokens=100)
    book << gets('start Write[{"file_path": "a.py", "content": "x = 1"}]') << aborted()
    book << gets("tool_use stop") << finished()
    assert book.answer.usage["input_tokens"] == 100
    assert book.answer.usage["output_tokens"] > 5


def test_the_log_knows_what_the_interrupt_cost_in_time(playbook: Any) -> None:
    book = playbook(BAD) >> says("go") << asked("user: go") >> answers(text("BADWORD")) << gets("start")
    book << aborted() << asked("user: go | INTERRUPT(no-bad-word)")
    book.now += 2.5
    book >> answers(text("Good.")) << gets("text[Good.] end_turn stop") << finished()
    assert book.log[0].seconds_added == 2.5
    assert len(book.log[0].upstream_requests) == 2
