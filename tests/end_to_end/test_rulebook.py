"""The rulebook in requests, and rules that the model reads by `rule://`."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from coding_agent import Agent, EchoStyle
from proxy_under_test import Proxy, Workspace, listening
from strict_anthropic import StrictUpstream, http_error, text, thinking, tool, turn
from ttsr_asserts import assert_clean

from ttsr_proxy.config import RulebookSettings
from ttsr_proxy.web.app import create_app
from ttsr_proxy.web.server import make_runner

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


CACHED = {"type": "ephemeral"}


def blocks(body: Any) -> list[dict[str, Any]]:
    """All blocks of a request in the order in which caches see them."""
    return [
        *body["system"],
        *(block for message in body["messages"] for block in message["content"] if isinstance(block, dict)),
    ]


async def test_rule_edits_between_turns_leave_all_earlier_bytes_and_breakpoints_as_they_are(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(thinking("1"), tool("Read", READ_DB), tool("Edit", EDIT)),
        turn(thinking("2"), tool("Read", {"file_path": "rule://brief"})),
        turn(thinking("3"), tool("Edit", EDIT)),
        turn(thinking("4"), text("BADWORD")),
        turn(thinking("5"), text("Done.")),
        turn(thinking("6"), text("Bye.")),
    )
    own = [
        {"type": "text", "text": "You write code."},
        {"type": "text", "text": "With care.", "cache_control": CACHED},
    ]
    agent: Agent = await new_agent(
        await start_proxy(), system=own, style=EchoStyle(cache_last=False), extra={"metadata": {}}
    )
    for at, step in enumerate(
        (lambda: agent.say("go"), agent.results, agent.results, lambda: agent.say("on"))
    ):
        assert_clean(await step(), "rule://")
        workspace.rule_file("brief", f"Be {at}.", alwaysApply=True)
        workspace.rule_file(f"new-{at}", "New.", description="A new one.")
    assert upstream.refusals == []
    for earlier, later in itertools.pairwise(upstream.calls):
        assert later.body["system"] == earlier.body["system"]
        assert json.dumps(later.body["tools"]) == json.dumps(earlier.body["tools"])
        before = blocks(earlier.body)
        assert json.dumps(blocks(later.body)[: len(before)]) == json.dumps(before)
    for call in upstream.calls:
        assert call.body["system"][:2] == own
        assert [block for block in blocks(call.body) if "cache_control" in block] == [own[1]]
    # What is read is what the rule says today, the list is what it was.
    assert "Be 0." in json.dumps(upstream.calls[2].body)
    assert "new-0" not in json.dumps(upstream.calls[-1].body)


async def test_a_prompt_of_one_text_stays_in_front(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text("One.")), turn(text("Two.")))
    proxy = await start_proxy()
    await (await new_agent(proxy)).say("go")
    await (await new_agent(proxy, system=[])).say("go")
    assert upstream.calls[0].body["system"][0] == {"type": "text", "text": "You write code."}
    assert upstream.calls[1].body["system"][0]["text"].startswith("<generic-rules>")


async def test_what_the_prompt_says_already_is_not_said_again(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text("One.")), turn(text("Two.")))
    proxy = await start_proxy()
    await (await new_agent(proxy, system="# Rules\n\nBe\n brief.")).say("go")
    assert suffix(upstream.calls[0]).startswith("<domain-rules>")
    both = "Be brief. Also:\n- db (*.sql): How we write migrations.\n"
    await (await new_agent(proxy, system=both)).say("go")
    assert upstream.calls[1].body["system"] == both


async def test_a_first_request_that_is_refused_for_it_goes_without(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(http_error(400), turn(tool("Read", READ_DB)), turn(text("Bye.")))
    agent: Agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert answer.calls[0]["input"] == READ_DB
    assert [call.body["system"] == "You write code." for call in upstream.calls] == [False, True]
    await agent.results()
    assert upstream.calls[2].body["system"] == "You write code."
    assert upstream.refusals == []


async def test_an_error_that_is_not_about_it_is_the_clients(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(http_error(529), http_error(400), http_error(400, message="no such model"))
    agent: Agent = await new_agent(await start_proxy())
    assert (await agent.say("go")).status == 529
    answer = await agent.ask()
    assert (answer.status, answer.error["message"]) == (400, "no such model")  # type: ignore[index]


async def test_token_counts_are_of_the_prompt_that_is_sent(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(thinking("1"), tool("Read", READ_DB), tool("Edit", EDIT)), turn(text("Done.")))
    agent: Agent = await new_agent(await start_proxy())
    agent.add_user({"type": "text", "text": "go"})
    await agent.count_tokens()
    await agent.ask()
    workspace.rule_file("brief", "Be long.", alwaysApply=True)
    agent.add_results()
    await agent.count_tokens()
    await agent.ask()
    assert upstream.refusals == []
    for counted, asked in zip(upstream.counts, upstream.calls, strict=True):
        for field in ("system", "messages", "tools"):
            assert counted.body[field] == asked.body[field]


CLAUDE_CODE = {"user-agent": "claude-cli/2.1.197 (external, cli)", "x-claude-code-session-id": "s"}


async def test_side_calls_of_an_agent_get_no_rulebook(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text("A title")), turn(tool("Read", READ_DB)), turn(text("Hi.")))
    proxy = await start_proxy()
    title: Agent = await new_agent(proxy, headers=CLAUDE_CODE, tools=[])
    await title.say("go")
    assert upstream.calls[0].body["system"] == "You write code."
    await (await new_agent(proxy, headers=CLAUDE_CODE)).say("go")
    assert suffix(upstream.calls[1]).startswith("<generic-rules>")
    assert len(upstream.calls) == 3


@pytest.mark.parametrize(
    ("settings", "headers", "given"),
    [
        (RulebookSettings(enabled=False), {}, False),
        (RulebookSettings(disabled_agents=("claude-code",)), CLAUDE_CODE, False),
        (RulebookSettings(disabled_agents=("claude-*",)), CLAUDE_CODE, False),
        (RulebookSettings(disabled_agents=("claude-code",)), {}, True),
        (RulebookSettings(disabled_agents=("main",)), CLAUDE_CODE, False),
        (RulebookSettings(disabled_agents=("main",)), {**CLAUDE_CODE, "x-claude-code-agent-id": "a1"}, True),
    ],
)
async def test_it_can_be_off_for_all_and_for_some(
    upstream: StrictUpstream,
    start_proxy: Any,
    new_agent: Any,
    settings: RulebookSettings,
    headers: dict[str, str],
    given: bool,
) -> None:
    upstream.script(turn(tool("Read", READ_DB)), turn(text("Done.")))
    agent: Agent = await new_agent(await start_proxy(rulebook=settings), headers=headers)
    answer = await agent.say("go")
    assert ("generic-rules" in json.dumps(upstream.calls[0].body)) is given
    assert ("rule://db" in json.dumps(answer.blocks)) is not given


async def test_a_rule_is_for_the_agents_that_it_names(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    workspace.rule_file("brief", "Be brief.", alwaysApply=True, agents=["review*"])
    workspace.rule_file("db", "Never drop a column.", description="Migrations.", agents=["main"])
    upstream.script(turn(text("One.")), turn(text("Two.")))
    proxy = await start_proxy()
    for agent in ("main", "review-1"):
        sub = {} if agent == "main" else {"x-claude-code-agent-id": agent}
        await (await new_agent(proxy, headers={**CLAUDE_CODE, **sub})).say("go")
    main, review = map(suffix, upstream.calls)
    assert "- db:" in main
    assert "Be brief." not in main
    assert "Be brief." in review
    assert "- db:" not in review


async def test_an_agent_that_resolves_rules_itself_keeps_its_calls(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(tool("Read", READ_DB)))
    agent: Agent = await new_agent(await start_proxy(), headers={"user-agent": "omp/18.2.3"})
    answer = await agent.say("go")
    assert answer.calls[0]["input"] == READ_DB
    assert suffix(upstream.calls[0]).startswith("<generic-rules>")


async def test_without_rules_for_a_prompt_and_without_matching_all_passes(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    for name in ("brief", "db"):
        (workspace.rules / f"{name}.md").unlink()
    upstream.script(turn(tool("Read", READ_DB)))
    agent: Agent = await new_agent(await start_proxy(enabled=False))
    agent.add_user({"type": "text", "text": "go"})
    body = json.dumps(agent.body()).encode()
    answer = await agent.ask()
    assert upstream.calls[0].raw == body
    assert answer.raw == bytes(upstream.calls[0].wrote)


async def test_it_is_all_there_after_the_proxy_was_started_again(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(thinking("1"), tool("Read", READ_DB), tool("Edit", EDIT)),
        turn(thinking("2"), tool("Read", READ_DB)),
        turn(thinking("3"), tool("Edit", EDIT)),
        turn(thinking("4"), text("Bye.")),
    )
    agent: Agent = await new_agent(await start_proxy())
    await agent.say("go")
    for _ in range(2):
        workspace.rule_file("brief", "Be long.", alwaysApply=True)
        agent.base_url = (await start_proxy()).url
        assert_clean(await agent.results(), "rule://")
    assert upstream.refusals == []
    assert len({suffix(call) for call in upstream.calls}) == 1


async def test_a_broken_rule_in_the_answer_behind_a_read_is_interrupted_as_ever(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(thinking("1"), text("Let me see."), tool("Read", READ_DB)),
        turn(thinking("2"), text("Then BADWORD")),
        turn(thinking("3"), tool("Read", {"file_path": "rule://no-bad-word"})),
        turn(thinking("4"), text("then the allowed word.")),
        turn(thinking("5"), text("Bye.")),
    )
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy)
    answer = await agent.say("go")
    assert_clean(answer, "BADWORD")
    assert answer.texts == ["Let me see.", "Then ", "then the allowed word."]
    await agent.say("on")
    assert upstream.refusals == []
    await proxy.log(("interrupted", "clean"))


async def test_each_project_has_its_own_rules_in_prompts_reads_and_lists(
    workspace: Workspace, upstream: StrictUpstream, new_agent: Any, tmp_path: Path
) -> None:
    other = Workspace(tmp_path / "other")
    other.rule_file("shop", "Prices are in cents.", description="How we name prices.")
    settings = workspace.settings(upstream.url)
    shop = replace(settings.projects[0], name="shop", path=other.project, rules=(other.rules,))
    runner = make_runner(
        create_app(replace(settings, projects=(*settings.projects, shop))), drain_seconds=0.1
    )
    upstream.script(turn(tool("Read", READ_DB)), turn(tool("Read", {"file_path": "rule://shop"})))
    upstream.script(turn(text("Done.")), turn(text("Hi.")))
    async with listening(runner) as url, aiohttp.ClientSession() as session:
        await (await new_agent(Proxy(f"{url}/p/shop"))).say("go")
        await (await new_agent(Proxy(url))).say("go")
        listed = {}
        for prefix in ("", "/p/shop"):
            async with session.get(f"{url}{prefix}/ttsr/api/rules") as answer:
                rules = (await answer.json())["rules"]
                listed[prefix] = [rule["name"] for rule in rules if rule["provider"] == "mounted"]
        async with session.get(f"{url}/p/nobody/ttsr/api/rules") as answer:
            assert answer.status == 404
    assert upstream.refusals == []
    assert suffix(upstream.calls[0]).startswith("<domain-rules>")
    assert "- shop: How we name prices." in suffix(upstream.calls[0])
    read = json.dumps(upstream.calls[2].messages)
    assert "There is no rule 'db'. Rules: shop" in read
    assert "Prices are in cents." in read
    assert "Be brief." in suffix(upstream.calls[3])
    assert listed == {"": ["brief", "db", "no-bad-word", "nothing"], "/p/shop": ["shop"]}
