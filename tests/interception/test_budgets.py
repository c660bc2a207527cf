"""How often a response and its conversation are interrupted, and what follows when that is spent."""

from __future__ import annotations

from typing import Any

from playbook import (
    aborted,
    answers,
    asked,
    asks_again,
    finished,
    gets,
    nothing,
    refuses,
    replied,
    rule,
    says,
)
from strict_anthropic import text, thinking, tool

from ttsr_proxy.config import BudgetSettings

BAD = rule("no-bad-word", "BADWORD")
WORSE = rule("no-worse-word", "WORSEWORD")
BLOCKED = (
    "invalid_request_error: ttsr-proxy stopped this answer: it kept breaking the rule 'no-bad-word', "
    "whose budget is spent"
)


def test_each_rule_interrupts_a_response_twice_and_then_the_last_attempt_is_delivered(playbook: Any) -> None:
    book = (
        playbook(BAD)
        >> says("go")
        << asked("user: go")
        >> answers(text("BADWORD 1"))
        << gets("start")
        << aborted()
        << asked("user: go | INTERRUPT(no-bad-word)")
        >> answers(text("BADWORD 2"))
        << aborted()
        << asked("user: go | INTERRUPT(no-bad-word)")
        >> answers(text("BADWORD 3"))
        << gets("text[BADWORD 3] end_turn stop")
        << finished()
    )
    assert book.logged == [
        "no-bad-word interrupted violated again",
        "no-bad-word interrupted violated again",
        "no-bad-word exhausted violated again",
    ]


def test_a_rule_may_have_a_budget_of_its_own(playbook: Any) -> None:
    book = (
        playbook(rule("no-bad-word", "BADWORD", max_interrupts=0))
        >> says("go")
        << asked("user: go")
        >> answers(text("BADWORD"))
        << gets("start text[BADWORD] end_turn stop")
        << finished()
    )
    assert book.logged == ["no-bad-word exhausted violated again"]


def test_one_spent_rule_leaves_the_others_their_budgets(playbook: Any) -> None:
    book = (
        playbook(rule("no-bad-word", "BADWORD", max_interrupts=1), WORSE)
        >> says("go")
        << asked("user: go")
        >> answers(text("BADWORD"))
        << gets("start")
        << aborted()
        << asked("user: go | INTERRUPT(no-bad-word)")
        >> answers(text("BADWORD, ", "WORSEWORD"))
        << gets("text[BADWORD, ")
        << aborted()
        << asked(
            "user: go | INTERRUPT(no-bad-word)", "assistant: BADWORD, ", "user: INTERRUPT(no-worse-word)"
        )
        >> answers(text("good."))
        << gets("] text[good.] end_turn stop")
        << finished()
    )
    assert book.logged == [
        "no-bad-word interrupted violated again",
        "no-bad-word exhausted violated again",
        "no-worse-word interrupted clean",
    ]


def test_a_response_is_interrupted_four_times_by_all_rules_together(playbook: Any) -> None:
    rules = [rule(f"no-{n}", f"WORD{n}") for n in range(5)]
    book = playbook(*rules) >> says("go") << asked("user: go") >> answers(text("WORD0")) << gets("start")
    for n in range(4):
        names = ", ".join(f"no-{m}" for m in range(n + 1))
        book << aborted() << asked(f"user: go | INTERRUPT({names})")
        book >> answers(text(f"WORD{n + 1}"))
    book << gets("text[WORD4] end_turn stop") << finished()
    assert book.logged[-1] == "no-4 exhausted violated again"


