"""The three moves, by what the client already has when a rule is broken."""

from __future__ import annotations

from typing import Any

from playbook import aborted, answers, asked, finished, gets, results, rule, says
from strict_anthropic import redacted, server_tool, text, thinking, tool

BAD = rule("no-bad-word", "BADWORD")
WORSE = rule("no-worse-word", "WORSEWORD")
WRITE = {"file_path": "a.py", "content": "x = 1"}
BAD_WRITE = {"file_path": "a.py", "content": "BADWORD"}
WRITTEN = 'Write {"file_path":"a.py","content":"x = 1"}'
STREAMED = 'Write[{"file_path": "a.py", "content": "x = 1"}]'


# Restart: no text and no call was delivered.


def test_a_violation_before_anything_was_delivered_asks_again_with_the_reminder(playbook: Any) -> None:
    book = (
        playbook(BAD)
        >> says("go")
        << asked("user: go")
        >> answers(text("BADWORD first"))
        << gets("start")
        << aborted()
        << asked("user: go | INTERRUPT(no-bad-word)")
        >> answers(text("Good."))
        << gets("text[Good.] end_turn stop")
        << finished()
    )
    assert book.logged == ["no-bad-word interrupted clean"]
    assert book.log[0].correction == "Good."


def test_thinking_that_was_delivered_from_a_replaced_attempt_is_absent_from_the_retry(playbook: Any) -> None:
    (
        playbook(BAD)
        >> says("go")
        << asked("user: go")
        >> answers(thinking("hm"), redacted(), text("BADWORD"))
        << gets("start thinking[hm +signed] redacted_thinking[]")
        << aborted()
        << asked("user: go | INTERRUPT(no-bad-word)")
        >> answers(thinking("better"), text("Good."))
        << gets("thinking[better +signed] text[Good.] end_turn stop")
        << finished()
        >> says("more")
        << asked("user: go | INTERRUPT(no-bad-word)", "assistant: (better) | Good.", "user: more")
        >> answers(text("Yes."))
        << gets("start text[Yes.] end_turn stop")
        << finished()
    )


def test_text_that_was_cut_is_closed_when_the_retry_says_nothing(playbook: Any) -> None:
    (
        playbook(BAD)
        >> says("go")
        << asked("user: go")
        >> answers(text("Hello there. BADWORD"))
        << gets("start")
        << aborted()
        << gets("text[Hello there. ")
        << asked("user: go", "assistant: Hello there. ", "user: INTERRUPT(no-bad-word)")
        >> answers()
        << gets("] end_turn stop")
        << finished()
    )


def test_a_first_tool_call_that_breaks_a_rule_is_withheld_whole(playbook: Any) -> None:
    book = (
        playbook(BAD)
        >> says("go")
        << asked("user: go")
        >> answers(tool("Write", BAD_WRITE))
        << gets("start")
        << aborted()
        << asked("user: go | INTERRUPT(no-bad-word)")
        >> answers(tool("Write", WRITE))
        << gets(f"{STREAMED} tool_use stop")
        << finished()
        >> results()
        << asked("user: go | INTERRUPT(no-bad-word)", f"assistant: {WRITTEN}", "user: =ok")
        >> answers(text("Done."))
        << gets("start text[Done.] end_turn stop")
        << finished()
    )
    assert book.log[0].paths == ("a.py",)
    assert book.log[0].tool == "Write"


def test_a_retry_that_breaks_the_rule_again_replaces_the_reminder(playbook: Any) -> None:
    book = (
        playbook(BAD, WORSE)
        >> says("go")
        << asked("user: go")
        >> answers(text("BADWORD"))
        << gets("start")
        << aborted()
        << asked("user: go | INTERRUPT(no-bad-word)")
        >> answers(text("BADWORD again"))
        << aborted()
        << asked("user: go | INTERRUPT(no-bad-word)")
        >> answers(text("WORSEWORD"))
        << aborted()
        << asked("user: go | INTERRUPT(no-bad-word, no-worse-word)")
        >> answers(text("Good."))
        << gets("text[Good.] end_turn stop")
        << finished()
    )
    assert "broken 2 times" in book.requests[-2]["messages"][0]["content"][-1]["text"]
    assert book.logged == [
        "no-bad-word interrupted violated again",
        "no-bad-word interrupted clean",
        "no-worse-word interrupted clean",
    ]


