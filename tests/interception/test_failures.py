"""Upstream calls that fail, by what the client already has."""

from __future__ import annotations

from typing import Any

import pytest
from playbook import (
    Playbook,
    aborted,
    answers,
    asked,
    broken,
    closes,
    drops,
    finished,
    gets,
    goes_on,
    passes,
    refuses,
    relayed,
    replied,
    rule,
    says,
    sends_garbage,
)
from strict_anthropic import drop, stall, stream_error, text, thinking

BAD = rule("no-bad-word", "BADWORD")
REMINDED = "user: go | INTERRUPT(no-bad-word)"
BOUND = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound elsewhere"


def interrupted_unsent(book: Playbook) -> Playbook:
    book.agent.stream = False
    book >> says("go") << asked("user: go") >> answers(text("BADWORD")) << aborted() << asked(REMINDED)
    return book


def interrupted_opened(book: Playbook) -> Playbook:
    book >> says("go") << asked("user: go") >> answers(text("BADWORD")) << gets("start") << aborted()
    return book << asked(REMINDED)


def interrupted_in_content(book: Playbook) -> Playbook:
    book >> says("go") << asked("user: go") >> answers(text("Hello."), text("BADWORD"))
    book << gets("start text[Hello.]") << aborted()
    return book << asked("user: go", "assistant: Hello.", "user: INTERRUPT(no-bad-word)")


# Without any abort of ours, upstream's failure is the client's.


@pytest.mark.parametrize(("status", "kind"), [(400, "invalid_request_error"), (429, "rate_limit_error")])
def test_a_first_call_that_is_refused_is_upstreams_own_answer(playbook: Any, status: int, kind: str) -> None:
    book = playbook(BAD) >> says("go") << asked("user: go")
    book >> refuses(status, kind=kind, retry_after=3) << replied(status, f"{kind}: no") << finished()


def test_an_unreachable_upstream_is_a_502(playbook: Any) -> None:
    book = playbook(BAD) >> says("go") << asked("user: go")
    book >> drops("no route") << replied(502, "api_error: no route") << finished()


def test_a_first_answer_that_cannot_be_read_passes_as_it_comes(playbook: Any) -> None:
    book = playbook(BAD) >> says("go") << asked("user: go") >> sends_garbage() << relayed()
    assert book.noted == ["not_inspected the answer is text/html"]


def test_a_loss_of_the_first_answer_breaks_the_clients_too(playbook: Any) -> None:
    book = playbook(BAD) >> says("go") << asked("user: go")
    book >> answers(text("Hello", drop())) << gets("start text[Hello") << broken()


def test_held_text_is_released_before_a_loss(playbook: Any) -> None:
    book = playbook(BAD) >> says("go") << asked("user: go")
    book >> answers(text("Hello BADWO", drop())) << gets("start text[Hello BADWO") << broken()


def test_held_text_that_matches_at_its_end_interrupts_a_lost_answer(playbook: Any) -> None:
    book = playbook(rule("no-end", r"bad(?!\w)")) >> says("go") << asked("user: go")
    book >> answers(text("It is ", "bad", drop())) << gets("start text[It is ") << aborted()
    book << asked("user: go", "assistant: It is ", "user: INTERRUPT(no-end)")
    book >> answers(text("good.")) << gets("] text[good.] end_turn stop") << finished()


def test_an_error_in_the_first_stream_passes_as_it_comes(playbook: Any) -> None:
    book = playbook(BAD) >> says("go") << asked("user: go")
    book >> answers(text("Hello"), stream_error()) << gets("start text[Hello] <error overloaded_error>")
    book << finished()


# Failures of a retry.

