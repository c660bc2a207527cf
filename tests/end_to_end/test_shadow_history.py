"""Upstream sees one consistent history, whatever the client sends back and whatever happens in between."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from coding_agent import Agent, Answer, EchoStyle, StreamReader
from proxy_under_test import Workspace, running_proxy
from strict_anthropic import BOUND_ELSEWHERE, StrictUpstream, redacted, stall, text, thinking, tool, turn
from ttsr_asserts import assert_clean, interrupts_in, last_user_blocks, roles, texts_of

BAD = "BADWORD"
CLEAN_WRITE = {"file_path": "a.py", "content": "print('fine')\n"}
BAD_WRITE = {"file_path": "a.py", "content": f"print('{BAD}')\n"}
EDIT = {"file_path": "a.py", "old_string": "a", "new_string": "b"}


@pytest.fixture(autouse=True)
def rule(workspace: Workspace) -> None:
    workspace.rule("no-bad-word", BAD, scope=["text", "tool", "thinking"], repeatMode="always")


STYLES = {
    "plain": EchoStyle(),
    "drops unsigned thinking": EchoStyle(drop_unsigned=True),
    "adds defaults": EchoStyle(add_defaults=True),
    "reserialises input": EchoStyle(reserialise=True),
    "strings": EchoStyle(string_content=True, cache_last=False),
    "keeps the order": EchoStyle(text_first=False),
}


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
async def test_a_long_conversation_with_every_move_is_accepted(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any, style: EchoStyle
) -> None:
    upstream.script(
        # restart
        turn(thinking("r1"), text(f"{BAD} first")),
        turn(thinking("r2"), tool("Edit", EDIT)),
        # clean, with text after a call
        turn(thinking("c1"), tool("Edit", EDIT), text("Edited.")),
        # continue
        turn(thinking("k1"), text(f"Shown words, {BAD}")),
        turn(thinking("k2"), text("More words."), tool("Edit", EDIT)),
        # truncate
        turn(thinking("t1"), tool("Read", {"file_path": "a"}), tool("Write", BAD_WRITE)),
        turn(thinking("t2"), tool("Write", CLEAN_WRITE)),
        # thinking
        turn(thinking(f"half a thought {BAD}"), text("unseen")),
        turn(thinking("h2"), text("Done.")),
        # an answer that is one text
        turn(text("Just words.")),
        turn(thinking("end"), text("Bye.")),
    )
    agent: Agent = await new_agent(await start_proxy(), style=style)
    answers = [
        await agent.say("go"),
        await agent.results(),
        await agent.results(),
        await agent.results(),
        await agent.results(),
        await agent.results(),
        await agent.say("and?"),
        await agent.say("bye"),
    ]
    for answer in answers:
        assert_clean(answer, BAD)
    assert upstream.refusals == []
    assert upstream.unused == 0
    final = upstream.calls[-1]
    assert len(interrupts_in(final)) >= 3
    assert BAD not in str(final.messages)


async def test_earlier_messages_reach_upstream_unchanged_every_time(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    """Prompt caches keep hitting: each request's messages begin with the one before, cache marks aside."""
    upstream.script(
        turn(thinking("a"), text(f"Shown words, {BAD}")),
        turn(thinking("b"), text("More.")),
        turn(text("Two.")),
        turn(tool("Write", BAD_WRITE)),
        turn(text("Three.")),
        turn(text("Four.")),
    )
    agent = await new_agent(await start_proxy(), style=EchoStyle(cache_last=False))
    for word in ("one", "two", "three", "four"):
        assert_clean(await agent.say(word), BAD)
    one, two, three, _, four = (upstream.calls[n].messages for n in (1, 2, 3, 4, 5))
    assert two[: len(one)] == one
    assert three[: len(two)] == two
    assert four[: len(three) - 1] == three[:-1]
    assert upstream.calls[5].body["system"] == upstream.calls[0].body["system"]
    assert upstream.calls[5].body["tools"] == upstream.calls[0].body["tools"]


