"""Requests of one conversation, or with the same words, at the same time."""

from __future__ import annotations

from typing import Any

from playbook import aborted, answers, asked, finished, gets, goes_on, rule, says
from strict_anthropic import stall, text, thinking

BAD = rule("no-bad-word", "BADWORD")


def test_two_requests_of_one_conversation_are_two_forks(playbook: Any) -> None:
    one = playbook(BAD) >> says("go") << asked("user: go") >> answers(text("Hello."))
    one << gets("start text[Hello.] end_turn stop") << finished()
    two = one.fork()
    before = ("user: go", "assistant: Hello.")
    one >> says("a") << asked(*before, "user: a") >> answers(text("A ", "BADWORD")) << gets("start text[A ")
    one << aborted() << asked(*before, "user: a", "assistant: A ", "user: INTERRUPT(no-bad-word)")
    two >> says("b") << asked(*before, "user: b") >> answers(text("B ", "BADWORD")) << gets("start text[B ")
    two << aborted() << asked(*before, "user: b", "assistant: B ", "user: INTERRUPT(no-bad-word)")
    one >> answers(thinking("x"), text("a.")) << gets("] thinking[x +signed] text[a.] end_turn stop")
    one << finished()
    two >> answers(thinking("y"), text("b.")) << gets("] thinking[y +signed] text[b.] end_turn stop")
    two << finished()
    for book, word, mind in ((one, "a", "x"), (two, "b", "y")):
        (
            book
            >> says("end")
            << asked(
                *before,
                f"user: {word}",
                f"assistant: {word.upper()} ",
                "user: INTERRUPT(no-bad-word)",
                f"assistant: ({mind}) | {word}.",
                "user: end",
            )
        )
        book >> answers(text("Bye.")) << gets("start text[Bye.] end_turn stop") << finished()


def test_a_request_does_not_see_a_response_that_is_not_over(playbook: Any) -> None:
    """A second request with the same history is a fork beside the first, whatever that goes through."""
    one = playbook(BAD) >> says("go") << asked("user: go") >> answers(text("Hello, ", "BADWORD"))
    one << gets("start text[Hello, ") << aborted()
    one << asked("user: go", "assistant: Hello, ", "user: INTERRUPT(no-bad-word)")
    two = one.fresh()
    (
        two
        >> says("go")
        << asked("user: go")
        >> answers(text("Fine."))
        << gets("start text[Fine.] end_turn stop")
    )
    two << finished() >> says("end") << asked("user: go", "assistant: Fine.", "user: end")
    two >> answers(text("Bye.")) << gets("start text[Bye.] end_turn stop") << finished()
    one >> answers(text("world.")) << gets("] text[world.] end_turn stop") << finished()


def test_identical_fresh_prompts_with_signed_thinking_are_told_apart(playbook: Any) -> None:
    one = playbook(BAD) >> says("go") << asked("user: go") >> answers(text("BADWORD")) << gets("start")
    one << aborted() << asked("user: go | INTERRUPT(no-bad-word)")
    two = one.fresh()
    two >> says("go") << asked("user: go") >> answers(thinking("hm", stall()), text("Same."))
    two << gets("start thinking[hm")
    one >> answers(thinking("hm"), text("Same.")) << gets("thinking[hm +signed] text[Same.] end_turn stop")
    one << finished()
    two >> goes_on() << gets(" +signed] text[Same.] end_turn stop") << finished()
    one >> says("end") << asked("user: go | INTERRUPT(no-bad-word)", "assistant: (hm) | Same.", "user: end")
    two >> says("end") << asked("user: go", "assistant: (hm) | Same.", "user: end")


def test_a_rewind_behind_an_interrupt_forgets_it(playbook: Any) -> None:
    book = playbook(BAD) >> says("go") << asked("user: go") >> answers(text("Hello."))
    book << gets("start text[Hello.] end_turn stop") << finished()
    rewound = book.fork()
    book >> says("a") << asked("user: go", "assistant: Hello.", "user: a") >> answers(text("BADWORD"))
    book << gets("start") << aborted()
    book << asked("user: go", "assistant: Hello.", "user: a | INTERRUPT(no-bad-word)")
    book >> answers(text("A.")) << gets("text[A.] end_turn stop") << finished()
    # The very words of before, but the answer to them was taken back.
    rewound >> says("a") << asked("user: go", "assistant: Hello.", "user: a") >> answers(text("BADWORD"))
    rewound << gets("start") << aborted()
    rewound << asked("user: go", "assistant: Hello.", "user: a | INTERRUPT(no-bad-word)")


def test_a_fork_after_an_interrupt_has_the_hidden_reminder(playbook: Any) -> None:
    book = playbook(BAD) >> says("go") << asked("user: go") >> answers(text("BADWORD")) << gets("start")
    book << aborted() << asked("user: go | INTERRUPT(no-bad-word)")
    book >> answers(thinking("hm"), text("Good.")) << gets("thinking[hm +signed] text[Good.] end_turn stop")
    book << finished()
    for words in ("left", "right"):
        (
            book.fork()
            >> says(words)
            << asked("user: go | INTERRUPT(no-bad-word)", "assistant: (hm) | Good.", f"user: {words}")
        )
