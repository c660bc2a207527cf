"""Edits that the model writes as prose are held, judged and cut like tool calls."""

from __future__ import annotations

from typing import Any

import pytest
from coding_agent import Agent, EchoStyle
from playbook import aborted, answers, asked, finished, gets, goes_on, nothing, passes, rule, says
from strict_anthropic import stall, text

from ttsr_proxy.config import HoldSettings

AIDER = "Write each change as a *SEARCH/REPLACE block*:\n<<<<<<< SEARCH"
WHOLE = "You MUST use this *file listing* format:"
NO_EVAL = rule("no-eval", "eval", scope=("tool:edit(*.ts)", "tool:write(*.ts)"))
EVERYWHERE = rule("no-eval", "eval", scope=("text", "tool"))


def block(new: str, old: str = "old", path: str = "src/a.ts") -> str:
    return f"{path}\n```ts\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n```\n"


def agent(system: str = AIDER, **options: Any) -> Agent:
    return Agent("http://unused", style=EchoStyle(cache_last=False), system=system, tools=[], **options)


def test_a_bad_edit_is_withheld_from_its_file_name_on_and_the_answer_goes_on(playbook: Any) -> None:
    book = (
        playbook(NO_EVAL, agent=agent())
        >> says("go")
        << asked("user: go")
        >> answers(text("I change it.\n\n", "src/a.ts\n", *block("eval(1)").removeprefix("src/a.ts\n")))
        << gets("start text[I change it.\n\n")
        << aborted()
        << asked("user: go", "assistant: I change it.\n\n", "user: INTERRUPT(no-eval)")
        >> answers(text(block("run(1)")))
        << gets(f"] text[{block('run(1)')}] end_turn stop")
        << finished()
    )
    assert book.logged == ["no-eval interrupted clean"]
    (entry,) = book.log
    assert (entry.source, entry.tool, entry.paths, entry.matched) == ("tool", None, ("src/a.ts",), "eval")
    assert not entry.late
    reminder = book.requests[1]["messages"][2]["content"][-1]["text"]
    assert "because the edit for src/a.ts broke this rule. What broke the rule was not shown." in reminder


def test_an_edit_at_the_beginning_of_an_answer_is_asked_for_again(playbook: Any) -> None:
    (
        playbook(NO_EVAL, agent=agent())
        >> says("go")
        << asked("user: go")
        >> answers(text(*block("eval(1)")))
        << gets("start")
        << aborted()
        << asked("user: go | INTERRUPT(no-eval)")
        >> answers(text(block("run(1)")))
        << gets(f"text[{block('run(1)')}] end_turn stop")
        << finished()
    )


def test_a_whole_file_in_a_fence_is_a_write(playbook: Any) -> None:
    (
        playbook(NO_EVAL, agent=agent(WHOLE))
        >> says("go")
        << asked("user: go")
        >> answers(text("First:\nb.md\n```\neval\n```\n", "a.ts\n```\n", "x\neval\n", "```\n"))
        << gets("start text[First:\nb.md\n```\neval\n```\n")
        << aborted()
        << asked("user: go", "assistant: First:\nb.md\n```\neval\n```\n", "user: INTERRUPT(no-eval)")
        >> answers(text("a.ts\n```\nx\n```\n"))
        << gets("] text[a.ts\n```\nx\n```\n] end_turn stop")
        << finished()
    )


def test_only_the_prose_around_edits_flows_and_no_limit_releases_a_half_edit(playbook: Any) -> None:
    began = "src/a.ts\n```ts\n<<<<<<< SEARCH\nold\n=======\n" + "x" * 100 + "\n"
    (
        playbook(NO_EVAL, agent=agent(), hold=HoldSettings(max_chars=50, max_seconds=1))
        >> says("go")
        << asked("user: go")
        >> answers(text("Hello.\n", *began, stall(), "end\n", ">>>>>>> REPLACE\n"))
        << gets("start text[Hello.\n")
        >> passes(5)
        << nothing()
        >> passes(5)
        << gets("<ping>")
        >> goes_on()
        << gets(f"{began}end\n>>>>>>> REPLACE\n] end_turn stop")
        << finished()
    )


