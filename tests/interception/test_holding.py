"""What is held back, for how long, and what the client sees meanwhile."""

from __future__ import annotations

from typing import Any

from playbook import aborted, answers, asked, finished, gets, goes_on, nothing, passes, replied, rule, says
from strict_anthropic import ping, stall, text, thinking, tool

from ttsr_proxy.config import HoldSettings

BAD = rule("no-bad-word", "BADWORD")
WRITE = {"file_path": "a.py", "content": "x = 1"}
STREAMED = 'Write[{"file_path": "a.py", "content": "x = 1"}]'


def test_only_what_could_become_a_match_is_held(playbook: Any) -> None:
    (
        playbook(BAD)
        >> says("go")
        << asked("user: go")
        >> answers(text("Hello ", stall(), "BADW", stall(), "EATHER", stall(), "."))
        << gets("start text[Hello ")
        >> goes_on()
        << nothing()
        >> goes_on()
        << gets("BADWEATHER")
        >> goes_on()
        << gets(".] end_turn stop")
        << finished()
    )


def test_white_space_is_held_until_text_follows(playbook: Any) -> None:
    (
        playbook(BAD)
        >> says("go")
        << asked("user: go")
        >> answers(text("\n\n", stall(), "Hello"))
        << gets("start")
        >> goes_on()
        << gets("text[\n\nHello] end_turn stop")
        << finished()
    )


def test_white_space_before_a_match_is_not_shown(playbook: Any) -> None:
    (
        playbook(BAD)
        >> says("go")
        << asked("user: go")
        >> answers(text("\n\n", "BADWORD"))
        << gets("start")
        << aborted()
        << asked("user: go | INTERRUPT(no-bad-word)")
    )


def test_a_call_is_held_until_it_is_complete_and_clean(playbook: Any) -> None:
    (
        playbook(BAD)
        >> says("go")
        << asked("user: go")
        >> answers(tool("Write", WRITE, midway=(stall(),)))
        << gets("start")
        >> goes_on()
        << gets(f"{STREAMED} tool_use stop")
        << finished()
    )


def test_a_call_that_no_interrupting_rule_can_reach_passes_live(playbook: Any) -> None:
    (
        playbook(rule("no-bad-word", "BADWORD", scope=("text",)), rule("no-x", "x", interrupt_mode="never"))
        >> says("go")
        << asked("user: go")
        >> answers(tool("Write", {"a": "b"}, midway=(stall(),)))
        << gets('start Write[{"a":')
        >> goes_on()
        << gets(' "b"}] tool_use stop')
        << finished()
    )


def test_a_suppressed_rule_holds_nothing(playbook: Any) -> None:
    (
        playbook(BAD)
        >> says("one")
        << asked("user: one")
        >> answers(text("BADWORD"))
        << gets("start")
        << aborted()
        << asked("user: one | INTERRUPT(no-bad-word)")
        >> answers(text("Good."))
        << gets("text[Good.] end_turn stop")
        << finished()
        >> says("two")
        << asked("user: one | INTERRUPT(no-bad-word)", "assistant: Good.", "user: two")
        >> answers(text("BADWO", stall(), "RD"))
        << gets("start text[BADWO")
        >> goes_on()
        << gets("RD] end_turn stop")
        << finished()
    )


def test_thinking_passes_live_unless_a_rule_watches_it(playbook: Any) -> None:
    (
        playbook(rule("no-bad-word", "BADWORD", scope=("text",)))
        >> says("go")
        << asked("user: go")
        >> answers(thinking("BADWO", stall(), "RD"), text("ok"))
        << gets("start thinking[BADWO")
        >> goes_on()
        << gets("RD +signed] text[ok] end_turn stop")
        << finished()
    )


def test_watched_thinking_is_cut_and_closed_with_the_proxys_mark(playbook: Any) -> None:
    book = (
        playbook(BAD)
        >> says("go")
        << asked("user: go")
        >> answers(thinking("I think ", "BADWORD"))
        << gets("start thinking[I think ")
        << aborted()
        << asked("user: go | INTERRUPT(no-bad-word)")
        >> answers(thinking("Better."), text("Good."))
        << gets(" +cut] thinking[Better. +signed] text[Good.] end_turn stop")
        << finished()
        >> says("more")
        << asked("user: go | INTERRUPT(no-bad-word)", "assistant: (Better.) | Good.", "user: more")
        >> answers(text("Yes."))
        << gets("start text[Yes.] end_turn stop")
        << finished()
    )
    assert book.agent.messages[1]["content"][0]["signature"].startswith("ttsr:")


def test_thinking_that_the_api_leaves_empty_is_noted_once(playbook: Any) -> None:
    book = (
        playbook(BAD)
        >> says("go")
        << asked("user: go")
        >> answers(thinking("a", omitted=True), text("ok"), thinking("b", omitted=True), text("ok"))
        << gets("start thinking[ +signed] text[ok] thinking[ +signed] text[ok] end_turn stop")
        << finished()
    )
    assert book.noted == ["not_inspected omitted thinking"]


def test_structured_output_is_held_whole_and_only_restarts(playbook: Any) -> None:
    book = playbook(BAD)
    book.agent.extra = {"output_config": {"format": {"type": "json_schema", "schema": {}}}}
    (
        book
        >> says("go")
        << asked("user: go")
        >> answers(text('{"a": 1, ', stall(), '"b": "BADWORD"}'))
        << gets("start")
        >> goes_on()
        << aborted()
        << asked("user: go | INTERRUPT(no-bad-word)")
        >> answers(text('{"a": 1, ', stall(), '"b": 2}'))
        << nothing()
        >> goes_on()
        << gets('text[{"a": 1, "b": 2}] end_turn stop')
        << finished()
    )