async def test_cache_breakpoints_stay_where_the_client_put_them(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    upstream.script(turn(text(f"Shown, {BAD}")), turn(text("Clean.")), turn(text("Two.")))
    agent = await new_agent(
        await start_proxy(), system=[{"type": "text", "text": f"s{n}", **mark} for n in range(3)]
    )
    await agent.say("go")
    await agent.say("more")
    for call in upstream.calls:
        marked = [
            block
            for message in call.messages
            for block in message["content"]
            if isinstance(block, dict) and "cache_control" in block
        ]
        assert len(marked) == 1
    assert upstream.refusals == []


async def test_a_trailing_system_message_stays_last_and_unchanged(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(thinking("a"), tool("Write", BAD_WRITE)),
        turn(thinking("b"), tool("Write", CLEAN_WRITE)),
        turn(thinking("c"), text(f"Shown words, {BAD}")),
        turn(thinking("d"), text("Clean.")),
        turn(text("Bye.")),
    )
    agent: Agent = await new_agent(await start_proxy())
    agent.trailing_system = "Today is Monday."
    assert_clean(await agent.say("go"), BAD)
    retry = upstream.calls[1]
    assert roles(retry) == ["user", "system"]
    assert "<system-interrupt" in last_user_blocks(retry)[-1]["text"]
    assert retry.messages[-1] == upstream.calls[0].messages[-1]
    assert_clean(await agent.results(), BAD)
    assert_clean(await agent.say("bye"), BAD)
    assert upstream.refusals == []
    assert roles(upstream.calls[2])[:3] == ["user", "system", "assistant"]


async def test_a_prefilled_answer_and_delivered_text_are_one_turn(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text(f" the rest, {BAD}")), turn(text("Clean.")), turn(text("Bye.")))
    agent: Agent = await new_agent(await start_proxy(), model="claude-sonnet-4-5", thinking=None)
    agent.add_user({"type": "text", "text": "go"})
    agent.messages.append({"role": "assistant", "content": "The beginning and"})
    assert_clean(await agent.ask(), BAD)
    retry = upstream.calls[1]
    assert roles(retry) == ["user", "assistant", "user"]
    assert "".join(texts_of(retry, "assistant")).strip() == "The beginning and the rest,"
    await agent.say("bye")
    assert upstream.refusals == []


async def test_a_restart_with_a_prefill_keeps_the_prefill_last(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text(f"{BAD} and more")), turn(text(" a clean rest.")))
    agent: Agent = await new_agent(await start_proxy(), model="claude-sonnet-4-5", thinking=None)
    agent.add_user({"type": "text", "text": "go"})
    agent.messages.append({"role": "assistant", "content": "The beginning and"})
    assert_clean(await agent.ask(), BAD)
    retry = upstream.calls[1]
    assert roles(retry) == ["user", "assistant"]
    assert "<system-interrupt" in last_user_blocks(retry)[-1]["text"]
    assert texts_of(retry, "assistant") == ["The beginning and"]


async def test_a_compacted_history_is_left_alone(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(thinking("a"), text(f"Shown words, {BAD}")),
        turn(thinking("b"), text("Clean.")),
        turn(thinking("c"), text("After.")),
    )
    agent: Agent = await new_agent(await start_proxy())
    await agent.say("go")
    agent.messages.clear()
    agent.add_user({"type": "text", "text": "Summary of what happened so far: nothing."})
    sent = agent.body()
    await agent.ask()
    assert upstream.refusals == []
    assert upstream.calls[2].body == sent


