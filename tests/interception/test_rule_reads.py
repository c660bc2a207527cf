"""Calls that read a rule are answered by the proxy, and the model goes on in the same response."""

from __future__ import annotations

from typing import Any

import pytest
from coding_agent import Agent, EchoStyle
from hypothesis import given, settings
from hypothesis import strategies as st
from playbook import (
    Playbook,
    aborted,
    answers,
    asked,
    finished,
    gets,
    goes_on,
    leaves,
    passes,
    refuses,
    replied,
    results,
    rule,
    says,
)
from strict_anthropic import stall, text, thinking, tool

BAD = rule("no-bad-word", "BADWORD")
BOOK = {"readable": {"db": "Never drop a column.", "empty": ""}}
READ = tool("Read", {"file_path": "rule://db"})
READ_LINE = 'Read {"file_path":"rule://db"}'
EDIT = tool("Edit", {"file_path": "a.py", "old_string": "a", "new_string": "b"})
EDIT_LINE = 'Edit {"file_path":"a.py","old_string":"a","new_string":"b"}'
EDIT_STREAMED = 'Edit[{"file_path": "a.py", "old_string": "a", "new_string": "b"}]'


def test_a_rule_is_read_and_the_answer_goes_on(playbook: Any) -> None:
    (
        playbook(**BOOK)
        >> says("go")
        << asked("user: go")
        >> answers(thinking("hm"), text("Let me see."), READ)
        << gets("start thinking[hm +signed] text[Let me see.]")
        << asked("user: go", f"assistant: (hm) | Let me see. | {READ_LINE}", "user: =Never drop a column.")
        >> answers(thinking("so"), text("I know."))
        << gets("thinking[so +signed] text[I know.] end_turn stop")
        << finished()
        >> says("more")
        << asked(
            "user: go",
            f"assistant: (hm) | Let me see. | {READ_LINE}",
            "user: =Never drop a column.",
            "assistant: (so) | I know.",
            "user: more",
        )
        >> answers(text("Bye."))
        << gets("start text[Bye.] end_turn stop")
        << finished()
    )


def test_an_unknown_rule_and_one_without_text_are_answered_too(playbook: Any) -> None:
    unknown = tool("Read", {"file_path": "rule://DB"})
    empty = tool("Bash", {"command": "cat rule://empty"})
    (
        playbook(**BOOK)
        >> says("go")
        << asked("user: go")
        >> answers(unknown, empty)
        << gets("start")
        << asked(
            "user: go",
            'assistant: Read {"file_path":"rule://DB"} | Bash {"command":"cat rule://empty"}',
            "user: =!There is no rule 'DB'. Rules: db, empty | =(this rule has no text)",
        )
        >> answers(text("Well."))
        << gets("text[Well.] end_turn stop")
        << finished()
    )


@pytest.mark.parametrize("calls", [(READ, EDIT), (EDIT, READ)], ids=["read first", "read last"])
def test_a_read_beside_a_call_of_the_client_waits_for_its_result(playbook: Any, calls: Any) -> None:
    line = " | ".join(READ_LINE if call is READ else EDIT_LINE for call in calls)
    (
        playbook(**BOOK)
        >> says("go")
        << asked("user: go")
        >> answers(*calls)
        << gets(f"start {EDIT_STREAMED} tool_use stop")
        << finished()
        >> results()
        << asked("user: go", f"assistant: {line}", "user: =Never drop a column. | =ok")
        >> answers(text("Done."))
        << gets("start text[Done.] end_turn stop")
        << finished()
    )


def test_text_of_nothing_but_white_space_before_a_read_is_not_sent_back(playbook: Any) -> None:
    (
        playbook(**BOOK, strict=True, agent=Agent("http://unused", stream=False))
        >> says("go")
        << asked("user: go")
        >> answers(text("\n\n"), READ)
        << asked("user: go", f"assistant: {READ_LINE}", "user: =Never drop a column.")
        >> answers(text("Done."))
        << replied(200, "Done. | end_turn")
        << finished()
    )


