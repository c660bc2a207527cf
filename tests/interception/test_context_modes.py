"""`discard` leaves the violating output out of the retry, `keep` shows it to the model."""

from __future__ import annotations

from typing import Any

from playbook import aborted, answers, asked, finished, gets, replied, results, rule, says
from strict_anthropic import text, thinking, tool

KEPT = rule("no-bad-word", "BADWORD", context_mode="keep")
NOT_EXECUTED = "=!This call was not executed: it was stopped because it broke a rule."
WRITE = {"file_path": "a.py", "content": "x = 1"}
BAD_WRITE = {"file_path": "a.py", "content": "BADWORD"}
WRITTEN = 'Write {"file_path":"a.py","content":"x = 1"}'
BAD_WRITTEN = 'Write {"file_path":"a.py","content":"BADWORD"}'
STREAMED = 'Write[{"file_path": "a.py", "content": "x = 1"}]'


def test_keep_shows_partial_text_as_it_was(playbook: Any) -> None:
    (
        playbook(KEPT)
        >> says("go")
        << asked("user: go")
        >> answers(thinking("hm"), text("Hello, ", "BADWORD", " and more"))
        << gets("start thinking[hm +signed] text[Hello, ")
        << aborted()
        << asked("user: go", "assistant: (hm) | Hello, BADWORD", "user: INTERRUPT(no-bad-word)")
        >> answers(text("world."))
        << gets("] text[world.] end_turn stop")
        << finished()
        >> says("more")
        << asked(
            "user: go",
            "assistant: (hm) | Hello, BADWORD",
            "user: INTERRUPT(no-bad-word)",
            "assistant: world.",
            "user: more",
        )
        >> answers(text("Yes."))
        << gets("start text[Yes.] end_turn stop")
        << finished()
    )


def test_keep_shows_withheld_text(playbook: Any) -> None:
    (
        playbook(KEPT)
        >> says("go")
        << asked("user: go")
        >> answers(text("BADWORD"))
        << gets("start")
        << aborted()
        << asked("user: go", "assistant: BADWORD", "user: INTERRUPT(no-bad-word)")
        >> answers(text("Good."))
        << gets("text[Good.] end_turn stop")
        << finished()
        >> says("more")
        << asked(
            "user: go", "assistant: BADWORD", "user: INTERRUPT(no-bad-word)", "assistant: Good.", "user: more"
        )
    )


def test_keep_shows_a_withheld_call_with_an_error_for_a_result(playbook: Any) -> None:
    (
        playbook(KEPT)
        >> says("go")
        << asked("user: go")
        >> answers(thinking("hm"), tool("Write", BAD_WRITE))
        << gets("start thinking[hm +signed]")
        << aborted()
        << asked(
            "user: go",
            f"assistant: (hm) | {BAD_WRITTEN}",
            f"user: {NOT_EXECUTED} | INTERRUPT(no-bad-word)",
        )
        >> answers(tool("Write", WRITE))
        << gets(f"{STREAMED} tool_use stop")
        << finished()
        >> results()
        << asked(
            "user: go",
            f"assistant: (hm) | {BAD_WRITTEN}",
            f"user: {NOT_EXECUTED} | INTERRUPT(no-bad-word)",
            f"assistant: {WRITTEN}",
            "user: =ok",
        )
    )


def test_a_kept_call_that_was_cut_off_is_closed(playbook: Any) -> None:
    book = playbook(KEPT) >> says("go") << asked("user: go")
    book >> answers(tool("Write", {"file_path": "a.py", "content": "BADWORD and more"}), chunk=15)
    book << gets("start") << aborted()
    closed = 'Write {"file_path":"a.py","content":"BADWORD"}'
    book << asked("user: go", f"assistant: {closed}", f"user: {NOT_EXECUTED} | INTERRUPT(no-bad-word)")


def test_unsigned_thinking_is_never_kept(playbook: Any) -> None:
    book = playbook(KEPT) >> says("go") << asked("user: go") >> answers(thinking("BADWORD"))
    book << gets("start") << aborted() << asked("user: go | INTERRUPT(no-bad-word)")


def test_keep_needs_every_rule_that_interrupts(playbook: Any) -> None:
    book = playbook(KEPT, rule("no-word", "WORD")) >> says("go") << asked("user: go")
    book >> answers(text("BADWORD")) << gets("start") << aborted()
    book << asked("user: go | INTERRUPT(no-bad-word, no-word)")


def test_the_setting_is_the_default_of_all_rules(playbook: Any) -> None:
    book = playbook(rule("no-bad-word", "BADWORD"), context_mode="keep") >> says("go") << asked("user: go")
    book >> answers(text("BADWORD")) << gets("start") << aborted()
    book << asked("user: go", "assistant: BADWORD", "user: INTERRUPT(no-bad-word)")


def test_a_whole_answer_keeps_its_violating_block(playbook: Any) -> None:
    book = playbook(KEPT)
    book.agent.stream = False
    book >> says("go") << asked("user: go") >> answers(tool("Write", BAD_WRITE)) << aborted()
    book << asked("user: go", f"assistant: {BAD_WRITTEN}", f"user: {NOT_EXECUTED} | INTERRUPT(no-bad-word)")
    book >> answers(text("Good.")) << replied(200, "Good. | end_turn") << finished()


def test_a_second_violation_replaces_what_was_kept(playbook: Any) -> None:
    book = playbook(KEPT) >> says("go") << asked("user: go") >> answers(tool("Write", BAD_WRITE))
    kept = (f"assistant: {BAD_WRITTEN}", f"user: {NOT_EXECUTED} | INTERRUPT(no-bad-word)")
    book << gets("start") << aborted() << asked("user: go", *kept)
    book >> answers(text("BADWORD")) << aborted()
    book << asked("user: go", "assistant: BADWORD", "user: INTERRUPT(no-bad-word)")
