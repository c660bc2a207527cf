"""What holds of every stream, however it is cut into pieces."""

from __future__ import annotations

import json
from typing import Any

import pytest
from coding_agent import Agent
from hypothesis import given, settings
from hypothesis import strategies as st
from legality import everything_in, read_legally
from playbook import rule
from stream_runs import Attempt, Run, play
from strict_anthropic import redacted, server_tool, text, thinking, tool, turn, validate
from strict_anthropic.wire import Writer

from ttsr_proxy.config import BudgetSettings, HoldSettings
from ttsr_proxy.protocols.anthropic import ANTHROPIC

BAD = "BADWORD"
RULES = (
    rule("no-bad-word", BAD),
    rule("no-open-end", r"<open[^>]*>"),
    rule("no-tail", r"tail(?!or)"),
    rule("quiet", "QUIET", interrupt_mode="never"),
    rule("no-print", ast_condition=("print($X)",), scope=("tool",)),
)
FORBIDDEN = (BAD, "<open>", "print(")
UNSEEN = (
    rule("unseen", "ZZZ-never-[a-z]+"),
    rule("unseen-tail", r"ZZ!(?!Z)"),
    rule("unseen-open", "<zz[^>]*>"),
)

JUDGED = (
    rule("polite", question="Is it rude?", scope=("text", "thinking", "tool")),
    rule("alpha", "alpha", question="Is alpha meant?"),
    rule("prints", ast_condition=("print($X)",), question="Does it print?", scope=("tool",)),
)

SIZES = st.lists(st.integers(1, 60), max_size=6)
WORDS = st.lists(
    st.sampled_from(
        [
            "alpha ",
            "B",
            "BAD",
            "BADW ",
            BAD,
            "<op",
            "<open",
            ">",
            "tail",
            "or ",
            " \n",
            "QUIET ",
            "é✓\U0001f600",
            "ok. ",
        ]
    ),
    min_size=1,
    max_size=10,
).map("".join)
CLEAN_WORDS = st.lists(
    st.sampled_from(["alpha ", "Z", "ZZ", "<z", "<zz", "\n", "é✓\U0001f600", "ok. ", "end"]),
    min_size=1,
    max_size=10,
).map("".join)


