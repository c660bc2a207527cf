"""ast-grep's answers come later than everything else, or not at all."""

from __future__ import annotations

from typing import Any

from playbook import (
    aborted,
    answers,
    asked,
    ast_answers,
    checks,
    drops,
    finished,
    gets,
    leaves,
    nothing,
    passes,
    replied,
    rule,
    says,
)
from strict_anthropic import drop, text, tool

NO_PRINT = rule("no-print", ast_condition=("print($X)",), scope=("tool",))
BAD = {"file_path": "a.py", "content": "print(1)"}
STREAMED = 'Write[{"file_path": "a.py", "content": "print(1)"}]'


def test_a_call_is_held_until_ast_grep_has_answered(playbook: Any) -> None:
    (
        playbook(NO_PRINT, ast_by_hand=True)
        >> says("go")
        << asked("user: go")
        >> answers(tool("Write", BAD))
        << gets("start")
        << checks(1)
        >> passes(10)
        << gets("<ping>")
        >> ast_answers()
        << aborted()
        << asked("user: go | INTERRUPT(no-print)")
    )


def test_what_follows_the_call_waits_for_the_answer(playbook: Any) -> None:
    (
        playbook(NO_PRINT, ast_by_hand=True)
        >> says("go")
        << asked("user: go")
        >> answers(tool("Write", BAD), text("Done."), lingers=True)
        << gets("start")
        << checks(1)
        >> ast_answers(())
        << gets(f"{STREAMED} text[Done.] tool_use stop")
    )


def test_a_check_that_was_not_done_releases_the_call_and_is_noted(playbook: Any) -> None:
    book = (
        playbook(NO_PRINT, ast_by_hand=True)
        >> says("go")
        << asked("user: go")
        >> answers(tool("Write", BAD))
        << gets("start")
        << checks(1)
        >> ast_answers(None)
        << gets(f"{STREAMED} tool_use stop")
        << finished()
    )
    assert book.noted == ["not_inspected ast-grep did not answer Write"]


def test_a_check_under_way_does_not_stop_the_client_from_leaving(playbook: Any) -> None:
    book = playbook(NO_PRINT, ast_by_hand=True) >> says("go") << asked("user: go")
    book >> answers(tool("Write", BAD)) << gets("start") << checks(1) >> leaves() << aborted()
    book >> ast_answers() << nothing()


def test_a_loss_of_upstream_waits_for_the_answer(playbook: Any) -> None:
    (
        playbook(NO_PRINT, ast_by_hand=True)
        >> says("go")
        << asked("user: go")
        >> answers(tool("Write", BAD), drop())
        << gets("start")
        << checks(1)
        >> ast_answers()
        << aborted()
        << asked("user: go | INTERRUPT(no-print)")
        >> drops()
        << gets("<error api_error>")
        << finished()
    )


def test_a_whole_answer_is_checked_too(playbook: Any) -> None:
    book = playbook(NO_PRINT)
    book.agent.stream = False
    book >> says("go") << asked("user: go") >> answers(tool("Write", BAD)) << aborted()
    book << asked("user: go | INTERRUPT(no-print)") >> answers(tool("Write", {**BAD, "content": "x"}))
    book << replied(200, 'Write {"file_path":"a.py","content":"x"} | tool_use') << finished()
    assert book.logged == ["no-print interrupted clean"]
    assert book.log[0].trigger == "ast"