def test_text_that_an_edit_takes_away_is_no_violation_of_a_rule_that_sees_edits(playbook: Any) -> None:
    answer = f"Away with it:\n{block('run(1)', old='eval(1)')}Done."
    book = (
        playbook(EVERYWHERE, agent=agent())
        >> says("go")
        << asked("user: go")
        >> answers(text(*answer))
        << gets(f"start text[{answer}] end_turn stop")
        << finished()
    )
    assert book.logged == []


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_prose_behind_such_an_edit_is_still_watched(playbook: Any, size: int) -> None:
    edit = block("run(1)", old="eval(1)")
    answer = f"{edit}Never use eval here."
    kept = f"{edit}Never use "
    # The last line that is still open may be the name of the next edit's file.
    flows = kept[: len(edit) // size * size]
    (
        playbook(EVERYWHERE, agent=agent())
        >> says("go")
        << asked("user: go")
        >> answers(text(*(answer[at : at + size] for at in range(0, len(answer), size))))
        << gets(f"start text[{flows}" if flows else "start")
        << aborted()
        << gets(kept.removeprefix(flows) if flows else f"text[{kept}")
        << asked("user: go", f"assistant: {kept}", "user: INTERRUPT(no-eval)")
        >> answers(text("it."))
        << gets("] text[it.] end_turn stop")
        << finished()
    )


def test_a_rule_for_text_alone_cuts_no_edit_in_two(playbook: Any) -> None:
    bad = rule("no-bad-word", "BADWORD", scope=("text",))
    (
        playbook(bad, NO_EVAL, agent=agent())
        >> says("go")
        << asked("user: go")
        >> answers(text("Now:\n", *block("x\nBADWORD")))
        << gets("start text[Now:\n")
        << aborted()
        << asked("user: go", "assistant: Now:\n", "user: INTERRUPT(no-bad-word)")
        >> answers(text("Good."))
        << gets("] text[Good.] end_turn stop")
        << finished()
    )


def test_an_edit_waits_for_its_structural_patterns(playbook: Any) -> None:
    no_any = rule("no-any", ast_condition=("eval($X)",), scope=("tool:edit(*.ts)",))
    (
        playbook(no_any, agent=agent())
        >> says("go")
        << asked("user: go")
        >> answers(text("Now:\n", block("eval(1)"), "Done.\n"))
        << gets("start text[Now:\n")
        << aborted()
        << asked("user: go", "assistant: Now:\n", "user: INTERRUPT(no-any)")
        >> answers(text("Good."))
        << gets("] text[Good.] end_turn stop")
        << finished()
    )


def test_code_in_the_answers_of_agents_with_tools_is_no_edit(playbook: Any) -> None:
    answer = block("eval(1)")
    for one in (Agent("http://unused", style=EchoStyle(cache_last=False), system=AIDER), agent("You chat.")):
        book = (
            playbook(NO_EVAL, agent=one)
            >> says("go")
            << asked("user: go")
            >> answers(text("Such as:\n", answer))
            << gets(f"start text[Such as:\n{answer}] end_turn stop")
            << finished()
        )
        assert book.logged == []


def test_an_answer_that_is_not_streamed_is_asked_for_again(playbook: Any) -> None:
    book = (
        playbook(NO_EVAL, agent=agent(stream=False))
        >> says("go")
        << asked("user: go")
        >> answers(text(f"Now:\n{block('eval(1)')}"))
        << aborted()
        << asked("user: go | INTERRUPT(no-eval)")
    )
    assert book.logged == ["no-eval interrupted pending"]


def test_a_rule_that_does_not_interrupt_is_reminded_of_with_the_next_request(playbook: Any) -> None:
    answer = f"Now:\n{block('eval(1)')}"
    (
        playbook(rule("no-eval", "eval", scope=("tool:edit",), interrupt_mode="prose-only"), agent=agent())
        >> says("go")
        << asked("user: go")
        >> answers(text(*answer))
        << gets(f"start text[{answer}] end_turn stop")
        << finished()
        >> says("more")
        << asked("user: go", f"assistant: {answer}", "user: more | REMINDER(no-eval)")
    )