def test_a_conversation_has_a_budget_too(playbook: Any) -> None:
    book = (
        playbook(BAD, repeat_mode="always", budget=BudgetSettings(per_conversation=2))
        >> says("one")
        << asked("user: one")
        >> answers(text("BADWORD"))
        << gets("start")
        << aborted()
        << asked("user: one | INTERRUPT(no-bad-word)")
        >> answers(text("1"))
        << gets("text[1] end_turn stop")
        << finished()
        >> says("two")
        << asked("user: one | INTERRUPT(no-bad-word)", "assistant: 1", "user: two")
        >> answers(text("BADWORD"))
        << gets("start")
        << aborted()
        << asked("user: one | INTERRUPT(no-bad-word)", "assistant: 1", "user: two | INTERRUPT(no-bad-word)")
        >> answers(text("2"))
        << gets("text[2] end_turn stop")
        << finished()
        >> says("three")
        << asked(
            "user: one | INTERRUPT(no-bad-word)",
            "assistant: 1",
            "user: two | INTERRUPT(no-bad-word)",
            "assistant: 2",
            "user: three",
        )
        >> answers(text("BADWORD"))
        << gets("start text[BADWORD] end_turn stop")
        << finished()
    )
    assert book.logged[-1] == "no-bad-word exhausted violated again"


# onExhausted: block.


def test_unsent_a_blocked_answer_is_a_400_that_names_the_rule(playbook: Any) -> None:
    book = playbook(BAD, budget=BudgetSettings(per_rule=0, on_exhausted="block"))
    book.agent.stream = False
    (
        book
        >> says("go")
        << asked("user: go")
        >> answers(text("BADWORD"))
        << aborted()
        << replied(400, BLOCKED)
        << finished()
    )
    assert book.logged == ["no-bad-word blocked undelivered"]


def test_opened_a_blocked_answer_is_a_stream_error(playbook: Any) -> None:
    (
        playbook(BAD, budget=BudgetSettings(per_rule=1, on_exhausted="block"))
        >> says("go")
        << asked("user: go")
        >> answers(text("BADWORD"))
        << gets("start")
        << aborted()
        << asked("user: go | INTERRUPT(no-bad-word)")
        >> answers(text("BADWORD"))
        << aborted()
        << gets("<error invalid_request_error>")
        << finished()
    )


def test_after_content_a_blocked_answer_ends_cleanly(playbook: Any) -> None:
    book = (
        playbook(BAD, budget=BudgetSettings(per_rule=0, on_exhausted="block"))
        >> says("go")
        << asked("user: go")
        >> answers(text("I write."), tool("Write", {"file_path": "a", "content": "BADWORD"}))
        << gets("start text[I write.]")
        << aborted()
        << gets("end_turn stop")
        << finished()
        >> says("and?")
        << asked("user: go", "assistant: I write.", "user: and?")
        >> answers(text("Yes."))
        << gets("start text[Yes.] end_turn stop")
        << finished()
    )
    assert book.logged == ["no-bad-word blocked undelivered"]


def test_a_rule_may_block_where_others_pass(playbook: Any) -> None:
    (
        playbook(
            rule("no-bad-word", "BADWORD", max_interrupts=0, on_exhausted="block"),
            rule("no-worse-word", "WORSEWORD", max_interrupts=0),
        )
        >> says("go")
        << asked("user: go")
        >> answers(text("WORSEWORD, "), text("BADWORD"))
        << gets("start text[WORSEWORD, ]")
        << aborted()
        << gets("end_turn stop")
        << finished()
    )


def test_a_blocked_request_that_is_sent_again_is_refused_without_asking_upstream(playbook: Any) -> None:
    book = playbook(BAD, budget=BudgetSettings(per_rule=0, on_exhausted="block"))
    (
        book
        >> says("go")
        << asked("user: go")
        >> answers(text("BADWORD"))
        << gets("start")
        << aborted()
        << gets("<error invalid_request_error>")
        << finished()
    )
    book.agent.stream = False
    book >> asks_again() << replied(400, BLOCKED) << finished() << nothing()


def test_a_failed_retry_gives_its_interrupt_back(playbook: Any) -> None:
    book = playbook(BAD, budget=BudgetSettings(per_response=1))
    for happening in (says("go"), asks_again(), asks_again()):
        book >> happening << asked("user: go") >> answers(thinking("hm"), text("BADWORD"))
        book << gets("start thinking[hm +signed]") << aborted()
        book << asked("user: go | INTERRUPT(no-bad-word)") >> refuses(500, kind="api_error")
        book << gets("end_turn stop") << finished()
        book.agent.messages = book.agent.messages[:1]
    assert book.logged == ["no-bad-word interrupted failed"] * 3
