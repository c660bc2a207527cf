"""Verdicts: the same functions as in the stream, over a whole conversation."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcripts import ClaudeCode, Codex, as_bytes, calls, result, says, thinks, writes

from ttsr_proxy.config import BudgetSettings
from ttsr_proxy.protocols.events import BlockDelta, ProtocolEvent
from ttsr_proxy.replay.recording import LostLine, steps
from ttsr_proxy.replay.steps import Step
from ttsr_proxy.rules.model import Rule

from .conftest import BAD, Replay, replayer, rule


def turns(count: int, text: str = "BAD") -> ClaudeCode:
    session = ClaudeCode()
    for number in range(count):
        session.user()
        session.assistant(f"msg_{number}", says(text))
    return session


@pytest.mark.parametrize(
    ("settings", "fields", "actions"),
    [
        ({}, {}, "interrupted suppressed suppressed suppressed"),
        ({"repeat_mode": "always"}, {}, "interrupted interrupted interrupted interrupted"),
        ({"repeat_mode": "after-gap", "repeat_gap": 2}, {}, "interrupted suppressed interrupted suppressed"),
        ({}, {"repeat_mode": "always"}, "interrupted interrupted interrupted interrupted"),
        ({}, {"interrupt_mode": "never"}, "deferred suppressed suppressed suppressed"),
        ({"observe": True}, {}, "observed observed observed observed"),
        ({}, {"observe": True, "repeat_mode": "always"}, "observed observed observed observed"),
        (
            {"repeat_mode": "always", "budget": BudgetSettings(per_conversation=2)},
            {},
            "interrupted interrupted exhausted exhausted",
        ),
        (
            {"repeat_mode": "always", "budget": BudgetSettings(per_conversation=1, on_exhausted="block")},
            {},
            "interrupted blocked blocked blocked",
        ),
    ],
)
def test_repeat_modes_budgets_and_observation_are_those_of_the_stream(
    replay: Replay, settings: dict[str, Any], fields: dict[str, Any], actions: str
) -> None:
    found = replay(turns(4).lines, rule("no-bad", "BAD", **fields), **settings)
    assert " ".join(one.action for one in found) == actions


def test_an_observed_match_says_what_would_have_been(replay: Replay) -> None:
    found = replay(turns(1).lines, rule("no-bad", "BAD", observe=True))
    assert [one.detail for one in found] == ["would have been interrupted"]


def test_a_reminder_comes_with_the_next_request(replay: Replay) -> None:
    session = ClaudeCode()
    session.assistant("msg_1", writes("a.py", "BAD"), writes("b.py", "BAD"))
    session.user(result())
    session.assistant("msg_2", writes("c.py", "BAD"))
    session.user(result())
    session.assistant("msg_3", writes("d.py", "BAD"))
    found = replay(session.lines, rule("no-bad", "BAD", interrupt_mode="never"))
    assert [(one.action, one.detail) for one in found] == [
        ("reminded", ""),
        ("suppressed", "already noticed in this answer"),
        ("suppressed", "the model was reminded with this request"),
        ("suppressed", "the model was reminded 1 responses ago"),
    ]


def test_rules_that_match_at_the_same_place_interrupt_together(replay: Replay) -> None:
    found = replay(turns(1, "so BAD and WORSE").lines, BAD, rule("b", "so BAD"), rule("worse", "WORSE"))
    assert [(one.rule, one.action) for one in found] == [
        ("b", "interrupted"),
        ("no-bad", "interrupted"),
        ("worse", "observed"),
    ]


def test_scopes_globs_families_and_ast_conditions_are_those_of_the_stream(replay: Replay) -> None:
    session = ClaudeCode()
    session.assistant(
        "msg_1", writes("/work/app/src/a.py", "eval(x)"), writes("/work/app/src/a.ts", "eval(x)")
    )
    session.assistant(
        "msg_2", calls("Edit", file_path="src/b.py", old_string="eval(1)", new_string="print(1)")
    )
    session.assistant("msg_3", calls("Bash", command="cat > src/c.py <<'E'\neval(y)\nE"))
    rules = (
        Rule(name="ast", path="ast.md", content="x", ast_condition=("eval($A)",), globs=("src/*.py",)),
        rule("edit", "eval", scope=("tool:edit(*.py)",)),
        rule("bash", "eval", scope=("tool:bash",)),
    )
    found = replay(session.lines, *rules, repeat_mode="always")
    assert sorted({(one.rule, one.trigger, one.tool) for one in found}) == [
        ("ast", "ast", "Bash"),
        ("ast", "ast", "Write"),
        ("bash", "regex", "Bash"),
    ]


@pytest.mark.parametrize(
    ("cwd", "path", "glob", "shown"),
    [
        ("/work/app", "/work/app/src/a.py", "src/*.py", "src/a.py"),
        ("/work/app/src", "/work/app/src/a.py", "src/*.py", "src/a.py"),
        ("/work", "/work/app/src/a.py", "src/*.py", "src/a.py"),
        ("/other/app", "/other/app/src/a.py", "src/*.py", "src/a.py"),
        ("/other/app", "/elsewhere/src/a.py", "/elsewhere/**", "/elsewhere/src/a.py"),
    ],
)
def test_paths_are_relative_to_the_project_or_to_where_the_agent_worked(
    replay: Replay, cwd: str, path: str, glob: str, shown: str
) -> None:
    session = ClaudeCode(cwd=cwd)
    session.assistant("msg_1", writes(path, "BAD"))
    assert [one.paths for one in replay(session.lines, rule("no-bad", "BAD", globs=(glob,)))] == [(shown,)]


def test_one_match_in_several_views_of_a_call_is_one_finding(replay: Replay) -> None:
    session = Codex()
    script = "apply_patch <<'E'\n*** Begin Patch\n*** Add File: a.py\n+BAD\n*** End Patch\nE"
    session.calls("shell", {"command": ["bash", "-lc", script]})
    assert len(replay(session.lines, rule("no-bad", "BAD", interrupt_mode="never"))) == 1


def test_secrets_are_masked(replay: Replay) -> None:
    key = "sk-proj-q7Zp2LxV9rTb4KwN8mJc5HdF1sGy6Ea3"
    session = turns(1, f"key = '{key}' and BAD, again {key}")
    (found,) = replay(session.lines)
    assert found.matched == "BAD"
    assert "[masked]" in found.before
    assert key not in json.dumps(dataclasses.asdict(found))


def test_what_is_not_inspected_is_counted() -> None:
    session = ClaudeCode()
    session.assistant("msg_1", writes("a.py", "eval(1)\n" * 40_000))
    judge = replayer([Rule(name="a", path="a.md", content="x", ast_condition=("eval($A)",))])
    for step in steps(as_bytes(session.lines)):
        assert isinstance(step, Step)
        assert list(judge.take(step)) == []
    assert sum(judge.totals.not_inspected.values()) == 1
    assert (judge.totals.conversations, judge.totals.responses, judge.totals.blocks) == (1, 1, 1)


RULES = (
    rule("no-bad", "BAD", scope=("text", "thinking", "tool")),
    rule("end", "words?$", scope=("text", "thinking")),
    rule("ahead", r"related(?! to)", repeat_mode="always"),
    rule("tool", "eval", scope=("tool:write(*.py)",), interrupt_mode="never"),
    Rule(name="ast", path="ast.md", content="x", ast_condition=("eval($A)",), repeat_mode="always"),
)
TEXTS = st.sampled_from(["BAD words", "related to eval", "related", "fine", "BAD related words", "eval(1)\n"])
BLOCKS = st.lists(
    st.one_of(
        TEXTS.map(says),
        TEXTS.map(thinks),
        st.tuples(st.sampled_from(["a.py", "b.ts"]), TEXTS).map(lambda pair: writes(*pair)),
    ),
    max_size=3,
)


@given(st.lists(BLOCKS, max_size=4), st.data())
def test_findings_do_not_depend_on_how_the_output_is_cut(answers: list[Any], data: st.DataObject) -> None:
    session = ClaudeCode()
    for number, blocks in enumerate(answers):
        session.user()
        session.assistant(f"msg_{number}", *blocks)
    recorded = [step for step in steps(as_bytes(session.lines)) if not isinstance(step, LostLine)]
    whole, cut = replayer(RULES), replayer(RULES)
    for step in recorded:
        assert list(cut.take(_cut(step, data))) == list(whole.take(step))


def _cut(step: Step, data: st.DataObject) -> Step:
    """The step with its deltas cut into pieces."""
    outputs = []
    for output in step.outputs:
        events: list[ProtocolEvent] = []
        for event in output.events:
            if isinstance(event, BlockDelta):
                places = data.draw(st.lists(st.integers(0, len(event.text)), max_size=4).map(sorted))
                ends = [*places, len(event.text)]
                pieces = [event.text[start:end] for start, end in zip([0, *places], ends, strict=True)]
                events += (msgspec.structs.replace(event, text=piece) for piece in pieces)
            else:
                events.append(event)
        outputs.append(dataclasses.replace(output, events=tuple(events)))
    return dataclasses.replace(step, outputs=tuple(outputs))