async def test_two_forks_that_say_the_same_keep_their_own_history(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    agent: Agent = await new_agent(await start_proxy())
    upstream.script(
        turn(thinking("a"), text(f"{BAD} first")),
        turn(thinking("b"), text("A start.")),
        # fork one
        turn(text(f"{BAD} in one")),
        turn(thinking("c"), text("The same words.")),
        # fork two: the same question, answered at once
        turn(thinking("d"), text("The same words.")),
        # both go on
        turn(thinking("e"), text("One goes on.")),
        turn(thinking("f"), text("Two goes on.")),
        turn(text("One ends.")),
        turn(text("Two ends.")),
    )
    await agent.say("go")
    one, two = agent.fork(), agent.fork()
    assert_clean(await one.say("then?"), BAD)
    assert_clean(await two.say("then?"), BAD)
    await one.say("and?")
    await two.say("and?")
    await one.say("end")
    await two.say("end")
    assert upstream.refusals == []
    assert upstream.unused == 0
    first, second = upstream.calls[5], upstream.calls[6]
    assert len(interrupts_in(first)) == 2
    assert len(interrupts_in(second)) == 1


@pytest.mark.parametrize("cut", ["Mo", "More words t", "More words to read."])
async def test_an_answer_cut_short_by_the_user(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any, cut: str
) -> None:
    """The user presses Escape during the retry: the client keeps what it had seen of it."""
    waiting = stall()
    upstream.script(
        turn(thinking("a"), text(f"Shown words, {BAD}")),
        turn(thinking("b"), text("More words to read.", waiting)),
        turn(thinking("c"), text("On we go.")),
        turn(text("Bye.")),
    )
    agent: Agent = await new_agent(await start_proxy())
    agent.add_user({"type": "text", "text": "go"})
    answer = await _read_until(agent, waiting)
    answer[-1]["text"] = cut
    agent.messages.append({"role": "assistant", "content": answer})
    assert_clean(await agent.say("[Request interrupted by user] go on"), BAD)
    assert upstream.refusals == []
    assert roles(upstream.calls[2]) == ["user", "assistant", "user", "assistant", "user"]
    await agent.say("bye")
    assert upstream.refusals == []


async def _read_until(agent: Agent, waiting: Any) -> list[dict[str, Any]]:
    """The blocks that the client has when upstream stalls; the connection is closed then."""
    answer = Answer(200, {}, b"")
    reader = StreamReader(answer)
    async with agent.request() as response:
        await waiting.reached.wait()
        # "More words to read." has no possible match in it, so it is delivered while upstream stalls
        while not any(block.get("text", "").startswith("More words to rea") for block in answer.blocks):
            reader.feed(await response.content.readany())
        response.close()
    return copy.deepcopy(answer.blocks)


async def test_two_answers_with_cut_thinking_are_told_apart(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    for number in (1, 2, 3):
        upstream.script(
            turn(text(f"Words {number}."), thinking(f"half a thought {BAD}"), text("unseen")),
            turn(redacted(), text(f"Clean {number}.")),
        )
    upstream.script(turn(text("Bye.")))
    agent: Agent = await new_agent(await start_proxy())
    for word in ("one", "two", "three", "bye"):
        assert_clean(await agent.say(word), BAD)
    assert upstream.refusals == []
    assert len(interrupts_in(upstream.calls[-1])) == 3


async def test_a_client_may_drop_the_whole_last_answer(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(thinking("a"), text(f"{BAD} first")),
        turn(thinking("b"), text("A start.")),
        turn(thinking("c"), text(f"Shown, {BAD}")),
        turn(thinking("d"), text("Forgotten.")),
        turn(thinking("e"), text("Asked anew.")),
        turn(text("Bye.")),
    )
    agent: Agent = await new_agent(await start_proxy())
    await agent.say("go")
    before = copy.deepcopy(agent.messages)
    await agent.say("then?")
    agent.messages = before
    await agent.say("something else?")
    await agent.say("bye")
    assert upstream.refusals == []
    assert "Forgotten" not in str(upstream.calls[-1].messages)
    assert len(interrupts_in(upstream.calls[-1])) == 1


async def test_a_proxy_that_is_restarted_goes_on(
    workspace: Workspace, upstream: StrictUpstream, new_agent: Any
) -> None:
    upstream.script(
        turn(thinking("a"), text(f"Shown words, {BAD}")),
        turn(thinking("b"), text("Clean.")),
        turn(thinking("c"), text(f"Again, {BAD}")),
        turn(thinking("d"), text("Clean again.")),
        turn(text("Bye.")),
    )
    async with running_proxy(workspace, upstream.url) as proxy:
        agent: Agent = await new_agent(proxy)
        await agent.say("go")
    for word in ("more", "bye"):
        async with running_proxy(workspace, upstream.url) as proxy:
            agent.base_url = proxy.url
            assert_clean(await agent.say(word), BAD)
    assert upstream.refusals == []
    assert len(interrupts_in(upstream.calls[-1])) == 2


async def test_a_lost_store_costs_the_thinking_of_the_history_and_nothing_else(
    workspace: Workspace, upstream: StrictUpstream, new_agent: Any
) -> None:
    upstream.script(
        turn(thinking("a"), text(f"Shown words, {BAD}")),
        turn(thinking("b"), text("Clean.")),
        turn(thinking("c"), text("Two.")),
        turn(thinking("d"), text("Three.")),
    )
    async with running_proxy(workspace, upstream.url) as proxy:
        agent: Agent = await new_agent(proxy)
        await agent.say("go")
    workspace.forget_state()
    async with running_proxy(workspace, upstream.url) as proxy:
        agent.base_url = proxy.url
        assert_clean(await agent.say("more"), BAD)
        assert len(upstream.refusals) == 1
        assert BOUND_ELSEWHERE in upstream.refusals[0]["message"]
        accepted = upstream.calls[-1]
        assert "thinking" not in [b["type"] for m in accepted.messages for b in m["content"]]
        assert_clean(await agent.say("bye"), BAD)
    assert len(upstream.refusals) == 1, "the conversation goes on without the thinking that was refused"


async def test_count_tokens_is_asked_about_the_history_that_upstream_has(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(thinking("a"), text(f"Shown words, {BAD}")), turn(thinking("b"), text("Clean.")))
    agent: Agent = await new_agent(await start_proxy())
    await agent.say("go")
    agent.add_user({"type": "text", "text": "more"})
    assert await agent.count_tokens() > 0
    assert upstream.refusals == []
    assert len(interrupts_in(upstream.counts[0])) == 1
    assert roles(upstream.counts[0]) == ["user", "assistant", "user", "assistant", "user"]


async def test_one_credential_never_gets_the_history_of_another(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(text(f"Shown words, {BAD}")), turn(text("Clean.")), turn(text("Two.")), turn(text("Three."))
    )
    agent: Agent = await new_agent(await start_proxy())
    await agent.say("go")
    other = agent.fork()
    other.headers = {"x-api-key": "sk-ant-someone-else"}
    await other.say("more")
    assert interrupts_in(upstream.calls[2]) == []
    await agent.say("more")
    assert len(interrupts_in(upstream.calls[3])) == 1


async def test_an_edit_of_the_clients_own_is_kept(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text(f"Shown words, {BAD}")), turn(text("Clean.")), turn(text("Two.")))
    agent: Agent = await new_agent(await start_proxy(), thinking=None)
    await agent.say("go")
    agent.messages[1]["content"][-1]["text"] = "Edited by the user."
    await agent.say("more")
    assert "Edited by the user." in texts_of(upstream.calls[2], "assistant")
    assert upstream.refusals == []


async def test_a_clean_conversation_is_sent_as_the_client_wrote_it(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(thinking("a"), tool("Edit", EDIT), text("x")), turn(text("Two.")), turn(text("Three."))
    )
    agent: Agent = await new_agent(
        await start_proxy(),
        model="claude-sonnet-4-5",
        thinking=None,
        style=replace(EchoStyle(), add_defaults=True),
    )
    await agent.say("go")
    await agent.results()
    body = agent.body()
    await agent.say("three")
    assert upstream.refusals == []
    sent = upstream.calls[2].messages
    assert [m["role"] for m in sent[:-1]] == [m["role"] for m in body["messages"]]
    assert [len(m["content"]) for m in sent[:-1]] == [len(m["content"]) for m in body["messages"]]
