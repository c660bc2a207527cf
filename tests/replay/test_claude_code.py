"""Transcripts of Claude Code."""

from __future__ import annotations

from transcripts import ClaudeCode, calls, result, says, thinks, writes

from .conftest import BAD, Replay, rule


def told(found: list) -> list[tuple]:  # type: ignore[type-arg]
    return [(one.line, one.turn, one.source, one.tool, one.paths, one.action) for one in found]


def test_text_thinking_and_tool_calls_of_an_answer_are_judged(replay: Replay) -> None:
    everywhere = rule("no-bad", "BAD", scope=("text", "thinking", "tool"), repeat_mode="always")
    session = ClaudeCode()
    session.user("Write BAD code")
    session.assistant("msg_1", thinks("BAD idea"))
    session.user()
    session.assistant("msg_2", says("BAD words"))
    session.user()
    session.assistant("msg_3", writes("/work/app/src/a.py", "BAD = 1"))
    assert told(replay(session.lines, everywhere)) == [
        (3, 0, "thinking", None, (), "interrupted"),
        (5, 1, "text", None, (), "interrupted"),
        (7, 2, "tool", "Write", ("src/a.py",), "interrupted"),
    ]


def test_what_users_and_tools_say_is_not_judged(replay: Replay) -> None:
    session = ClaudeCode()
    session.user("BAD")
    session.assistant("msg_1", calls("Read", file_path="/work/app/a.py"))
    session.user([{"type": "tool_result", "tool_use_id": "t", "content": "BAD"}])
    session.assistant("msg_2", says("good"))
    assert replay(session.lines) == []


def test_the_lines_of_one_message_are_one_answer(replay: Replay) -> None:
    session = ClaudeCode()
    session.user()
    session.assistant("msg_1", says("fine"), writes("a.py", "BAD"), writes("b.py", "BAD"))
    session.user(result())
    session.assistant("msg_2", says("BAD"))
    assert [(one.turn, one.action, one.detail) for one in replay(session.lines)] == [
        (0, "interrupted", ""),
        (0, "observed", "behind an interrupt by no-bad in the same answer"),
        (1, "suppressed", "the model was reminded 1 responses ago"),
    ]


def test_a_call_that_was_handed_over_before_makes_the_interrupt_a_truncation(replay: Replay) -> None:
    session = ClaudeCode()
    session.assistant("msg_1", writes("a.py", "good"), writes("b.py", "BAD"))
    session.user(result())
    session.assistant("msg_2", says("BAD"))
    found = replay(session.lines)
    assert [one.action for one in found] == ["truncated", "suppressed"]
    assert found[1].detail == "the model was reminded with this request"


def test_a_rewind_is_a_fork_that_inherits_what_came_before_it(replay: Replay) -> None:
    session = ClaudeCode()
    session.user()
    before = session.assistant("msg_1", says("good"))
    session.user(after=before)
    session.assistant("msg_2", says("BAD"))
    session.user(after=before)
    session.assistant("msg_3", says("BAD"))
    session.user()
    session.assistant("msg_4", says("BAD"))
    assert [(one.turn, one.action) for one in replay(session.lines)] == [
        (1, "interrupted"),
        (1, "interrupted"),
        (2, "suppressed"),
    ]


def test_a_compacted_history_may_fire_again(replay: Replay) -> None:
    session = ClaudeCode()
    session.assistant("msg_1", says("BAD"))
    session.user("summary", anew=True)
    session.assistant("msg_2", says("BAD"))
    assert [(one.turn, one.action) for one in replay(session.lines)] == [
        (0, "interrupted"),
        (0, "interrupted"),
    ]


def test_a_sub_agent_has_a_conversation_and_a_name_of_its_own(replay: Replay) -> None:
    main, side = ClaudeCode(), ClaudeCode(agent="a1b2")
    main.assistant("msg_1", says("BAD"))
    side.user("task", anew=True)
    side.assistant("msg_2", says("BAD"))
    found = replay([*main.lines, *side.lines])
    assert [(one.agent, one.turn, one.action) for one in found] == [
        ("main", 0, "interrupted"),
        ("a1b2", 0, "interrupted"),
    ]
    only_main = rule("no-bad", "BAD", agents=("main",))
    assert [one.agent for one in replay([*main.lines, *side.lines], only_main)] == ["main"]


def test_the_agents_own_words_about_an_error_are_no_answer(replay: Replay) -> None:
    session = ClaudeCode()
    session.assistant("msg_1", says("API Error: BAD gateway"), model="<synthetic>", isApiErrorMessage=True)
    assert replay(session.lines) == []


def test_a_line_whose_parent_is_lost_follows_the_line_before_it(replay: Replay) -> None:
    session = ClaudeCode()
    session.assistant("msg_1", says("BAD"))
    session.user(after="lost")
    session.assistant("msg_2", says("BAD"))
    assert [one.action for one in replay(session.lines)] == ["interrupted", "suppressed"]


def test_content_that_is_one_text_is_read_as_one_block(replay: Replay) -> None:
    session = ClaudeCode()
    session.assistant("msg_1", says("x"))
    session.lines[-1]["message"]["content"] = "BAD"
    (found,) = replay(session.lines, BAD)
    assert (found.time, found.conversation, found.model) == (
        "2026-03-01T12:00:01.000Z",
        "session-1",
        "claude-opus-5-5",
    )