def _calls(words: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return words.map(lambda content: tool("Write", {"file_path": "a.py", "content": content}))


def _blocks(words: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.one_of(
        words.map(lambda said: text(said + ".")),
        words.map(thinking),
        _calls(words),
        st.just(1).map(lambda _: redacted()),
        st.just(1).map(lambda _: server_tool("web_search", {"query": "q"}, [])),
    )


def _turns(words: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Answers that end with text or a call, as no assistant message may end with thinking."""
    blocks = st.lists(_blocks(words), max_size=4)
    last = st.one_of(words.map(lambda said: text(said + ".")), _calls(words))
    eol = st.sampled_from(["\n", "\r\n"])
    return st.builds(
        lambda before, final, chunk, ends: turn(*before, final, chunk=chunk, eol=ends),
        blocks,
        last,
        st.sampled_from([1, 3, 7, 1000]),
        eol,
    )


TURNS = _turns(WORDS)
CLEAN_TURNS = _turns(CLEAN_WORDS)
SAFE_TURN = turn(text("All is well."))


def request() -> dict[str, Any]:
    agent = Agent("http://unused")
    agent.add_user({"type": "text", "text": "go"})
    return agent.body()


def answer(said: Any) -> Attempt:
    """An attempt that answers with a turn, as the API would write it for this request."""

    def write(body: dict[str, Any]) -> bytes:
        refusal = validate(body)
        assert refusal is None, (refusal, body["messages"])
        return b"".join(act for act in Writer(said, body).stream() if isinstance(act, bytes))

    return write


def recorded(said: Any) -> Attempt:
    """The same bytes for whoever asks."""
    data = answer(said)(request())
    return lambda body: data


def run_of(turns: Any, sizes: Any = (), make: Any = answer, **options: Any) -> Run:
    return play(
        ANTHROPIC, request(), RULES, [make(said) for said in [*turns, *[SAFE_TURN] * 5]], sizes, **options
    )


# Promise 1: transparent.


@given(CLEAN_TURNS, SIZES, st.booleans())
@settings(max_examples=60)
def test_without_a_match_the_client_gets_upstreams_bytes(said: Any, sizes: Any, lost: bool) -> None:
    data = recorded(said)
    run = play(ANTHROPIC, request(), UNSEEN, [data], sizes, lost=lost)
    assert run.sent == data({})
    assert run.log == []


@given(CLEAN_TURNS, st.data(), SIZES, st.booleans())
@settings(max_examples=60)
def test_a_stream_that_is_no_good_passes_as_it_came(said: Any, data: Any, sizes: Any, lost: bool) -> None:
    """Events left out, doubled, moved, cut off, or replaced: upstream's bytes are the client's.

    The openings of blocks stay in their order, since the client's blocks are numbered without gaps.
    """
    events = recorded(said)({}).split(b"\n\n")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(events) - 1))
        if b"content_block_start" in events[at]:
            continue
        match data.draw(st.sampled_from(["drop", "double", "move", "break", "garbage"])):
            case "drop":
                del events[at]
            case "double":
                events.insert(at, events[at])
            case "move":
                events.insert(data.draw(st.integers(0, len(events) - 1)), events.pop(at))
            case "break":
                # In thousandths, since ids make the events of each run differ in length.
                events[at] = events[at][: len(events[at]) * data.draw(st.integers(0, 1_000)) // 1_000]
            case _:
                events.insert(at, data.draw(st.binary(max_size=20)))
        if not events:
            return
    stream = b"\n\n".join(events)
    run = play(ANTHROPIC, request(), UNSEEN, [lambda body: stream], sizes, lost=lost)
    assert run.sent == stream


@given(TURNS, SIZES, st.booleans())
@settings(max_examples=60)
def test_judged_rules_leave_upstreams_bytes_alone_whatever_the_judge_says(
    said: Any, sizes: Any, lost: bool
) -> None:
    data = recorded(said)
    run = play(ANTHROPIC, request(), JUDGED, [data], sizes, lost=lost)
    assert run.sent == data({})
    assert {entry.trigger for entry in run.log} == {"judged"}
    whole = play(ANTHROPIC, request(), JUDGED, [data])
    assert (run.judged, run.log) == (whole.judged, whole.log)


@given(st.lists(TURNS, min_size=1, max_size=3), SIZES)
@settings(max_examples=40)
def test_judged_rules_beside_others_change_nothing_for_the_client(turns: Any, sizes: Any) -> None:
    streams = [recorded(said) for said in [*turns, *[SAFE_TURN] * 5]]
    without, beside = (
        play(ANTHROPIC, request(), rules, streams, sizes) for rules in (RULES, (*RULES, *JUDGED))
    )
    assert beside.sent == without.sent
    assert beside.requests == without.requests
    assert [entry for entry in beside.log if entry.trigger != "judged"] == without.log
    shown = everything_in(read_legally("anthropic", beside.sent))
    for output in beside.judged:
        for part in output["output"]["parts"]:
            assert json.dumps(part["text"], ensure_ascii=False)[1:-1] in shown


# Promise 2: invariant under any cut.


@given(st.lists(TURNS, min_size=1, max_size=3), SIZES, st.sampled_from(["discard", "keep"]), st.booleans())
@settings(max_examples=50)
def test_any_cut_of_the_bytes_gives_the_same_answer_and_the_same_log(
    turns: Any, sizes: Any, context_mode: Any, small_hold: bool
) -> None:
    hold = HoldSettings(max_chars=4 if small_hold else 4096)
    streams = [recorded(said) for said in turns]
    whole, cut = (
        play(
            ANTHROPIC,
            request(),
            RULES,
            [*streams, *[recorded_safe] * 5],
            cuts,
            context_mode=context_mode,
            hold=hold,
        )
        for recorded_safe in [recorded(SAFE_TURN)]
        for cuts in [(), sizes or (1,)]
    )
    assert cut.sent == whole.sent
    assert cut.requests == whole.requests
    assert cut.log == whole.log
    assert cut.notes == whole.notes


# Promises 3 and 4: never shown, legal.


@given(st.lists(TURNS, min_size=1, max_size=3), SIZES, st.sampled_from(["discard", "keep"]))
@settings(max_examples=60)
def test_every_answer_is_legal_and_shows_no_violation(turns: Any, sizes: Any, context_mode: Any) -> None:
    budget = BudgetSettings(per_rule=9, per_response=20)
    run = run_of(turns, sizes, context_mode=context_mode, budget=budget)
    taken = read_legally("anthropic", run.sent)
    assert taken.complete
    seen = everything_in(taken)
    assert not [word for word in FORBIDDEN if word in seen]
    assert not run.broken


@given(st.lists(TURNS, min_size=1, max_size=3), SIZES, st.sampled_from(["pass", "block"]))
@settings(max_examples=60)
def test_a_spent_budget_leaves_the_answer_legal(turns: Any, sizes: Any, on_exhausted: Any) -> None:
    budget = BudgetSettings(per_rule=1, per_response=1, on_exhausted=on_exhausted)
    run = run_of(turns, sizes, budget=budget)
    if on_exhausted == "block" and run.sent:
        assert BAD not in everything_in(read_legally("anthropic", run.sent))
    elif run.sent:
        read_legally("anthropic", run.sent)


def test_a_blocked_retry_opens_no_block_without_text() -> None:
    budget = BudgetSettings(per_rule=1, per_response=1, on_exhausted="block")
    turns = [turn(text(f"{BAD}."), chunk=1), turn(redacted(), text(f"B{BAD}."), chunk=3)]
    read_legally("anthropic", run_of(turns, [1], budget=budget).sent)


@given(st.lists(TURNS, min_size=1, max_size=3), SIZES, st.integers(0, 2_000), st.booleans())
@settings(max_examples=50)
def test_a_retry_that_is_cut_off_anywhere_leaves_the_answer_legal(
    turns: Any, sizes: Any, length: int, lost: bool
) -> None:
    first = turn(text(f"Hello, {BAD}"))
    attempts = [answer(first), lambda body: answer(turns[0])(body)[:length], *[answer(SAFE_TURN)] * 5]
    run = play(ANTHROPIC, request(), RULES, attempts, sizes, lost=lost)
    taken = read_legally("anthropic", run.sent)
    assert taken.texts[0].startswith("Hello, ")
    assert BAD not in everything_in(taken)


def test_the_checker_refuses_what_clients_choke_on() -> None:
    """The splices that are fatal to some client, one by one."""
    start = b'event: message_start\ndata: {"type":"message_start","message":{"content":[],"usage":{}}}\n\n'

    def event(kind: str, **fields: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()

    def block(index: int, content: str = "x") -> bytes:
        empty = {"type": "text", "text": ""}
        return (
            event("content_block_start", index=index, content_block=empty)
            + event("content_block_delta", index=index, delta={"type": "text_delta", "text": content})
            + event("content_block_stop", index=index)
        )

    def end(reason: str) -> bytes:
        delta = {"stop_reason": reason}
        return event("message_delta", delta=delta, usage={}) + event("message_stop")

    assert read_legally("anthropic", start + block(0) + end("end_turn")).complete
    for fatal in (
        start + start + block(0) + end("end_turn"),
        start + block(1) + end("end_turn"),
        start + block(0) + block(0) + end("end_turn"),
        start + block(0, " ") + end("end_turn"),
        start + block(0) + end("tool_use"),
        start + block(0) + end("end_turn") + end("end_turn"),
        start + block(0)[:-10],
        start + block(0),
        start + event("ttsr_notice") + block(0) + end("end_turn"),
    ):
        with pytest.raises(AssertionError):
            read_legally("anthropic", fatal)


@pytest.mark.parametrize("shown", ["Hello. ", ""])
def test_a_retry_that_gives_no_reason_to_stop_has_failed(shown: str) -> None:
    stop = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    attempts = [answer(turn(text("First."), text(f"{shown}{BAD}"))), lambda body: stop]
    run = play(ANTHROPIC, request(), RULES, attempts)
    taken = read_legally("anthropic", run.sent)
    assert (taken.complete, taken.stop_reason) == (True, "end_turn")
    assert BAD not in everything_in(taken)
    assert [entry.outcome for entry in run.log] == ["failed"]
