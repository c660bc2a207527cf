"""The promises about streams, for the protocols of OpenAI."""

from __future__ import annotations

from typing import Any

import pytest
from coding_agent import ChatAgent, ResponsesAgent
from hypothesis import given, settings
from hypothesis import strategies as st
from legality import everything_in, read_legally
from playbook import rule
from stream_runs import Attempt, play
from strict_anthropic import text, tool, turn
from strict_openai_chat import Dialect
from strict_openai_chat.wire import Writer as ChatWriter
from strict_openai_responses.wire import Writer as ResponsesWriter

from ttsr_proxy.config import BudgetSettings
from ttsr_proxy.protocols.openai_chat import OPENAI_CHAT
from ttsr_proxy.protocols.openai_responses import OPENAI_RESPONSES

BAD = "BADWORD"
PROTOCOLS = {
    "chat": (OPENAI_CHAT, ChatAgent, lambda said, body: ChatWriter(said, body, Dialect())),
    "responses": (OPENAI_RESPONSES, ResponsesAgent, ResponsesWriter),
}
SIZES = st.lists(st.integers(1, 60), max_size=6)
WORDS = st.lists(
    st.sampled_from(["alpha ", "B", "BAD", "BADW ", BAD, "\n", "é✓\U0001f600", "ok. "]),
    min_size=1,
    max_size=8,
).map(lambda words: "".join(words) + ".")
CALLS = WORDS.map(lambda content: tool("Write", {"file_path": "a.py", "content": content}))
TURNS = st.builds(
    lambda said, calls, chunk: turn(text(said), *calls, chunk=chunk),
    WORDS,
    st.lists(CALLS, max_size=2),
    st.sampled_from([1, 3, 7, 1000]),
)
SAFE = turn(text("All is well."))


def request(protocol: str) -> dict[str, Any]:
    agent = PROTOCOLS[protocol][1]("http://unused")
    agent.add_user({"type": "text", "text": "go"})
    return dict(agent.body())


def answer(protocol: str, said: Any) -> Attempt:
    make = PROTOCOLS[protocol][2]
    return lambda body: b"".join(act for act in make(said, body).stream() if isinstance(act, bytes))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(said=TURNS, sizes=SIZES, lost=st.booleans())
@settings(max_examples=25)
def test_without_a_match_the_client_gets_upstreams_bytes(
    protocol: str, said: Any, sizes: Any, lost: bool
) -> None:
    data = answer(protocol, said)(request(protocol))
    unseen = (rule("unseen", "ZZZ-never-[a-z]+"), rule("unseen-tail", r"ZZ!(?!Z)"))
    run = play(PROTOCOLS[protocol][0], request(protocol), unseen, [lambda body: data], sizes, lost=lost)
    assert run.sent == data
    assert run.log == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(said=TURNS, sizes=SIZES, lost=st.booleans())
@settings(max_examples=25)
def test_judged_rules_leave_upstreams_bytes_alone_whatever_the_judge_says(
    protocol: str, said: Any, sizes: Any, lost: bool
) -> None:
    data = answer(protocol, said)(request(protocol))
    judged = (rule("polite", question="Is it rude?"), rule("alpha", "alpha", question="Is alpha meant?"))
    run, whole = (
        play(PROTOCOLS[protocol][0], request(protocol), judged, [lambda body: data], cuts, lost=lost)
        for cuts in (sizes, ())
    )
    assert run.sent == data
    assert (run.judged, run.log) == (whole.judged, whole.log)
    assert {entry.trigger for entry in run.log} == {"judged"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(turns=st.lists(TURNS, min_size=1, max_size=2), sizes=SIZES)
@settings(max_examples=25)
def test_every_answer_is_legal_and_shows_no_violation(protocol: str, turns: Any, sizes: Any) -> None:
    attempts = [answer(protocol, said) for said in [*turns, *[SAFE] * 3]]
    budget = BudgetSettings(per_rule=9, per_response=20)
    wire = PROTOCOLS[protocol][0]
    run = play(wire, request(protocol), [rule("no-bad-word", BAD)], attempts, sizes, budget=budget)
    taken = read_legally(wire.name, run.sent)
    assert taken.complete
    assert BAD not in everything_in(taken)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("sizes", [[], [1], [40]])
def test_an_answer_cut_in_its_text_is_legal_when_the_retry_says_nothing(protocol: str, sizes: Any) -> None:
    attempts = [answer(protocol, turn(text(f"Hello there. {BAD}"))), answer(protocol, turn())]
    wire = PROTOCOLS[protocol][0]
    run = play(wire, request(protocol), [rule("no-bad-word", BAD)], attempts, sizes)
    taken = read_legally(wire.name, run.sent)
    assert taken.complete
    assert taken.text.strip() == "Hello there."


@pytest.mark.parametrize("before", ["Hello there. ", ""])
def test_a_retry_that_gives_no_reason_to_stop_has_failed(before: str) -> None:
    cut = turn(text("First."), text(f"{before}{BAD}"))
    attempts = [answer("chat", cut), lambda body: b"data: [DONE]\n\n"]
    run = play(OPENAI_CHAT, request("chat"), [rule("no-bad-word", BAD)], attempts)
    taken = read_legally("openai-chat", run.sent)
    assert taken.error is not None or taken.complete
    assert BAD not in everything_in(taken)
    assert [entry.outcome for entry in run.log] == ["failed"]
