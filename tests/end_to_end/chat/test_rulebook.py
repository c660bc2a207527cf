"""The rulebook over Chat Completions: in the system message, and read by calls that the client never sees."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from chat_chunks import chunk, data
from coding_agent import ChatAgent
from legality import read_legally
from proxy_under_test import Workspace
from strict_anthropic import Turn, raw, stall, text, thinking, tool, turn
from strict_openai_chat import Dialect, StrictChatUpstream
from ttsr_asserts import assert_clean

EDIT = {"file_path": "a.py", "old_string": "a", "new_string": "b"}
READ_DB = {"file_path": "rule://db"}
DB = "Never drop a column."


@pytest.fixture(autouse=True)
def rules(workspace: Workspace) -> None:
    workspace.rulebook()


def assert_same_beginning(upstream: StrictChatUpstream) -> None:
    """Every accepted request begins with all that upstream saw before."""
    accepted = [call.messages for call in upstream.calls if call.refused is None]
    for before, after in itertools.pairwise(accepted):
        assert json.dumps(after[: len(before)]) == json.dumps(before)


def results(call: Any) -> list[str]:
    return [message["content"] for message in call.messages if message["role"] == "tool"]


def system(call: Any) -> str:
    return str(call.messages[0]["content"])


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("parts", [False, True], ids=["text", "parts"])
async def test_a_conversation_keeps_its_blocks_while_rules_change(
    workspace: Workspace,
    upstream: StrictChatUpstream,
    start_proxy: Any,
    new_agent: Any,
    streams: bool,
    parts: bool,
) -> None:
    upstream.script(
        turn(tool("Edit", EDIT)),
        turn(tool("Read", READ_DB)),
        turn(tool("Edit", EDIT)),
        turn(text("BADWORD")),
        turn(text("Done.")),
        turn(text("Bye.")),
        turn(text("Hello.")),
    )
    proxy = await start_proxy()
    agent: ChatAgent = await new_agent(proxy, stream=streams, parts=parts)
    assert_clean(await agent.say("go"), "rule://")
    workspace.rule_file("brief", "Be long.", alwaysApply=True)
    for step in (agent.results, agent.results, lambda: agent.say("and?")):
        assert_clean(await step(), "rule://")
    assert upstream.refusals == []
    first = system(upstream.calls[0])
    assert first.startswith("You write code.\n\n<generic-rules>\nBe brief.\n</generic-rules>")
    assert "- db (*.sql): How we write migrations." in first
    assert {system(call) for call in upstream.calls} == {first}
    other: ChatAgent = await new_agent(proxy)
    await other.say("hi")
    assert "Be long." in system(upstream.calls[-1])


async def test_without_a_system_message_there_is_one(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text("One.")), turn(text("Two.")))
    agent: ChatAgent = await new_agent(await start_proxy(), system="")
    await agent.say("go")
    await agent.say("on")
    assert upstream.refusals == []
    assert [message["role"] for message in upstream.calls[0].messages] == ["system", "user"]
    assert system(upstream.calls[0]).startswith("<generic-rules>")
    assert_same_beginning(upstream)


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
async def test_a_rule_is_read_behind_the_clients_back(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any, streams: bool
) -> None:
    upstream.dialect = Dialect(takes_reasoning=True)
    upstream.script(
        turn(thinking("1"), tool("Read", READ_DB)),
        turn(thinking("2"), tool("Bash", {"command": "cat rule://no-bad-word"}), tool("Read", READ_DB)),
        turn(tool("Read", {"file_path": "rule://nothing"})),
        turn(text("So."), tool("Edit", EDIT)),
        turn(text("Done.")),
    )
    agent: ChatAgent = await new_agent(await start_proxy(), stream=streams)
    answer = await agent.say("go")
    assert_clean(answer, "rule://")
    assert answer.kinds[-2:] == ["text", "tool_use"]
    await agent.results()
    assert upstream.refusals == []
    assert upstream.unused == 0
    read = results(upstream.calls[-1])
    assert read[:3] == [DB, "Use the allowed word instead.", DB]
    assert read[3].endswith("Rules: db, brief, no-bad-word")
    assert read[4] == "ok"
    assert_same_beginning(upstream)


async def test_text_before_a_read_and_behind_it_are_two_paragraphs_for_the_client(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(text("Let me see."), tool("Read", READ_DB)), turn(text("I know.")), turn(text("Bye."))
    )
    agent: ChatAgent = await new_agent(await start_proxy())
    assert (await agent.say("go")).text == "Let me see.\n\nI know."
    await agent.say("on")
    assert upstream.refusals == []
    assert_same_beginning(upstream)
    assert [m["content"] for m in upstream.calls[-1].messages if m["role"] == "assistant"] == [
        "Let me see.",
        "I know.",
    ]


DIALECTS = {
    "as OpenAI": Dialect(),
    "whole calls": Dialect(whole_calls=True),
    "stop in the last chunk": Dialect(whole_calls=True, stop_in_last=True),
    "role everywhere": Dialect(role_everywhere=True),
    "one index": Dialect(count_calls=False),
}
CALLS = {
    "read first": [("Read", READ_DB), ("Edit", EDIT)],
    "read last": [("Edit", EDIT), ("Read", READ_DB)],
    "read between": [("Edit", EDIT), ("Read", READ_DB), ("Read", {"file_path": "a"})],
    "two reads": [("Read", READ_DB), ("Edit", EDIT), ("Bash", {"command": "cat rule://brief"})],
}


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS.keys())
@pytest.mark.parametrize("calls", CALLS.values(), ids=CALLS.keys())
async def test_a_read_beside_other_calls_is_answered_with_their_results(
    upstream: StrictChatUpstream,
    start_proxy: Any,
    new_agent: Any,
    calls: list[tuple[str, dict[str, str]]],
    dialect: Dialect,
    streams: bool,
) -> None:
    upstream.dialect = dialect
    upstream.script(
        turn(*(tool(name, input) for name, input in calls)), turn(text("Done.")), turn(text("Bye."))
    )
    agent: ChatAgent = await new_agent(await start_proxy(), stream=streams)
    answer = await agent.say("go")
    assert_clean(answer, "rule://")
    assert answer.stop_reason == "tool_calls"
    own = [name for name, input in calls if "rule://" not in json.dumps(input)]
    assert [call["name"] for call in answer.calls] == own
    await agent.results()
    await agent.say("more")
    assert upstream.refusals == []
    assert_same_beginning(upstream)
    asked = next(m for m in upstream.calls[1].messages if m["role"] == "assistant")
    assert {call["function"]["name"] for call in asked["tool_calls"]} == {name for name, _ in calls}
    assert DB in results(upstream.calls[1])


def two_in_one_chunk(*calls: tuple[str, dict[str, str]], words: str | None = None) -> Turn:
    """An answer whose first chunk has all its calls, and words before them."""
    entries = [
        {
            "index": at,
            "id": f"call_{at}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(input)},
        }
        for at, (name, input) in enumerate(calls)
    ]
    said = {"content": words} if words else {}
    first = chunk({"role": "assistant", **said, "tool_calls": entries})
    return turn(raw(data(first)), stop_reason="tool_calls")


@pytest.mark.parametrize("words", [None, "Let me see."], ids=["calls", "words and calls"])
@pytest.mark.parametrize("calls", CALLS.values(), ids=CALLS.keys())
async def test_calls_that_come_in_one_chunk_are_told_apart(
    upstream: StrictChatUpstream,
    start_proxy: Any,
    new_agent: Any,
    calls: list[tuple[str, dict[str, str]]],
    words: str | None,
) -> None:
    upstream.dialect = Dialect(role_everywhere=True)
    upstream.script(two_in_one_chunk(*calls, words=words), turn(text("Done.")))
    agent: ChatAgent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert_clean(answer, "rule://")
    read_legally("openai-chat", answer.raw)
    own = [(name, input) for name, input in calls if "rule://" not in json.dumps(input)]
    assert [(call["name"], call["input"]) for call in answer.calls] == own
    assert answer.text == (words or "")
    await agent.results()
    assert upstream.refusals == []
    assert DB in results(upstream.calls[-1])


async def test_a_client_that_does_not_wait_for_the_end_finds_what_was_read(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.dialect = Dialect(role_everywhere=True)
    calls = two_in_one_chunk(("Edit", EDIT), ("Read", READ_DB)).steps
    end = raw(data(chunk({}, "tool_calls")))
    upstream.script(turn(*calls, end, stall()), turn(text("Done.")))
    agent: ChatAgent = await new_agent(await start_proxy())
    agent.add_user({"text": "go"})
    async with agent.request() as response:
        received = b""
        while b'"tool_calls"}' not in received.replace(b" ", b""):
            received += await response.content.readany()
        call = {
            "id": "call_0",
            "type": "function",
            "function": {"name": "Edit", "arguments": json.dumps(EDIT)},
        }
        agent.messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        assert_clean(await agent.results(), "rule://")
    assert results(upstream.calls[1]) == [DB, "ok"]
    assert upstream.refusals == []


async def test_two_reads_in_one_chunk_leave_nothing_of_it(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.dialect = Dialect(role_everywhere=True)
    upstream.script(two_in_one_chunk(("Read", READ_DB), ("Read", {"file_path": "rule://brief"})))
    upstream.script(turn(text("Done.")))
    agent: ChatAgent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert_clean(answer, "rule://")
    assert answer.raw == bytes(upstream.calls[-1].wrote)
    assert results(upstream.calls[-1]) == [DB, "Be brief."]


@pytest.mark.parametrize("dialect", [Dialect(ids=False), Dialect(older_calls=True)], ids=["no ids", "older"])
@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
async def test_a_call_without_an_id_is_left_to_the_client(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any, dialect: Dialect, streams: bool
) -> None:
    upstream.dialect = dialect
    upstream.script(turn(tool("Read", READ_DB)))
    agent: ChatAgent = await new_agent(await start_proxy(), stream=streams)
    async with agent.request() as response:
        assert '"Read"' in await response.text()
    assert len(upstream.calls) == 1


async def test_reading_without_end_comes_to_an_end(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(*[turn(tool("Read", READ_DB)) for _ in range(10)], turn(text("Well.")))
    agent: ChatAgent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert len(upstream.calls) == 10
    assert "rule://db" in json.dumps(answer.blocks)
    await agent.results()
    assert upstream.refusals == []
    assert_same_beginning(upstream)


async def test_it_is_all_there_after_the_proxy_was_started_again(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(tool("Read", READ_DB), tool("Edit", EDIT)),
        turn(tool("Read", READ_DB)),
        turn(tool("Edit", EDIT)),
        turn(text("Bye.")),
    )
    agent: ChatAgent = await new_agent(await start_proxy())
    await agent.say("go")
    for _ in range(2):
        agent.base_url = (await start_proxy()).url
        assert_clean(await agent.results(), "rule://")
    assert upstream.refusals == []
    assert_same_beginning(upstream)
