"""Traffic that is only watched: helper calls of agents, and several choices that are streamed at once."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from playbook import aborted, answers, asked, finished, gets, rule, says
from strict_anthropic import stall, text, tool

BAD = rule("no-bad-word", "BADWORD")


def test_a_helper_call_is_neither_held_nor_interrupted(playbook: Any) -> None:
    book = playbook(BAD, observed="no tools") >> says("title?") << asked("user: title?")
    book >> answers(text("About BADWO", stall(), "RD")) << gets("start text[About BADWO")
    assert book.log == []
    book.go_on()
    book << gets("RD] end_turn stop") << finished()
    assert book.logged == ["no-bad-word observed undelivered"]
    assert book.log[0].detail == "no tools"


def test_a_helper_calls_match_leaves_no_reminder(playbook: Any) -> None:
    book = playbook(BAD, observed="no tools") >> says("title?") << asked("user: title?")
    book >> answers(text("BADWORD")) << gets("start text[BADWORD] end_turn stop") << finished()
    book.observed = None
    book >> says("go") << asked("user: title?", "assistant: BADWORD", "user: go")


def test_a_rule_that_never_interrupts_is_observed_in_helper_calls_too(playbook: Any) -> None:
    book = playbook(dataclasses.replace(BAD, interrupt_mode="never"), observed="no tools")
    book >> says("title?") << asked("user: title?")
    book >> answers(tool("Write", {"a": "BADWORD"})) << gets('start Write[{"a": "BADWORD"}] tool_use stop')
    book << finished()
    assert book.logged == ["no-bad-word observed undelivered"]


def test_a_match_that_another_rules_interrupt_discarded_is_observed(playbook: Any) -> None:
    book = playbook(BAD, rule("quiet", "QUIET", interrupt_mode="never")) >> says("go") << asked("user: go")
    book >> answers(tool("Write", {"a": "QUIET BADWORD"})) << gets("start") << aborted()
    book << asked("user: go | INTERRUPT(no-bad-word)")
    assert book.logged == ["quiet observed undelivered", "no-bad-word interrupted pending"]
    assert book.log[0].detail == "discarded by another rule's interrupt"


def test_a_match_in_what_stays_delivered_keeps_its_reminder(playbook: Any) -> None:
    book = playbook(BAD, rule("quiet", "QUIET", interrupt_mode="never")) >> says("go") << asked("user: go")
    book >> answers(text("QUIET ", "BADWORD")) << gets("start text[QUIET ") << aborted()
    book << asked("user: go", "assistant: QUIET ", "user: INTERRUPT(no-bad-word)")
    book >> answers(text("Good.")) << gets("] text[Good.] end_turn stop") << finished()
    (
        book
        >> says("more")
        << asked(
            "user: go",
            "assistant: QUIET ",
            "user: INTERRUPT(no-bad-word)",
            "assistant: Good.",
            "user: more | REMINDER(quiet)",
        )
    )


# Observe mode.


@pytest.mark.parametrize("mode", ["every rule", "this rule"])
def test_observe_mode_holds_nothing_and_logs_what_would_have_happened(playbook: Any, mode: str) -> None:
    if mode == "every rule":
        book = playbook(BAD, observe=True)
    else:
        book = playbook(dataclasses.replace(BAD, observe=True))
    book >> says("go") << asked("user: go")
    book >> answers(text("About BADWO", stall(), "RD")) << gets("start text[About BADWO")
    book.go_on()
    book << gets("RD] end_turn stop") << finished()
    assert book.logged == ["no-bad-word observed undelivered"]
    assert book.log[0].detail == "would have been interrupted"
    book >> says("more") << asked("user: go", "assistant: About BADWORD", "user: more")


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({"interrupt_mode": "never"}, "would have been reminded of"),
        (
            {"max_interrupts": 0, "on_exhausted": "block"},
            "would have been beyond the budget: the budget of interrupts is spent",
        ),
    ],
)
def test_an_observed_rule_neither_reminds_nor_blocks(
    playbook: Any, changes: dict[str, Any], detail: str
) -> None:
    book = playbook(dataclasses.replace(BAD, observe=True, **changes)) >> says("go") << asked("user: go")
    book >> answers(tool("Write", {"a": "BADWORD"})) << gets('start Write[{"a": "BADWORD"}] tool_use stop')
    book << finished()
    assert book.logged == ["no-bad-word observed undelivered"]
    assert book.log[0].detail == detail


def test_a_reminder_that_waits_is_not_given_in_observe_mode(playbook: Any) -> None:
    book = playbook(rule("quiet", "QUIET", interrupt_mode="never")) >> says("go") << asked("user: go")
    book >> answers(text("QUIET")) << gets("start text[QUIET] end_turn stop") << finished()
    book.settings = dataclasses.replace(book.settings, observe=True)
    book >> says("more") << asked("user: go", "assistant: QUIET", "user: more")


def test_an_observed_rule_leaves_the_others_alone(playbook: Any) -> None:
    seen = dataclasses.replace(rule("seen", "SEEN"), observe=True)
    book = playbook(BAD, seen) >> says("go") << asked("user: go")
    book >> answers(text("SEEN ", "BADWORD")) << gets("start text[SEEN ") << aborted()
    book << asked("user: go", "assistant: SEEN ", "user: INTERRUPT(no-bad-word)")