def test_rules_that_match_with_the_same_character_interrupt_together(playbook: Any) -> None:
    (
        playbook(BAD, rule("no-word", "WORD"))
        >> says("go")
        << asked("user: go")
        >> answers(text("A ", "BADWORD"))
        << gets("start text[A ")
        << aborted()
        << asked("user: go", "assistant: A ", "user: INTERRUPT(no-bad-word, no-word)")
        >> answers(text("good one."))
        << gets("] text[good one.] end_turn stop")
        << finished()
    )


def test_of_two_matches_the_one_that_ends_first_interrupts(playbook: Any) -> None:
    """Later output would never have come, however the stream was cut."""
    book = (
        playbook(BAD, WORSE)
        >> says("go")
        << asked("user: go")
        >> answers(text("A BADWORD and a WORSEWORD"))
        << gets("start")
        << aborted()
        << gets("text[A ")
        << asked("user: go", "assistant: A ", "user: INTERRUPT(no-bad-word)")
        >> answers(text("good one."))
        << gets("] text[good one.] end_turn stop")
        << finished()
    )
    assert book.logged == ["no-bad-word interrupted clean"]


# Continue: text was delivered.


def test_text_before_the_violation_is_delivered_and_the_retry_goes_on_from_it(playbook: Any) -> None:
    (
        playbook(BAD)
        >> says("go")
        << asked("user: go")
        >> answers(thinking("hm"), text("Hello, ", "BADWORD", " and more"))
        << gets("start thinking[hm +signed] text[Hello, ")
        << aborted()
        << asked("user: go", "assistant: (hm) | Hello, ", "user: INTERRUPT(no-bad-word)")
        >> answers(thinking("again"), text("world."), tool("Write", WRITE))
        << gets(f"] thinking[again +signed] text[world.] {STREAMED} tool_use stop")
        << finished()
        >> results()
        << asked(
            "user: go",
            "assistant: (hm) | Hello, ",
            "user: INTERRUPT(no-bad-word)",
            f"assistant: (again) | world. | {WRITTEN}",
            "user: =ok",
        )
        >> answers(text("Done."))
        << gets("start text[Done.] end_turn stop")
        << finished()
    )


def test_a_call_that_breaks_a_rule_after_text_was_shown_continues(playbook: Any) -> None:
    (
        playbook(BAD)
        >> says("go")
        << asked("user: go")
        >> answers(text("I write it."), tool("Write", BAD_WRITE))
        << gets("start text[I write it.]")
        << aborted()
        << asked("user: go", "assistant: I write it.", "user: INTERRUPT(no-bad-word)")
        >> answers(tool("Write", WRITE))
        << gets(f"{STREAMED} tool_use stop")
        << finished()
    )


def test_the_work_of_a_server_tool_is_kept_like_text(playbook: Any) -> None:
    (
        playbook(BAD)
        >> says("go")
        << asked("user: go")
        >> answers(server_tool("web_search", {"query": "q"}, []), text("BADWORD"))
        << gets("start web_search[] web_search_tool_result[]")
        << aborted()
        << asked(
            "user: go",
            "assistant: <server_tool_use> | <web_search_tool_result>",
            "user: INTERRUPT(no-bad-word)",
        )
        >> answers(text("Good."))
        << gets("text[Good.] end_turn stop")
        << finished()
    )


