"""Transcripts of Codex."""

from __future__ import annotations

import pytest
from transcripts import Codex

from .conftest import Replay, rule

EVERYWHERE = rule("no-bad", "BAD", scope=("text", "thinking", "tool"), repeat_mode="always")


def test_messages_reasoning_and_calls_of_the_model_are_judged(replay: Replay) -> None:
    session = Codex()
    session.user("BAD")
    session.thinks("BAD idea")
    session.output()
    session.says("BAD words")
    session.output()
    session.patches("src/a.py", "BAD = 1")
    session.output()
    session.calls("exec_command", {"cmd": "echo BAD", "workdir": "/work/app"})
    session.output()
    session.item(type="local_shell_call", call_id="c", action={"type": "exec", "command": ["echo", "BAD"]})
    found = replay(session.lines, EVERYWHERE)
    assert [(one.line, one.turn, one.source, one.tool, one.paths, one.action) for one in found] == [
        (6, 0, "thinking", None, (), "interrupted"),
        (9, 1, "text", None, (), "interrupted"),
        (11, 2, "tool", "apply_patch", ("src/a.py",), "interrupted"),
        (13, 3, "tool", "exec_command", found[3].paths, "interrupted"),
        (15, 4, "tool", "local_shell", (), "interrupted"),
    ]
    assert {(one.client, one.model, one.conversation) for one in found} == {("codex", "gpt-5.5", "session-1")}


def test_events_that_repeat_what_items_say_are_not_judged(replay: Replay) -> None:
    session = Codex()
    session.line("event_msg", type="agent_message", message="BAD")
    session.line("event_msg", type="item_completed", item={"type": "AgentMessage", "content": "BAD"})
    assert replay(session.lines) == []


def test_a_response_goes_on_until_something_answers_it(replay: Replay) -> None:
    session = Codex()
    session.user()
    session.says("good")
    session.patches("a.py", "BAD")
    session.patches("b.py", "BAD", "call_2")
    session.output()
    session.output("call_2")
    session.says("BAD")
    assert [(one.turn, one.action) for one in replay(session.lines)] == [
        (0, "interrupted"),
        (0, "observed"),
        (1, "suppressed"),
    ]


def test_a_record_of_tokens_ends_a_response(replay: Replay) -> None:
    session = Codex()
    session.says("BAD")
    session.line("token_usage_record", response_id="resp_1")
    session.says("BAD")
    assert [one.turn for one in replay(session.lines)] == [0, 1]


def test_a_compacted_history_may_fire_again(replay: Replay) -> None:
    session = Codex()
    session.says("BAD")
    session.line("compacted", message="summary")
    session.user("summary")
    session.says("BAD")
    assert [(one.turn, one.action) for one in replay(session.lines)] == [
        (0, "interrupted"),
        (0, "interrupted"),
    ]


@pytest.mark.parametrize(
    ("source", "agent"),
    [
        ("cli", "main"),
        ({"subagent": "review"}, "review"),
        ({"subagent": {"thread_spawn": {"agent_path": "/root/scout", "agent_nickname": "Ada"}}}, "scout"),
        ({"subagent": {"thread_spawn": {"agent_path": None, "agent_nickname": "Ada"}}}, "Ada"),
        ({"subagent": {"other": "titles"}}, "titles"),
        ({"subagent": 7}, "sub-agent"),
    ],
)
def test_a_sub_agent_has_its_name(replay: Replay, source: object, agent: str) -> None:
    session = Codex(source=source)
    session.says("BAD")
    assert [one.agent for one in replay(session.lines)] == [agent]


def test_a_fork_keeps_the_head_of_its_own(replay: Replay) -> None:
    session = Codex("fork", source={"subagent": "review"})
    session.line("session_meta", id="origin", cwd="/elsewhere", source="cli")
    session.says("BAD")
    assert [(one.conversation, one.agent) for one in replay(session.lines)] == [("fork", "review")]
