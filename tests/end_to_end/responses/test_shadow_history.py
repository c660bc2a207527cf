"""Clients resend what they know, or name the response that they continue; upstream knows what was hidden."""

from __future__ import annotations

import itertools
from typing import Any

import aiohttp
import pytest
from coding_agent import ResponsesAgent
from proxy_under_test import Workspace
from strict_anthropic import http_error, text, thinking, tool, turn
from strict_openai_responses import StrictResponsesUpstream, custom
from ttsr_asserts import assert_clean

BAD = "BADWORD"
CLEAN_WRITE = {"file_path": "a.py", "content": "print('fine')\n"}
BAD_WRITE = {"file_path": "a.py", "content": f"print('{BAD}')\n"}
READ = {"file_path": "a.py"}


@pytest.fixture(autouse=True)
def rule(workspace: Workspace) -> None:
    workspace.rule("no-bad-word", BAD, scope=["text", "tool"])


def assert_grows(upstream: StrictResponsesUpstream) -> None:
    """Every accepted request begins with all that upstream saw before."""
    accepted = [call.body["input"] for call in upstream.calls if call.refused is None]
    for before, after in itertools.pairwise(accepted):
        assert after[: len(before)] == before


def texts(received: Any) -> str:
    return str(received.body["input"])


@pytest.mark.parametrize("style", [{}, {"ids": False}, {"store": True}], ids=["ids", "no ids", "stored"])
async def test_a_continued_answer_is_restored_in_every_later_request(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any, style: dict[str, Any]
) -> None:
    agent = await new_agent(await start_proxy(), **style)
    upstream.script(
        turn(thinking("Hm."), text(f"Shown words, then {BAD}")),
        turn(thinking("So."), text("the rest."), tool("Write", CLEAN_WRITE), custom("apply_patch", "x")),
        turn(text("More.")),
        turn(tool("Read", READ)),
        turn(text("Bye.")),
    )
    assert_clean(await agent.say("go"), BAD)
    for step in (agent.results, lambda: agent.say("on"), agent.results):
        answer = await step()
        assert answer.complete, answer.error
    assert upstream.refusals == []
    assert upstream.unused == 0
    assert_grows(upstream)
    assert BAD not in texts(upstream.calls[-1])


async def test_results_between_the_calls_of_one_answer_keep_their_place(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any
) -> None:
    agent = await new_agent(await start_proxy(), interleaves=True)
    upstream.script(
        turn(text(f"Shown, {BAD}")),
        turn(thinking("So."), tool("Read", READ), tool("Write", CLEAN_WRITE)),
        turn(text("More.")),
        turn(text("Bye.")),
    )
    await agent.say("go")
    await agent.results()
    await agent.say("on")
    assert upstream.refusals == []
    assert_grows(upstream)
    assert texts(upstream.calls[-1]).count("<system-interrupt") == 1
    assert texts(upstream.calls[-1]).count("Shown, ") == 1


async def test_the_client_keeps_its_id_and_upstream_gets_its_own(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any
) -> None:
    agent = await new_agent(await start_proxy(), chains=True)
    upstream.script(turn(text(f"Shown, {BAD}")), turn(text("rest.")), turn(text("More.")), turn(text("Bye.")))
    answer = await agent.say("one")
    first, second = (next(iter(_ids(call.wrote))) for call in upstream.calls)
    assert answer.message["id"] == first
    assert all(event["response"]["id"] == first for event in answer.events if "response" in event)
    await agent.say("two")
    assert upstream.calls[2].body["previous_response_id"] == second
    assert [item["role"] for item in upstream.calls[2].body["input"]] == ["user"]
    answer = await agent.say("three")
    assert upstream.calls[3].body["previous_response_id"] == agent_previous(upstream, 2)
    assert upstream.refusals == []


def _ids(wrote: bytes | bytearray) -> list[str]:
    return [part.split('"')[0] for part in bytes(wrote).decode().split('"response": {"id": "')[1:]]


def agent_previous(upstream: StrictResponsesUpstream, number: int) -> str:
    return _ids(upstream.calls[number].wrote)[0]


async def test_a_chain_goes_on_behind_a_response_that_upstream_never_finished(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any
) -> None:
    agent = await new_agent(await start_proxy(repeat_mode="always"), chains=True)
    upstream.script(
        turn(text("Zero.")),
        turn(thinking("plan"), tool("Read", READ), tool("Write", BAD_WRITE)),
        turn(thinking("plan"), tool("Read", READ), tool("Write", BAD_WRITE)),
        turn(text("Good.")),
        turn(text("Bye.")),
    )
    await agent.say("zero")
    await agent.say("one")
    answer = await agent.results()
    assert answer.kinds[-1] == "tool_use"
    await agent.results()
    await agent.say("last")
    assert upstream.refusals == []
    known = agent_previous(upstream, 0)
    assert [call.body.get("previous_response_id") for call in upstream.calls[:4]] == [
        None,
        known,
        known,
        known,
    ]
    kinds = [item["type"] for item in upstream.calls[2].body["input"]]
    assert kinds == ["message", "function_call", "function_call_output", "message"]
    assert "one" in texts(upstream.calls[3])
    assert upstream.calls[4].body["previous_response_id"] == agent_previous(upstream, 3)


@pytest.mark.parametrize("style", [{}, {"chains": True}], ids=["whole history", "chained"])
async def test_it_is_restored_after_the_proxy_was_started_again(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any, style: dict[str, Any]
) -> None:
    agent = await new_agent(await start_proxy(repeat_mode="always"), **style)
    upstream.script(
        turn(thinking("hm"), tool("Read", READ), tool("Write", BAD_WRITE)),
        turn(text(f"Shown, {BAD}")),
        turn(text("rest.")),
        turn(text("More.")),
    )
    await agent.say("go")
    for step in (agent.results, lambda: agent.say("on")):
        agent.base_url = (await start_proxy(repeat_mode="always")).url
        assert (await step()).complete
    assert upstream.refusals == []
    if not style:
        assert_grows(upstream)
        assert texts(upstream.calls[-1]).count("<system-interrupt") == 2