def test_a_second_interrupt_before_more_was_delivered_replaces_the_reminder_at_its_place(
    playbook: Any,
) -> None:
    (
        playbook(BAD, WORSE)
        >> says("go")
        << asked("user: go")
        >> answers(text("Hello, ", "BADWORD"))
        << gets("start text[Hello, ")
        << aborted()
        << asked("user: go", "assistant: Hello, ", "user: INTERRUPT(no-bad-word)")
        >> answers(text("WORSEWORD"))
        << aborted()
        << asked("user: go", "assistant: Hello, ", "user: INTERRUPT(no-bad-word, no-worse-word)")
        >> answers(text("world."))
        << gets("] text[world.] end_turn stop")
        << finished()
    )


def test_places_before_delivered_text_are_frozen(playbook: Any) -> None:
    (
        playbook(BAD, WORSE)
        >> says("go")
        << asked("user: go")
        >> answers(text("One, ", "BADWORD"))
        << gets("start text[One, ")
        << aborted()
        << asked("user: go", "assistant: One, ", "user: INTERRUPT(no-bad-word)")
        >> answers(text("two, ", "WORSEWORD"))
        << gets("] text[two, ")
        << aborted()
        << asked(
            "user: go",
            "assistant: One, ",
            "user: INTERRUPT(no-bad-word)",
            "assistant: two, ",
            "user: INTERRUPT(no-worse-word)",
        )
        >> answers(text("three."))
        << gets("] text[three.] end_turn stop")
        << finished()
    )


def test_a_restart_is_frozen_once_its_retry_delivered_text(playbook: Any) -> None:
    (
        playbook(BAD, WORSE)
        >> says("go")
        << asked("user: go")
        >> answers(text("BADWORD"))
        << gets("start")
        << aborted()
        << asked("user: go | INTERRUPT(no-bad-word)")
        >> answers(text("One, ", "WORSEWORD"))
        << gets("text[One, ")
        << aborted()
        << asked("user: go | INTERRUPT(no-bad-word)", "assistant: One, ", "user: INTERRUPT(no-worse-word)")
        >> answers(text("two."))
        << gets("] text[two.] end_turn stop")
        << finished()
    )


def test_the_token_cap_of_a_continuation_is_reduced_by_what_was_delivered(playbook: Any) -> None:
    shown = "shown " * 100
    book = (
        playbook(BAD)
        >> says("go")
        << asked("user: go")
        >> answers(text(shown, "BADWORD"))
        << gets(f"start text[{shown}")
        << aborted()
        << asked("user: go", f"assistant: {shown}", "user: INTERRUPT(no-bad-word)")
        >> answers(text("End."))
        << gets("] text[End.] end_turn stop")
        << finished()
    )
    assert [request["max_tokens"] for request in book.requests] == [8000, 8000 - len(shown) // 4]


# Truncate: a call was delivered.


def test_after_a_delivered_call_the_response_ends_with_it(playbook: Any) -> None:
    book = (
        playbook(BAD)
        >> says("go")
        << asked("user: go")
        >> answers(thinking("hm"), tool("Write", WRITE), tool("Write", BAD_WRITE))
        << gets(f"start thinking[hm +signed] {STREAMED}")
        << aborted()
        << gets("tool_use stop")
        << finished()
    )
    assert book.logged == ["no-bad-word truncated pending"]
    (
        book
        >> results()
        << asked("user: go", f"assistant: (hm) | {WRITTEN}", "user: =ok | INTERRUPT(no-bad-word)")
        >> answers(text("Fine."))
        << gets("start text[Fine.] end_turn stop")
        << finished()
    )
    assert book.logged == ["no-bad-word truncated clean"]


def test_what_a_match_at_the_end_cuts_from_a_complete_block_is_not_said_to_be_delivered(
    playbook: Any,
) -> None:
    (
        playbook(rule("no-trailing-word", "WORD$"))
        >> says("go")
        << asked("user: go")
        >> answers(text("A ", "last ", "WORD"))
        << gets("start text[A last ")
        << aborted()
        << asked("user: go", "assistant: A last ", "user: INTERRUPT(no-trailing-word)")
        >> answers(text("line."))
        << gets("] text[line.] end_turn stop")
        << finished()
    )
