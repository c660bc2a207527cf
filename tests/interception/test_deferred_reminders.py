"""Matches that interrupt nothing: their reminder travels with the next request that echoes the response."""

from __future__ import annotations

from typing import Any

from playbook import (
    aborted,
    answers,
    asked,
    drops,
    finished,
    gets,
    leaves,
    refuses,
    replied,
    results,
    rule,
    says,
)
from strict_anthropic import stall, text, tool

BAD = rule("no-bad-word", "BADWORD", interrupt_mode="never")
WORSE = rule("no-worse-word", "WORSEWORD", interrupt_mode="never")
BAD_CALL = {"file_path": "a.py", "content": "BADWORD"}
ECHOED = 'Write {"file_path":"a.py","content":"BADWORD"}'
STREAMED = 'Write[{"file_path": "a.py", "content": "BADWORD"}]'


def test_a_reminder_about_prose_ends_the_users_next_message(playbook: Any) -> None:
    book = (
        playbook(BAD)
        >> says("one")
        << asked("user: one")
        >> answers(text("BADWORD"))
        << gets("start text[BADWORD] end_turn stop")
        << finished()
        >> says("two")
        << asked("user: one", "assistant: BADWORD", "user: two | REMINDER(no-bad-word)")
        >> answers(text("Good."))
        << gets("start text[Good.] end_turn stop")
        << finished()
        >> says("three")
        << asked(
            "user: one",
            "assistant: BADWORD",
            "user: two | REMINDER(no-bad-word)",
            "assistant: Good.",
            "user: three",
        )
        >> answers(text("Fine."))
        << gets("start text[Fine.] end_turn stop")
        << finished()
    )
    assert book.logged == ["no-bad-word deferred clean"]


def test_a_reminder_about_a_call_follows_its_result(playbook: Any) -> None:
    book = (
        playbook(BAD)
        >> says("go")
        << asked("user: go")
        >> answers(tool("Write", BAD_CALL))
        << gets(f"start {STREAMED} tool_use stop")
        << finished()
        >> results()
        << asked("user: go", f"assistant: {ECHOED}", "user: =ok | REMINDER(no-bad-word)")
        >> answers(text("Mended."))
        << gets("start text[Mended.] end_turn stop")
        << finished()
    )
    assert book.logged == ["no-bad-word reminded clean"]


def test_of_sibling_calls_the_first_claims_the_rule(playbook: Any) -> None:
    book = (
        playbook(BAD)
        >> says("go")
        << asked("user: go")
        >> answers(tool("Write", BAD_CALL), tool("Write", BAD_CALL))
        << gets(f"start {STREAMED} {STREAMED} tool_use stop")
        << finished()
        >> results()
        << asked("user: go", f"assistant: {ECHOED} | {ECHOED}", "user: =ok | =ok | REMINDER(no-bad-word)")
        >> answers(text("Mended."))
        << gets("start text[Mended.] end_turn stop")
        << finished()
    )
    assert book.logged == ["no-bad-word reminded clean", "no-bad-word suppressed violated again"]


def test_each_rule_has_its_own_reminder(playbook: Any) -> None:
    (
        playbook(BAD, WORSE)
        >> says("one")
        << asked("user: one")
        >> answers(text("WORSEWORD BADWORD"))
        << gets("start text[WORSEWORD BADWORD] end_turn stop")
        << finished()
        >> says("two")
        << asked(
            "user: one",
            "assistant: WORSEWORD BADWORD",
            "user: two | REMINDER(no-worse-word) | REMINDER(no-bad-word)",
        )
        >> answers(text("Good."))
        << gets("start text[Good.] end_turn stop")
        << finished()
    )