FAILURES = {
    "4xx": (refuses(403, kind="permission_error"), (403, "permission_error: no"), "permission_error"),
    "5xx": (refuses(500, kind="api_error"), (500, "api_error: no"), "api_error"),
    "network": (drops("no route"), (502, "api_error: no route"), "api_error"),
    "overloaded without a time": (
        refuses(529, kind="overloaded_error"),
        (529, "overloaded_error: no"),
        "overloaded_error",
    ),
    "overloaded for too long": (
        refuses(429, kind="rate_limit_error", retry_after=300),
        (429, "rate_limit_error: no"),
        "rate_limit_error",
    ),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_unsent_a_failed_retry_is_upstreams_status(playbook: Any, failure: str) -> None:
    happening, reply, _ = FAILURES[failure]
    book = interrupted_unsent(playbook(BAD)) >> happening << replied(*reply) << finished()
    assert book.logged == ["no-bad-word interrupted failed"]
    assert next(iter(book.store.unfinished.values())).total == 0


@pytest.mark.parametrize("failure", FAILURES)
def test_opened_a_failed_retry_is_the_protocols_error(playbook: Any, failure: str) -> None:
    happening, _, kind = FAILURES[failure]
    book = interrupted_opened(playbook(BAD)) >> happening << gets(f"<error {kind}>") << finished()
    assert book.logged == ["no-bad-word interrupted failed"]


@pytest.mark.parametrize("failure", FAILURES)
def test_after_content_a_failed_retry_is_a_clean_short_end(playbook: Any, failure: str) -> None:
    happening, _, _ = FAILURES[failure]
    book = interrupted_in_content(playbook(BAD)) >> happening << gets("end_turn stop") << finished()
    assert book.logged == ["no-bad-word interrupted failed"]
    assert not book.store.unfinished


@pytest.mark.parametrize("happening", [drops(), closes()], ids=["lost", "closed early"])
def test_what_a_failed_retry_delivered_is_remembered(playbook: Any, happening: Any) -> None:
    (
        interrupted_in_content(playbook(BAD))
        >> answers(text("And ", stall()))
        << gets("text[And ")
        >> happening
        << gets("] end_turn stop")
        << finished()
        >> says("more")
        << asked(
            "user: go",
            "assistant: Hello.",
            "user: INTERRUPT(no-bad-word)",
            "assistant: And ",
            "user: more",
        )
        >> answers(text("Yes."))
        << gets("start text[Yes.] end_turn stop")
        << finished()
    )


def test_an_error_in_the_stream_of_a_retry_ends_it(playbook: Any) -> None:
    book = interrupted_in_content(playbook(BAD)) >> answers(text("And ", stall(), stream_error()))
    book << gets("text[And ") >> goes_on() << aborted() << gets("] end_turn stop") << finished()
    assert book.logged == ["no-bad-word interrupted failed"]


def test_a_retry_that_cannot_be_read_fails(playbook: Any) -> None:
    book = interrupted_opened(playbook(BAD)) >> sends_garbage() << aborted()
    book << gets("<error api_error>") << finished()


def test_an_overloaded_upstream_is_asked_again_after_the_time_it_gave(playbook: Any) -> None:
    (
        interrupted_opened(playbook(BAD))
        >> refuses(429, kind="rate_limit_error", retry_after=20)
        << asked(REMINDED, after=20)
        >> passes(20)
        << gets("<ping> <ping>")
        >> answers(text("Good."))
        << gets("text[Good.] end_turn stop")
        << finished()
    )


def test_retries_end_240_seconds_after_the_last_content(playbook: Any) -> None:
    book = interrupted_opened(playbook(BAD)) >> passes(239) << gets(" ".join(["<ping>"] * 23))
    book >> passes(1) << aborted() << gets("<error timeout_error>") << finished()
    assert book.logged == ["no-bad-word interrupted failed"]


def test_the_first_attempt_is_never_limited_in_time(playbook: Any) -> None:
    book = playbook(BAD) >> says("go") << asked("user: go") >> passes(3_600)
    book >> answers(text("At last.")) << gets("start text[At last.] end_turn stop") << finished()


def test_content_of_a_retry_starts_the_time_anew(playbook: Any) -> None:
    book = interrupted_opened(playbook(BAD)) >> passes(200) << gets(" ".join(["<ping>"] * 20))
    book >> answers(thinking("hm"), text("A", stall(), "B")) << gets("thinking[hm +signed] text[A")
    book >> passes(200)


# Fallbacks: with the reminder, without it, without thinking, as the client sent it.


def test_a_refused_reminder_is_left_out_and_nothing_interrupts_any_more(playbook: Any) -> None:
    book = interrupted_opened(playbook(BAD))
    book >> refuses(400, kind="invalid_request_error") << asked("user: go")
    book >> answers(text("BADWORD")) << gets("text[BADWORD] end_turn stop") << finished()
    assert book.logged == ["no-bad-word interrupted failed", "no-bad-word exhausted violated again"]
    assert book.noted == ["request_refused reminded"]


def test_a_deferred_reminder_that_is_refused_waits_for_the_next_request(playbook: Any) -> None:
    (
        playbook(BAD, interrupt_mode="never")
        >> says("one")
        << asked("user: one")
        >> answers(text("BADWORD"))
        << gets("start text[BADWORD] end_turn stop")
        << finished()
        >> says("two")
        << asked("user: one", "assistant: BADWORD", "user: two | REMINDER(no-bad-word)")
        >> refuses(400, kind="invalid_request_error")
        << asked("user: one", "assistant: BADWORD", "user: two")
        >> answers(text("Good."))
        << gets("start text[Good.] end_turn stop")
        << finished()
        >> says("three")
        << asked(
            "user: one",
            "assistant: BADWORD",
            "user: two",
            "assistant: Good.",
            "user: three | REMINDER(no-bad-word)",
        )
        >> answers(text("Fine."))
        << gets("start text[Fine.] end_turn stop")
        << finished()
    )


def conversation_with_hidden_turns(book: Playbook) -> Playbook:
    return (
        interrupted_in_content(book)
        >> answers(thinking("hm"), text("World."))
        << gets("thinking[hm +signed] text[World.] end_turn stop")
        << finished()
        >> says("more")
        << asked(
            "user: go",
            "assistant: Hello.",
            "user: INTERRUPT(no-bad-word)",
            "assistant: (hm) | World.",
            "user: more",
        )
    )


def test_refused_thinking_is_left_out_from_then_on(playbook: Any) -> None:
    without = ["user: go", "assistant: Hello.", "user: INTERRUPT(no-bad-word)", "assistant: World."]
    book = (
        conversation_with_hidden_turns(playbook(BAD))
        >> refuses(400, BOUND, kind="invalid_request_error")
        << asked(*without, "user: more")
        >> answers(text("Yes."))
        << gets("start text[Yes.] end_turn stop")
        << finished()
        >> says("again")
        << asked(*without, "user: more", "assistant: Yes.", "user: again")
        >> answers(text("Yes."))
        << gets("start text[Yes.] end_turn stop")
        << finished()
    )
    assert book.noted == ["request_refused reminded without thinking"]


def test_thinking_is_not_left_out_for_any_other_reason(playbook: Any) -> None:
    book = conversation_with_hidden_turns(playbook(BAD))
    book >> refuses(400, "prompt is too long", kind="invalid_request_error")
    book << replied(400, "invalid_request_error: prompt is too long") << finished()


def test_a_refused_translation_without_thinking_is_sent_as_the_client_sent_it(playbook: Any) -> None:
    book = (
        interrupted_in_content(playbook(BAD))
        >> answers(text("World."))
        << gets("text[World.] end_turn stop")
        << finished()
        >> says("more")
        << asked(
            "user: go",
            "assistant: Hello.",
            "user: INTERRUPT(no-bad-word)",
            "assistant: World.",
            "user: more",
        )
        >> refuses(400, kind="invalid_request_error")
        << asked("user: go", "assistant: Hello. | World.", "user: more")
    )
    assert book.raw_requests[-1].decode().count("Hello.") == 1
    book >> refuses(400, kind="invalid_request_error")
    book << replied(400, "invalid_request_error: no") << finished()


def test_nothing_falls_back_after_content(playbook: Any) -> None:
    book = interrupted_in_content(playbook(BAD)) >> refuses(400, kind="invalid_request_error")
    book << gets("end_turn stop") << finished()