def test_a_call_is_held_only_until_its_path_is_known(playbook: Any) -> None:
    call = tool("Read", {"file_path": "src/a.py", "limit": 5}, midway=(stall(),))
    (
        playbook(**BOOK)
        >> says("go")
        << asked("user: go")
        >> answers(call)
        << gets('start Read[{"file_path": "src')
        >> goes_on()
        << gets('/a.py", "limit": 5}] tool_use stop')
        << finished()
    )


def test_a_client_that_hears_nothing_for_too_long_gets_the_call_that_was_held(playbook: Any) -> None:
    call = tool("Read", {"file_path": "rule://db", "limit": 5, "offset": 100000}, midway=(stall(),))
    book = (
        playbook(**BOOK, activity="content")
        >> says("go")
        << asked("user: go")
        >> answers(call)
        << gets("start")
        >> passes(239)
        << gets(" ".join(["<ping> <tick>"] * 23))
        >> passes(1)
        << gets('Read[{"file_path": "rule://db", "')
        >> goes_on()
        << gets('limit": 5, "offset": 100000}] tool_use stop')
        << finished()
    )
    assert book.noted == ["not_inspected held too long Read"]


def test_a_broken_rule_behind_a_read_takes_the_read_back(playbook: Any) -> None:
    bad = tool("Write", {"file_path": "a.py", "content": "BADWORD"})
    book = (
        playbook(BAD, **BOOK)
        >> says("go")
        << asked("user: go")
        >> answers(READ, bad)
        << gets("start")
        << aborted()
        << asked("user: go | INTERRUPT(no-bad-word)")
        >> answers(READ)
        << asked(
            "user: go | INTERRUPT(no-bad-word)", f"assistant: {READ_LINE}", "user: =Never drop a column."
        )
        >> answers(text("Good."))
        << gets("text[Good.] end_turn stop")
        << finished()
    )
    assert book.logged == ["no-bad-word interrupted clean"]


def test_an_interrupt_behind_a_read_keeps_what_was_read(playbook: Any) -> None:
    (
        playbook(BAD, **BOOK)
        >> says("go")
        << asked("user: go")
        >> answers(text("See: "), READ)
        << gets("start text[See: ]")
        << asked("user: go", f"assistant: See:  | {READ_LINE}", "user: =Never drop a column.")
        >> answers(text("now BADWORD"))
        << aborted()
        << gets("text[now ")
        << asked(
            "user: go",
            f"assistant: See:  | {READ_LINE}",
            "user: =Never drop a column.",
            "assistant: now ",
            "user: INTERRUPT(no-bad-word)",
        )
        >> answers(text("good."))
        << gets("] text[good.] end_turn stop")
        << finished()
    )


def test_a_read_that_the_kept_violation_stands_beside_is_left_out(playbook: Any) -> None:
    bad = tool("Write", {"file_path": "a.py", "content": "BADWORD"})
    (
        playbook(BAD, **BOOK, context_mode="keep")
        >> says("go")
        << asked("user: go")
        >> answers(READ, bad)
        << gets("start")
        << aborted()
        << asked(
            "user: go",
            'assistant: Write {"file_path":"a.py","content":"BADWORD"}',
            "user: =!This call was not executed: it was stopped because it broke a rule. "
            "| INTERRUPT(no-bad-word)",
        )
        >> answers(text("Good."))
        << gets("text[Good.] end_turn stop")
        << finished()
    )


def test_when_upstream_refuses_to_go_on_behind_shown_text_the_answer_ends_there(playbook: Any) -> None:
    (
        playbook(**BOOK)
        >> says("go")
        << asked("user: go")
        >> answers(text("See."), READ)
        << gets("start text[See.]")
        << asked("user: go", f"assistant: See. | {READ_LINE}", "user: =Never drop a column.")
        >> refuses(529, "busy", kind="overloaded_error")
        << gets("end_turn stop")
        << finished()
    )