def test_a_reminder_goes_before_a_trailing_system_message(playbook: Any) -> None:
    book = playbook(BAD)
    book.agent.trailing_system = "Today is Monday."
    (
        book
        >> says("one")
        << asked("user: one", "system: Today is Monday.")
        >> answers(text("BADWORD"))
        << gets("start text[BADWORD] end_turn stop")
        << finished()
        >> says("two")
        << asked(
            "user: one",
            "system: Today is Monday.",
            "assistant: BADWORD",
            "user: two | REMINDER(no-bad-word)",
            "system: Today is Monday.",
        )
        >> answers(text("Good."))
        << gets("start text[Good.] end_turn stop")
        << finished()
    )


def test_the_violation_repeated_under_the_reminder_is_seen_in_the_log(playbook: Any) -> None:
    book = (
        playbook(BAD)
        >> says("one")
        << asked("user: one")
        >> answers(text("BADWORD"))
        << gets("start text[BADWORD] end_turn stop")
        << finished()
        >> says("two")
        << asked("user: one", "assistant: BADWORD", "user: two | REMINDER(no-bad-word)")
        >> answers(text("BADWORD again"))
        << gets("start text[BADWORD again] end_turn stop")
        << finished()
    )
    assert book.logged == ["no-bad-word deferred violated again", "no-bad-word suppressed violated again"]
    assert book.log[1].detail == "the model was reminded with this request"


def test_a_reminder_that_upstream_did_not_accept_is_placed_again(playbook: Any) -> None:
    book = (
        playbook(BAD)
        >> says("one")
        << asked("user: one")
        >> answers(text("BADWORD"))
        << gets("start text[BADWORD] end_turn stop")
        << finished()
        >> says("two")
        << asked("user: one", "assistant: BADWORD", "user: two | REMINDER(no-bad-word)")
        >> refuses(529, kind="overloaded_error")
        << replied(529, "overloaded_error: no")
        << finished()
    )
    book.agent.messages.pop()
    (
        book
        >> says("two, please")
        << asked("user: one", "assistant: BADWORD", "user: two, please | REMINDER(no-bad-word)")
        >> drops()
        << replied(502, "api_error: the connection was cut")
        << finished()
    )


def test_each_fork_gets_the_reminder(playbook: Any) -> None:
    book = (
        playbook(BAD)
        >> says("one")
        << asked("user: one")
        >> answers(text("BADWORD"))
        << gets("start text[BADWORD] end_turn stop")
        << finished()
    )
    for words in ("two", "another two"):
        fork = book.fork()
        (
            fork
            >> says(words)
            << asked("user: one", "assistant: BADWORD", f"user: {words} | REMINDER(no-bad-word)")
            >> answers(text(f"Good {words}."))
            << gets(f"start text[Good {words}.] end_turn stop")
            << finished()
        )


def test_helper_calls_never_take_a_reminder(playbook: Any) -> None:
    book = (
        playbook(BAD)
        >> says("one")
        << asked("user: one")
        >> answers(text("BADWORD"))
        << gets("start text[BADWORD] end_turn stop")
        << finished()
    )
    helper = book.fork()
    helper.observed = "no tools"
    (
        helper
        >> says("summarise")
        << asked("user: one", "assistant: BADWORD", "user: summarise")
        >> answers(text("It said BADWORD."))
        << gets("start text[It said BADWORD.] end_turn stop")
        << finished()
    )
    assert helper.logged == ["no-bad-word observed undelivered"]
    book >> says("two") << asked("user: one", "assistant: BADWORD", "user: two | REMINDER(no-bad-word)")
    book >> leaves() << aborted()


def test_a_match_in_an_answer_that_the_user_cut_short_is_still_reminded_of(playbook: Any) -> None:
    book = (
        playbook(BAD)
        >> says("one")
        << asked("user: one")
        >> answers(text("BADWORD and", stall(), "more"))
        << gets("start text[BADWORD and")
        >> leaves()
        << aborted()
    )
    book.agent.messages.append({"role": "assistant", "content": [{"type": "text", "text": "BADWORD and"}]})
    (
        book
        >> says("two")
        << asked("user: one", "assistant: BADWORD and", "user: two | REMINDER(no-bad-word)")
        >> answers(text("Good."))
        << gets("start text[Good.] end_turn stop")
        << finished()
    )
