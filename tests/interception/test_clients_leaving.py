"""The client closes its connection, at any point; and what its next attempt at the same request inherits."""

from __future__ import annotations

from typing import Any

from playbook import (
    aborted,
    answers,
    asked,
    asks_again,
    finished,
    gets,
    leaves,
    nothing,
    replied,
    rule,
    says,
)
from strict_anthropic import stall, text, thinking, tool

from ttsr_proxy.config import BudgetSettings

BAD = rule("no-bad-word", "BADWORD")
WRITE = {"file_path": "a.py", "content": "x = 1"}


def test_leaving_before_an_answer_leaves_no_record(playbook: Any) -> None:
    book = playbook(BAD) >> says("go") << asked("user: go") >> leaves() << aborted()
    assert not book.store.records
    assert len(book.store.unfinished) == 1


def test_leaving_within_the_answer_remembers_what_the_client_has(playbook: Any) -> None:
    book = playbook(BAD) >> says("go") << asked("user: go")
    (
        book
        >> answers(thinking("hm"), text("Hello, ", "wor", stall(), "ld"))
        << gets("start thinking[hm +signed] text[Hello, wor")
    )
    book >> leaves() << aborted()
    (record,) = book.store.records.values()
    assert [block.text for block in record.given] == ["hm", "Hello, wor"]
    assert [block.value["type"] for block in record.produced] == ["thinking", "text"]


def test_leaving_while_a_retry_is_awaited_says_so_in_the_log(playbook: Any) -> None:
    book = playbook(BAD) >> says("go") << asked("user: go") >> answers(text("Hello.", "BADWORD"))
    book << gets("start text[Hello.") << aborted()
    book << asked("user: go", "assistant: Hello.", "user: INTERRUPT(no-bad-word)")
    book >> leaves() << aborted()
    assert [(entry.outcome, entry.detail) for entry in book.log] == [("undelivered", "the client left")]


def test_leaving_after_the_terminal_event_is_no_abort(playbook: Any) -> None:
    """Most agents close as soon as they have it, before upstream does."""
    book = playbook(BAD) >> says("go") << asked("user: go") >> answers(text("Hello."), lingers=True)
    book << gets("start text[Hello.] end_turn stop") >> leaves() << aborted()
    assert not book.store.unfinished
    (record,) = book.store.records.values()
    assert record.final


def test_leaving_while_a_call_is_held_remembers_what_came_before_it(playbook: Any) -> None:
    book = playbook(BAD) >> says("go") << asked("user: go")
    book >> answers(text("I write."), tool("Write", WRITE, midway=(stall(),))) << gets("start text[I write.]")
    book >> leaves() << aborted() << nothing()
    (record,) = book.store.records.values()
    assert [block.text for block in record.given] == ["I write."]


def test_an_answer_that_the_user_cut_short_is_recognised(playbook: Any) -> None:
    """Hidden turns before it are restored, whatever part of the answer the client kept."""
    book = playbook(BAD) >> says("go") << asked("user: go") >> answers(text("Hello, ", "BADWORD"))
    book << gets("start text[Hello, ") << aborted()
    book << asked("user: go", "assistant: Hello, ", "user: INTERRUPT(no-bad-word)")
    book >> answers(text("wide ", "world", stall(), "!")) << gets("] text[wide world")
    book >> leaves() << aborted()
    kept = [{"type": "text", "text": "Hello, "}, {"type": "text", "text": "wide wor"}]
    book.agent.messages.append({"role": "assistant", "content": kept})
    (
        book
        >> says("stop")
        << asked(
            "user: go",
            "assistant: Hello, ",
            "user: INTERRUPT(no-bad-word)",
            "assistant: wide world",
            "user: stop",
        )
        >> answers(text("Stopped."))
        << gets("start text[Stopped.] end_turn stop")
        << finished()
    )


# The client's retry.


def test_the_same_request_again_inherits_the_budget(playbook: Any) -> None:
    book = playbook(BAD)
    for happening in (says("go"), asks_again()):
        book >> happening << asked("user: go") >> answers(text("BADWORD")) << gets("start") << aborted()
        book << asked("user: go | INTERRUPT(no-bad-word)") >> leaves() << aborted()
    (
        book
        >> asks_again()
        << asked("user: go")
        >> answers(text("BADWORD"))
        << gets("start text[BADWORD] end_turn stop")
        << finished()
    )
    assert book.logged[-1] == "no-bad-word exhausted violated again"


def test_it_is_the_same_request_with_or_without_a_stream(playbook: Any) -> None:
    book = playbook(BAD, budget=BudgetSettings(per_response=1))
    book >> says("go") << asked("user: go") >> answers(text("BADWORD")) << gets("start") << aborted()
    book << asked("user: go | INTERRUPT(no-bad-word)") >> leaves() << aborted()
    book.agent.stream = False
    book >> asks_again() << asked("user: go") >> answers(text("BADWORD"))
    book << replied(200, "BADWORD | end_turn") << finished()


def test_after_ten_minutes_it_is_a_new_request(playbook: Any) -> None:
    book = playbook(BAD, budget=BudgetSettings(per_response=1))
    book >> says("go") << asked("user: go") >> answers(text("BADWORD")) << gets("start") << aborted()
    book << asked("user: go | INTERRUPT(no-bad-word)") >> leaves() << aborted()
    book.now += 601
    book >> asks_again() << asked("user: go") >> answers(text("BADWORD")) << gets("start") << aborted()
    book << asked("user: go | INTERRUPT(no-bad-word)")


def test_another_request_inherits_nothing(playbook: Any) -> None:
    book = playbook(BAD, budget=BudgetSettings(per_response=1))
    book >> says("go") << asked("user: go") >> answers(text("BADWORD")) << gets("start") << aborted()
    book << asked("user: go | INTERRUPT(no-bad-word)") >> leaves() << aborted()
    other = book.fresh()
    other >> says("stay") << asked("user: stay") >> answers(text("BADWORD")) << gets("start") << aborted()
    other << asked("user: stay | INTERRUPT(no-bad-word)")