# Limits change delivery, never verdicts.


def test_text_is_held_for_so_many_seconds(playbook: Any) -> None:
    book = (
        playbook(BAD, hold=HoldSettings(max_seconds=5))
        >> says("go")
        << asked("user: go")
        >> answers(text("So ", "BADWO", stall(), "RD"))
        << gets("start text[So ")
        >> passes(4.9)
        << nothing()
        >> passes(0.1)
        << gets("BADWO")
        >> goes_on()
        << aborted()
        << asked("user: go", "assistant: So BADWO", "user: INTERRUPT(no-bad-word)")
    )
    assert book.log[0].late
    assert "has already seen the beginning" in book.log[0].injected


def test_text_is_held_for_so_many_characters(playbook: Any) -> None:
    bad = rule("no-tail", r"begin[^;]*;")
    book = (
        playbook(bad, hold=HoldSettings(max_chars=10))
        >> says("go")
        << asked("user: go")
        >> answers(text("begin ", "0123456789", stall(), " end;"))
        << gets("start text[begin ")
        >> goes_on()
        << aborted()
        << asked("user: go", "assistant: begin ", "user: INTERRUPT(no-tail)")
        >> answers(text("good"))
        << gets("] text[good] end_turn stop")
        << finished()
    )
    assert book.log[0].late
    assert "has already seen the beginning" in book.log[0].injected


def test_a_condition_that_could_start_anywhere_and_stay_open_is_not_held_in_prose(playbook: Any) -> None:
    book = (
        playbook(rule("no-x", r"[\s\S]*FORBIDDEN"))
        >> says("go")
        << asked("user: go")
        >> answers(text("Some text. ", stall(), "FORBIDDEN"))
        << gets("start text[Some text. ")
        >> goes_on()
        << aborted()
        << asked("user: go", "assistant: Some text. ", "user: INTERRUPT(no-x)")
    )
    assert book.log[0].late


# Signs of life.


def test_a_held_call_is_a_silence_that_is_filled_every_ten_seconds(playbook: Any) -> None:
    (
        playbook(BAD)
        >> says("go")
        << asked("user: go")
        >> answers(tool("Write", WRITE, midway=(stall(),)))
        << gets("start")
        >> passes(9.9)
        << nothing()
        >> passes(0.1)
        << gets("<ping>")
        >> passes(20)
        << gets("<ping> <ping>")
        >> goes_on()
        << gets(f"{STREAMED} tool_use stop")
        << finished()
    )


def test_a_client_that_counts_only_real_events_gets_real_events(playbook: Any) -> None:
    (
        playbook(BAD, activity="events")
        >> says("go")
        << asked("user: go")
        >> answers(text("Hello, ", "BADWORD"))
        << gets("start text[Hello, ")
        << aborted()
        << asked("user: go", "assistant: Hello, ", "user: INTERRUPT(no-bad-word)")
        >> passes(10)
        << gets("<ping> <empty>")
        >> answers(tool("Write", WRITE, midway=(stall(),)))
        << nothing()
        >> passes(10)
        << gets("<ping> <empty>")
        >> goes_on()
        << gets(f"] {STREAMED} tool_use stop")
        << finished()
    )


def test_without_an_open_block_a_real_event_is_a_stop_reason_of_null(playbook: Any) -> None:
    (
        playbook(BAD, activity="events")
        >> says("go")
        << asked("user: go")
        >> answers(tool("Write", WRITE, midway=(stall(),)))
        << gets("start")
        >> passes(10)
        << gets("<ping> <tick>")
        >> goes_on()
        << gets(f"{STREAMED} tool_use stop")
        << finished()
    )


def test_a_client_that_counts_only_content_gets_a_held_call_uninspected_before_it_gives_up(
    playbook: Any,
) -> None:
    book = playbook(BAD, activity="content") >> says("go") << asked("user: go")
    book >> answers(tool("Write", {"a": "BADWORD"}, midway=(stall(),)), text("later")) << gets("start")
    book >> passes(239) << gets(" ".join(["<ping> <tick>"] * 23)) >> passes(1) << gets('Write[{"a": "B')
    book >> goes_on() << gets('ADWORD"}] text[later] tool_use stop') << finished()
    assert book.noted == ["not_inspected held too long Write"]


def test_a_client_that_can_be_kept_alive_never_gets_a_held_call_uninspected(playbook: Any) -> None:
    book = playbook(BAD, activity="events") >> says("go") << asked("user: go")
    book >> answers(tool("Write", WRITE, midway=(stall(),))) << gets("start") >> passes(1000)
    book << gets(" ".join(["<ping> <tick>"] * 100))
    assert book.noted == []


def test_upstreams_own_silence_is_upstreams(playbook: Any) -> None:
    (
        playbook(BAD)
        >> says("go")
        << asked("user: go")
        >> answers(text("Hello", stall(), "."))
        << gets("start text[Hello")
        >> passes(100)
        << nothing()
        >> goes_on()
        << gets(".] end_turn stop")
        << finished()
    )


def test_a_response_that_is_not_streamed_has_no_sign_of_life(playbook: Any) -> None:
    book = playbook(BAD)
    book.agent.stream = False
    (
        book
        >> says("go")
        << asked("user: go")
        >> answers(text("BADWORD"))
        << aborted()
        << asked("user: go | INTERRUPT(no-bad-word)")
        >> passes(100)
        << nothing()
        >> answers(text("Good."))
        << replied(200, "Good. | end_turn")
        << finished()
    )


def test_upstreams_pings_pass_in_order(playbook: Any) -> None:
    book = playbook(BAD) >> says("go") << asked("user: go")
    book >> answers(ping(), text("a"), ping()) << gets("start <ping> text[a] <ping> end_turn stop")
    book << finished()