def test_when_upstream_refuses_to_go_on_and_nothing_was_shown_its_error_is_the_clients(playbook: Any) -> None:
    (
        playbook(**BOOK, agent=Agent("http://unused", stream=False))
        >> says("go")
        << asked("user: go")
        >> answers(text("See."), READ)
        << asked("user: go", f"assistant: See. | {READ_LINE}", "user: =Never drop a column.")
        >> refuses(529, "busy", kind="overloaded_error")
        << replied(529, "overloaded_error: busy")
        << finished()
    )


def test_the_ninth_read_is_refused_and_a_tenth_goes_to_the_client(playbook: Any) -> None:
    book = playbook(**BOOK) >> says("go") << asked("user: go")
    lines = ["user: go"]
    for number in range(1, 10):
        book = book >> answers(tool("Read", {"file_path": "rule://db"}))
        book = book << gets("start") if number == 1 else book
        told = (
            "=Never drop a column."
            if number < 9
            else ("=!Not read: this answer has read 8 rules already. Go on with what you have.")
        )
        lines += [f"assistant: {READ_LINE}", f"user: {told}"]
        book = book << asked(*lines)
    last = tool("Read", {"file_path": "rule://db"})
    book >> answers(last) << gets('Read[{"file_path": "rule://db"}] tool_use stop') << finished()


def test_the_client_may_leave_while_a_rule_is_read(playbook: Any) -> None:
    (
        playbook(**BOOK)
        >> says("go")
        << asked("user: go")
        >> answers(text("See."), READ)
        << gets("start text[See.]")
        << asked("user: go", f"assistant: See. | {READ_LINE}", "user: =Never drop a column.")
        >> leaves()
        << aborted()
    )


def test_a_prompt_is_added_once_and_stays(playbook: Any) -> None:
    book = playbook(prompt="<generic-rules>") >> says("go") << asked("user: go")
    book = book >> answers(text("Hi.")) << gets("start text[Hi.] end_turn stop") << finished()
    book.prompt = "<others>"
    book = book >> says("more") << asked("user: go", "assistant: Hi.", "user: more")
    book >> answers(text("Bye.")) << gets("start text[Bye.] end_turn stop") << finished()
    assert [request["system"][-1]["text"] for request in book.requests] == ["<generic-rules>"] * 2


def test_a_refused_prompt_is_left_out_for_good(playbook: Any) -> None:
    book = playbook(prompt="<generic-rules>") >> says("go") << asked("user: go")
    book = book >> refuses(400, "too long", kind="invalid_request_error")
    book = book << asked("user: go") >> answers(text("Hi.")) << gets("start text[Hi.] end_turn stop")
    book = book << finished() >> says("more") << asked("user: go", "assistant: Hi.", "user: more")
    book >> answers(text("Bye.")) << gets("start text[Bye.] end_turn stop") << finished()
    assert [request["system"] for request in book.requests[1:]] == ["You write code."] * 2
    assert book.noted == ["request_refused reminded"]


@given(st.integers(1, 40), st.booleans())
@settings(max_examples=25)
def test_how_the_answer_is_cut_changes_nothing(chunk: int, mixed: bool) -> None:
    book = Playbook(BAD, agent=Agent("http://unused", style=EchoStyle(cache_last=False)), **BOOK)
    steps = (text("Let me see."), READ, *([EDIT] if mixed else []))
    book = book >> says("go") << asked("user: go") >> answers(*steps, chunk=chunk)
    shown = f"start text[Let me see.] {EDIT_STREAMED} tool_use stop" if mixed else "start text[Let me see.]"
    book = book << gets(shown)
    said = f"assistant: Let me see. | {READ_LINE}"
    if mixed:
        book = book << finished() >> results()
        book = book << asked("user: go", f"{said} | {EDIT_LINE}", "user: =Never drop a column. | =ok")
    else:
        book = book << asked("user: go", said, "user: =Never drop a column.")
    book >> answers(text("Bye."), chunk=chunk)
