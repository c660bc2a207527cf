"""The repeat policy, as the reference implementation answers and on chains of records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playbook import Playbook, aborted, answers, asked, finished, gets, rule, says
from strict_anthropic import text

from ttsr_proxy.config import TtsrSettings
from ttsr_proxy.interception.repeat import may_fire, responses_since
from ttsr_proxy.sessions.record import ResponseRecord

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "conformance" / "repeat.jsonl").read_text().splitlines()
]


def record(*reminded: str) -> ResponseRecord:
    return ResponseRecord(
        id="r",
        parent=None,
        tenant="t",
        project="p",
        conversation="c",
        created=0.0,
        turn=0,
        anchors=(),
        reminded=reminded,
    )


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_the_policy_answers_as_the_reference_does(case: dict[str, Any]) -> None:
    """`m` is a reminder in the response under way, `t` its end, `r` one that was restored with a session."""
    settings = TtsrSettings(
        repeat_mode=case["settings"]["repeatMode"], repeat_gap=case["settings"]["repeatGap"]
    )
    watched = rule("watched", "x")
    chain: list[ResponseRecord] = []
    reminded = False
    hits: list[bool | None] = []
    for op in case["ops"]:
        hit = None
        match op:
            case "c":
                since = 0 if reminded else responses_since("watched", chain)
                hit = may_fire(watched, since, settings)
            case "m" | "r":
                reminded = True
            case "t":
                chain.append(record("watched") if reminded else record())
                reminded = False
        hits.append(hit)
    assert hits == case["expect"]["hits"]


def test_the_gap_counts_responses_after_the_last_reminder() -> None:
    chain = [record("a"), record(), record("b"), record()]
    assert responses_since("a", chain) == 4
    assert responses_since("b", chain) == 2
    assert responses_since("c", chain) is None


def interrupted(book: Playbook, words: str, *before: str) -> Playbook:
    """The user says something, and the first answer to it breaks the rule."""
    return (
        book
        >> says(words)
        << asked(*before, f"user: {words}")
        >> answers(text("BADWORD"))
        << gets("start")
        << aborted()
        << asked(*before, f"user: {words} | INTERRUPT(no-bad-word)")
        >> answers(text(f"Good {words}."))
        << gets(f"text[Good {words}.] end_turn stop")
        << finished()
    )


def delivered(book: Playbook, words: str, *before: str) -> Playbook:
    """The user says something, and the answer to it is delivered although it breaks the rule."""
    return (
        book
        >> says(words)
        << asked(*before, f"user: {words}")
        >> answers(text("BADWORD"))
        << gets("start text[BADWORD] end_turn stop")
        << finished()
    )


ONE = ["user: one | INTERRUPT(no-bad-word)", "assistant: Good one."]
TWO = ["user: two", "assistant: BADWORD"]


def test_once_means_once_in_a_conversation(playbook: Any) -> None:
    book = interrupted(playbook(rule("no-bad-word", "BADWORD")), "one")
    delivered(delivered(book, "two", *ONE), "three", *ONE, *TWO)
    assert book.logged[1:] == ["no-bad-word suppressed violated again"] * 2
    assert [entry.detail for entry in book.log[1:]] == [
        "the model was reminded 1 responses ago",
        "the model was reminded 2 responses ago",
    ]


def test_after_gap_fires_again_when_enough_responses_have_ended(playbook: Any) -> None:
    book = playbook(rule("no-bad-word", "BADWORD", repeat_mode="after-gap", repeat_gap=2))
    interrupted(delivered(interrupted(book, "one"), "two", *ONE), "three", *ONE, *TWO)


def test_always_fires_each_time(playbook: Any) -> None:
    book = playbook(rule("no-bad-word", "BADWORD"), repeat_mode="always")
    interrupted(interrupted(book, "one"), "two", *ONE)


def test_within_one_response_the_budget_decides_not_the_policy(playbook: Any) -> None:
    book = playbook(rule("no-bad-word", "BADWORD")) >> says("go") << asked("user: go")
    book >> answers(text("BADWORD")) << gets("start") << aborted()
    book << asked("user: go | INTERRUPT(no-bad-word)")
    book >> answers(text("BADWORD")) << aborted() << asked("user: go | INTERRUPT(no-bad-word)")


def test_a_fork_inherits_only_what_came_before_it(playbook: Any) -> None:
    book = playbook(rule("no-bad-word", "BADWORD")) >> says("zero") << asked("user: zero")
    book >> answers(text("0")) << gets("start text[0] end_turn stop") << finished()
    before = book.fork()
    interrupted(book, "one", "user: zero", "assistant: 0")
    after = book.fork()
    interrupted(before, "uno", "user: zero", "assistant: 0")
    delivered(after, "two", "user: zero", "assistant: 0", *ONE)


def test_two_identical_fresh_prompts_are_two_conversations(playbook: Any) -> None:
    book = interrupted(playbook(rule("no-bad-word", "BADWORD")), "one")
    interrupted(book.fresh(), "one")


def test_a_compacted_history_may_fire_again(playbook: Any) -> None:
    book = interrupted(playbook(rule("no-bad-word", "BADWORD")), "one")
    book.agent.messages = []
    interrupted(book, "the story so far")
