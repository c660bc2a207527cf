"""The rulebook over Responses: in the instructions, and read by calls that the client never sees."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from coding_agent import ResponsesAgent
from legality import read_legally
from proxy_under_test import Workspace
from strict_anthropic import text, thinking, tool, turn
from strict_openai_responses import StrictResponsesUpstream, custom
from ttsr_asserts import assert_clean

EDIT = {"file_path": "a.py", "old_string": "a", "new_string": "b"}
READ_DB = {"file_path": "rule://db"}
DB = "Never drop a column."

KEEPING: dict[str, dict[str, Any]] = {
    "whole history": {},
    "no ids": {"ids": False},
    "interleaved": {"interleaves": True},
    "stored": {"store": True},
    "chained": {"chains": True},
}
keeping = pytest.mark.parametrize("keeping", KEEPING.values(), ids=KEEPING.keys())
streamed = pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])


@pytest.fixture(autouse=True)
def rules(workspace: Workspace) -> None:
    workspace.rulebook()


def assert_same_beginning(upstream: StrictResponsesUpstream) -> None:
    """Every accepted request begins with all that upstream saw before."""
    accepted = [call.body["input"] for call in upstream.calls if call.refused is None]
    for before, after in itertools.pairwise(accepted):
        assert json.dumps(after[: len(before)]) == json.dumps(before)


def results(call: Any) -> list[str]:
    return [item["output"] for item in call.body["input"] if item["type"].endswith("_output")]


@keeping
@streamed
async def test_a_conversation_keeps_its_blocks_while_rules_change(
    workspace: Workspace,
    upstream: StrictResponsesUpstream,
    start_proxy: Any,
    new_agent: Any,
    streams: bool,
    keeping: dict[str, Any],
) -> None:
    upstream.script(
        turn(thinking("1"), tool("Edit", EDIT)),
        turn(thinking("2"), tool("Read", READ_DB)),
        turn(thinking("3"), tool("Edit", EDIT)),
        turn(text("BADWORD")),
        turn(text("Done.")),
        turn(text("Bye.")),
        turn(text("Hello.")),
    )
    proxy = await start_proxy()
    agent: ResponsesAgent = await new_agent(proxy, stream=streams, **keeping)
    assert_clean(await agent.say("go"), "rule://")
    workspace.rule_file("brief", "Be long.", alwaysApply=True)
    for step in (agent.results, agent.results, lambda: agent.say("and?")):
        assert_clean(await step(), "rule://")
    assert upstream.refusals == []
    first = upstream.calls[0].body["instructions"]
    assert first.startswith("You write code.\n\n<generic-rules>\nBe brief.\n</generic-rules>")
    assert "- db (*.sql): How we write migrations." in first
    assert {call.body["instructions"] for call in upstream.calls} == {first}
    if not agent.chains:
        assert_same_beginning(upstream)
    other: ResponsesAgent = await new_agent(proxy)
    await other.say("hi")
    assert "Be long." in upstream.calls[-1].body["instructions"]


@keeping
@streamed
async def test_a_rule_is_read_behind_the_clients_back(
    upstream: StrictResponsesUpstream,
    start_proxy: Any,
    new_agent: Any,
    streams: bool,
    keeping: dict[str, Any],
) -> None:
    upstream.script(
        turn(thinking("1"), text("Let me see."), tool("Read", READ_DB)),
        turn(thinking("2"), tool("Bash", {"command": "cat rule://no-bad-word"}), tool("Read", READ_DB)),
        turn(tool("Read", {"file_path": "rule://nothing"})),
        turn(thinking("4"), text("So."), tool("Edit", EDIT)),
        turn(thinking("5"), text("Done.")),
        turn(text("Bye.")),
    )
    agent: ResponsesAgent = await new_agent(await start_proxy(), stream=streams, **keeping)
    answer = await agent.say("go")
    assert_clean(answer, "rule://")
    if streams:
        read_legally("openai-responses", answer.raw)
        assert answer.texts == ["Let me see.", "So."]
    read = results(upstream.calls[3])
    assert read[:3] == [DB, "Use the allowed word instead.", DB]
    assert read[3].endswith("Rules: db, brief, no-bad-word")
    await agent.results()
    await agent.say("more")
    assert upstream.refusals == []
    assert upstream.unused == 0
    if not agent.chains:
        assert_same_beginning(upstream)


CALLS = {
    "read first": [tool("Read", READ_DB), tool("Edit", EDIT)],
    "read last": [tool("Edit", EDIT), tool("Read", READ_DB)],
    "read between": [custom("apply_patch", "x"), tool("Read", READ_DB), tool("Read", {"file_path": "a"})],
    "two reads": [tool("Read", READ_DB), tool("Edit", EDIT), tool("Bash", {"command": "cat rule://brief"})],
    "reasoning between": [tool("Edit", EDIT), thinking("hm"), tool("Read", READ_DB)],
}
# A client that puts its results behind their calls would end its request with reasoning, which no API takes.
IN_ONE_PIECE = [
    (keeping, name)
    for keeping in KEEPING
    for name in CALLS
    if (keeping, name) != ("interleaved", "reasoning between")
]


@streamed
@pytest.mark.parametrize(("style", "name"), IN_ONE_PIECE, ids=[" ".join(both) for both in IN_ONE_PIECE])
async def test_a_read_beside_other_calls_is_answered_with_their_results(
    upstream: StrictResponsesUpstream,
    start_proxy: Any,
    new_agent: Any,
    style: str,
    name: str,
    streams: bool,
) -> None:
    calls = CALLS[name]
    upstream.script(
        turn(thinking("1"), *calls), turn(thinking("2"), text("Done.")), turn(thinking("3"), text("Bye."))
    )
    agent: ResponsesAgent = await new_agent(await start_proxy(), stream=streams, **KEEPING[style])
    answer = await agent.say("go")
    assert_clean(answer, "rule://")
    read = [one for one in calls if "rule://" in str(getattr(one, "input", ""))]
    assert len(answer.calls) == sum(hasattr(one, "id") for one in calls) - len(read)
    await agent.results()
    await agent.say("more")
    assert upstream.refusals == []
    assert DB in results(upstream.calls[1])
    if not agent.chains:
        assert_same_beginning(upstream)


async def test_the_client_knows_the_response_by_its_first_id_and_upstream_by_its_last(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text("Hm."), tool("Read", READ_DB)), turn(text("Done.")), turn(text("Bye.")))
    agent: ResponsesAgent = await new_agent(await start_proxy(), chains=True)
    await agent.say("go")
    known = agent.last_id
    await agent.say("on")
    first, last, _ = upstream.kept.responses
    assert known == first
    assert upstream.calls[-1].body["previous_response_id"] == last
    assert upstream.refusals == []


async def test_a_chain_that_the_proxy_does_not_know_gets_no_blocks(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text("One.")), turn(text("Two.")))
    agent: ResponsesAgent = await new_agent(await start_proxy(), chains=True)
    proxy = agent.base_url
    agent.base_url = upstream.url
    await agent.say("go")
    agent.base_url = proxy
    await agent.say("more")
    assert upstream.calls[-1].body["instructions"] == "You write code."


@keeping
async def test_it_is_all_there_after_the_proxy_was_started_again(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any, keeping: dict[str, Any]
) -> None:
    upstream.script(
        turn(thinking("1"), tool("Read", READ_DB), tool("Edit", EDIT)),
        turn(thinking("2"), tool("Read", READ_DB)),
        turn(thinking("3"), tool("Edit", EDIT)),
        turn(thinking("4"), text("Bye.")),
    )
    agent: ResponsesAgent = await new_agent(await start_proxy(), **keeping)
    await agent.say("go")
    for _ in range(2):
        agent.base_url = (await start_proxy()).url
        assert_clean(await agent.results(), "rule://")
    assert upstream.refusals == []
    assert len({call.body["instructions"] for call in upstream.calls}) == 1
    if not agent.chains:
        assert_same_beginning(upstream)


async def test_reading_without_end_comes_to_an_end(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(*[turn(tool("Read", READ_DB)) for _ in range(10)], turn(text("Well.")))
    agent: ResponsesAgent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert len(upstream.calls) == 10
    assert "rule://db" in json.dumps(answer.blocks)
    await agent.results()
    assert upstream.refusals == []