@pytest.mark.parametrize("style", [{}, {"chains": True}], ids=["whole history", "chained"])
async def test_rewound_and_forked_conversations_follow_their_own_paths(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any, style: dict[str, Any]
) -> None:
    agent: ResponsesAgent = await new_agent(await start_proxy(), **style)
    upstream.script(
        turn(text("First.")),
        turn(text(f"Shown, {BAD}")),
        turn(text("rest."), tool("Write", CLEAN_WRITE)),
        turn(text("Left.")),
        turn(text("Right.")),
        turn(text("Rewound.")),
    )
    await agent.say("one")
    rewound = agent.fork()
    await agent.say("two")
    left, right = agent.fork(), agent.fork()
    await left.results()
    await right.results(Write="other")
    await rewound.say("three")
    assert upstream.refusals == []
    assert upstream.unused == 0
    assert "<system-interrupt" not in texts(upstream.calls[-1])
    if style:
        names = [call.body["previous_response_id"] for call in upstream.calls[3:]]
        assert names[0] == names[1] == agent_previous(upstream, 2)
        assert names[2] == agent_previous(upstream, 0)


async def test_a_reference_to_a_cut_item_is_what_upstream_has_in_its_place(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any
) -> None:
    agent: ResponsesAgent = await new_agent(await start_proxy(), store=True)
    upstream.script(turn(text(f"Shown, {BAD}")), turn(text("rest."), tool("Read", READ)), turn(text("More.")))
    answer = await agent.say("go")
    agent.messages = [
        agent.messages[0],
        *({"type": "item_reference", "id": item["id"]} for item in answer.message["output"]),
        {"type": "function_call_output", "call_id": answer.calls[0]["call_id"], "output": "ok"},
    ]
    assert (await agent.ask()).complete
    assert upstream.refusals == []
    assert "Shown, " in texts(upstream.calls[-1])
    assert "<system-interrupt" in texts(upstream.calls[-1])


@pytest.mark.parametrize("style", [{}, {"chains": True}], ids=["whole history", "chained"])
async def test_a_rule_that_does_not_interrupt_reminds_behind_the_result(
    workspace: Workspace,
    upstream: StrictResponsesUpstream,
    start_proxy: Any,
    new_agent: Any,
    style: dict[str, Any],
) -> None:
    workspace.rule("no-bad-word", BAD, scope=["text", "tool"], interruptMode="never")
    proxy = await start_proxy()
    agent = await new_agent(proxy, **style)
    upstream.script(
        turn(thinking("a"), custom("apply_patch", BAD)), turn(tool("Read", READ)), turn(text("Done."))
    )
    answer = await agent.say("go")
    assert answer.calls[0]["input"] == BAD
    await agent.results()
    given = upstream.calls[1].body["input"]
    assert given[-2]["type"] == "custom_tool_call_output"
    assert given[-1]["content"][0]["text"].startswith("<system-reminder")
    await agent.results()
    assert upstream.refusals == []
    assert ("<system-reminder" in texts(upstream.calls[2])) is (not style)
    await proxy.log(("reminded", "clean"))


async def test_a_refused_reminder_is_left_out(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any
) -> None:
    agent = await new_agent(await start_proxy())
    upstream.script(turn(tool("Write", BAD_WRITE)), http_error(400), turn(text("Fine.")))
    answer = await agent.say("go")
    assert answer.complete
    assert upstream.calls[2].body == upstream.calls[0].body


async def test_token_counts_are_of_the_history_that_upstream_knows(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any
) -> None:
    proxy = await start_proxy()
    agent = await new_agent(proxy)
    upstream.script(turn(text(f"Shown, {BAD}")), turn(text("rest.")))
    await agent.say("go")
    agent.add_user({"text": "on"})
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{proxy.url}/v1/responses/input_tokens",
            json=agent.body(),
            headers={"authorization": "Bearer secret-key"},
        ) as response,
    ):
        assert response.status == 200
    assert "<system-interrupt" in texts(upstream.counts[0])


@pytest.mark.parametrize("rest", ["", "?include=x", "/input_items?limit=2"])
async def test_an_interrupted_response_is_asked_for_by_the_id_that_upstream_knows(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any, rest: str
) -> None:
    proxy = await start_proxy()
    agent = await new_agent(proxy, store=True)
    upstream.script(turn(text(f"Shown, {BAD}")), turn(text("rest.")), turn(text("Untouched.")))
    await agent.say("go")
    interrupted = agent.last_id
    await agent.say("on")
    untouched = agent.last_id
    finished, last = upstream.kept.responses
    assert untouched == last
    assert interrupted not in (finished, last)

    async def asked(response_id: str, key: str = "secret-key") -> str:
        url = f"{proxy.url}/v1/responses/{response_id}{rest}"
        async with (
            aiohttp.ClientSession() as session,
            session.get(url, headers={"authorization": f"Bearer {key}"}),
        ):
            received = upstream.received[-1]
            return f"{received.path}?{received.query}".removeprefix("/v1/responses/").rstrip("?")

    assert await asked(interrupted) == f"{finished}{rest}"
    assert await asked(untouched) == f"{untouched}{rest}"
    assert await asked("resp_unknown") == f"resp_unknown{rest}"
    assert await asked(interrupted, "another-key") == f"{interrupted}{rest}"
