"""The rulebook in requests, and rules that the model reads by `rule://`."""

from __future__ import annotations

import itertools
import json
from typing import Any

import aiohttp
import pytest
from coding_agent import Agent, EchoStyle
from proxy_under_test import Workspace
from strict_anthropic import StrictUpstream, text, thinking, tool, turn
from ttsr_asserts import assert_clean

EDIT = {"file_path": "a.py", "old_string": "a", "new_string": "b"}
READ_DB = {"file_path": "rule://db"}


@pytest.fixture(autouse=True)
def rules(workspace: Workspace) -> None:
    workspace.rulebook()


def suffix(call: Any) -> str:
    return str(call.body["system"][-1]["text"])


async def test_a_conversation_keeps_its_blocks_while_rules_change(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(thinking("1"), tool("Edit", EDIT)),
        turn(thinking("2"), tool("Read", READ_DB)),
        turn(thinking("3"), tool("Edit", EDIT)),
        turn(thinking("4"), text("BADWORD")),
        turn(thinking("5"), text("Done.")),
        turn(thinking("6"), text("Bye.")),
        turn(text("Hello.")),
    )
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy)
    assert_clean(await agent.say("go"), "rule://")
    workspace.rule_file("brief", "Be long.", alwaysApply=True)
    workspace.rule_file("new", "New.", description="A new one.")
    assert_clean(await agent.results(), "rule://")
    assert_clean(await agent.results(), "rule://")
    assert_clean(await agent.say("and?"), "rule://")
    assert upstream.refusals == []
    calls = upstream.calls
    first = suffix(calls[0])
    assert first.startswith("<generic-rules>\nBe brief.\n</generic-rules>")
    assert "- db (*.sql): How we write migrations." in first
    assert [suffix(call) for call in calls] == [first] * 6
    for earlier, later in itertools.pairwise(calls):
        assert json.dumps(later.body["system"]) == json.dumps(earlier.body["system"])
    other: Agent = await new_agent(proxy)
    await other.say("hi")
    assert "Be long." in suffix(upstream.calls[-1])
    assert "- new: A new one." in suffix(upstream.calls[-1])


async def test_a_rule_is_read_behind_the_clients_back(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(thinking("1"), text("Let me see."), tool("Read", READ_DB)),
        turn(thinking("2"), tool("Bash", {"command": "cat rule://no-bad-word"})),
        turn(thinking("3"), tool("Read", {"file_path": "rule://nothing"})),
        turn(thinking("4"), tool("Edit", EDIT)),
        turn(thinking("5"), text("Done.")),
    )
    agent: Agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert_clean(answer, "rule://")
    await agent.results()
    assert upstream.refusals == []
    assert upstream.unused == 0
    results = [
        (block["content"], block["is_error"])
        for message in upstream.calls[-1].messages
        for block in message["content"]
        if isinstance(block, dict) and block["type"] == "tool_result" and "is_error" in block
    ]
    assert results[0] == ("Never drop a column.", False)
    assert results[1] == ("Use the allowed word instead.", False)
    assert results[2][1] is True
    assert results[2][0].endswith("Rules: db, brief, no-bad-word")


@pytest.mark.parametrize("first", [True, False], ids=["read first", "read last"])
@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
async def test_a_read_beside_other_calls_is_answered_with_their_results(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any, first: bool, streams: bool
) -> None:
    calls = [tool("Read", READ_DB), tool("Edit", EDIT)]
    upstream.script(
        turn(thinking("1"), *(calls if first else reversed(calls))),
        turn(thinking("2"), text("Done.")),
        turn(thinking("3"), text("Bye.")),
    )
    agent: Agent = await new_agent(await start_proxy(), stream=streams, style=EchoStyle(cache_last=False))
    answer = await agent.say("go")
    assert_clean(answer, "rule://")
    await agent.results()
    await agent.say("more")
    assert upstream.refusals == []
    before, after = upstream.calls[-2].messages, upstream.calls[-1].messages
    assert json.dumps(after[: len(before)]) == json.dumps(before)
    assert "Never drop a column." in json.dumps(before[2])


async def test_reading_without_end_comes_to_an_end(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(*[turn(tool("Read", READ_DB)) for _ in range(10)], turn(text("Well.")))
    agent: Agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert len(upstream.calls) == 10
    assert "rule://db" in json.dumps(answer.blocks)
    await agent.results()
    assert upstream.refusals == []


async def test_an_unknown_history_gets_no_blocks(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(thinking("1"), text("One.")), turn(thinking("2"), text("Two.")))
    agent: Agent = await new_agent(await start_proxy())
    agent.base_url = upstream.url
    await agent.say("go")
    agent.base_url = (await start_proxy()).url
    await agent.say("more")
    assert "generic-rules" not in json.dumps(upstream.calls[-1].body.get("system"))


async def test_rules_are_listed_and_read_over_http(start_proxy: Any) -> None:
    url = (await start_proxy()).url
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{url}/ttsr/api/rules") as answer:
            listed = (await answer.json())["rules"]
        own = {rule["name"]: rule["bucket"] for rule in listed if rule["provider"] == "mounted"}
        assert own == {
            "brief": "always-apply",
            "db": "rulebook",
            "no-bad-word": "ttsr",
            "nothing": None,
        }
        async with session.get(f"{url}/p/default/ttsr/api/rules/db") as answer:
            rule = await answer.json()
        assert (rule["provider"], rule["bucket"], rule["state"], rule["reason"]) == (
            "mounted",
            "rulebook",
            "active",
            None,
        )
        assert rule["content"] == "Never drop a column."
        markdown = {"Accept": "text/markdown"}
        async with session.get(f"{url}/ttsr/api/rules/db", headers=markdown) as answer:
            assert await answer.text() == "Never drop a column."
            assert answer.content_type == "text/markdown"
        async with session.get(f"{url}/ttsr/api/rules/DB") as answer:
            assert answer.status == 404
            assert (await answer.json())["error"]["available"] == ["db", "brief", "no-bad-word"]
