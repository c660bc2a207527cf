"""An interrupt at every kind of place: what the client gets, what upstream is asked next, what is logged."""

from __future__ import annotations

from typing import Any

import pytest
from proxy_under_test import Workspace
from strict_anthropic import StrictUpstream, ping, redacted, server_tool, text, thinking, tool, turn
from ttsr_asserts import assert_clean, interrupts_in, last_user_blocks, roles, texts_of

from ttsr_proxy.config import BudgetSettings

BAD = "BADWORD"
CLEAN_WRITE = {"file_path": "a.py", "content": "print('fine')\n"}
BAD_WRITE = {"file_path": "a.py", "content": f"x = 1\nprint('{BAD}')\n"}


@pytest.fixture(autouse=True)
def rule(workspace: Workspace) -> None:
    workspace.rule("no-bad-word", BAD, scope=["text", "tool"])


async def follow_up(agent: Any, upstream: StrictUpstream) -> None:
    """Two more turns: upstream accepts the history that it is shown."""
    upstream.script(
        turn(thinking("more"), text("More.")),
        turn(thinking("last"), text("Last."), tool("Read", {"file_path": "a"})),
    )
    await (agent.results() if agent.messages[-1]["content"][-1]["type"] == "tool_use" else agent.say("and?"))
    answer = await agent.say("really?")
    assert answer.kinds == ["thinking", "text", "tool_use"]
    assert upstream.refusals == []
    assert upstream.unused == 0


async def test_a_violation_at_the_start_of_text_restarts(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text(f"{BAD} is here.")), turn(thinking("ok"), text("A clean answer.")))
    proxy = await start_proxy()
    agent = await new_agent(proxy)
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert answer.texts == ["A clean answer."]
    assert answer.stop_reason == "end_turn"
    retry = upstream.calls[1]
    assert roles(retry) == ["user"]
    reminder = last_user_blocks(retry)[-1]["text"]
    assert reminder.startswith("<system-interrupt")
    assert 'rule="no-bad-word"' in reminder
    assert "Use the allowed word instead." in reminder
    assert BAD not in str(retry.messages)
    items = await proxy.log(("interrupted", "clean"))
    assert items[0]["rule"] == "no-bad-word"
    assert items[0]["source"] == "text"
    assert BAD in items[0]["matched"]
    await follow_up(agent, upstream)
    assert interrupts_in(upstream.calls[-1]) == [reminder]
    assert BAD not in str(upstream.calls[-1].messages)


async def test_thinking_of_a_replaced_attempt_is_not_shown_to_upstream_again(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(thinking("first plan"), text(f"{BAD} is here.")),
        turn(thinking("second plan"), text("A clean answer.")),
    )
    agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert answer.kinds[-2:] == ["thinking", "text"]
    assert answer.blocks[-2]["thinking"] == "second plan"
    await follow_up(agent, upstream)
    assert "first plan" not in str(upstream.calls[-1].messages)


async def test_a_violation_after_shown_text_continues(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(thinking("plan"), text(f"Here is the thing: {BAD} and more.")),
        turn(thinking("again"), text("Here is the better thing."), tool("Write", CLEAN_WRITE)),
    )
    proxy = await start_proxy()
    agent = await new_agent(proxy)
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert answer.kinds == ["thinking", "text", "thinking", "text", "tool_use"]
    assert answer.texts[0].strip() == "Here is the thing:"
    assert answer.texts[1] == "Here is the better thing."
    assert answer.stop_reason == "tool_use"
    retry = upstream.calls[1]
    assert roles(retry) == ["user", "assistant", "user"]
    assert [b["type"] for b in retry.messages[1]["content"]] == ["thinking", "text"]
    assert retry.messages[1]["content"][1]["text"].strip() == "Here is the thing:"
    assert interrupts_in(retry)
    assert retry.body["max_tokens"] <= upstream.calls[0].body["max_tokens"]
    await proxy.log(("interrupted", "clean"))
    await follow_up(agent, upstream)
    assert roles(upstream.calls[2]) == ["user", "assistant", "user", "assistant", "user"]


async def test_a_violation_in_thinking_that_a_rule_watches(
    workspace: Workspace, upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    workspace.rule("no-bad-thought", "BADTHOUGHT", scope="thinking")
    upstream.script(
        turn(thinking("I could use BADTHOUGHT for this"), text("Fine.")),
        turn(thinking("I do it well"), text("Done well.")),
    )
    proxy = await start_proxy()
    agent = await new_agent(proxy)
    answer = await agent.say("go")
    assert_clean(answer, "BADTHOUGHT")
    assert answer.kinds[-2:] == ["thinking", "text"]
    assert answer.texts == ["Done well."]
    items = await proxy.log(("interrupted", "clean"))
    assert items[0]["source"] == "thinking"
    await follow_up(agent, upstream)


async def test_a_violation_in_the_first_tool_call_restarts(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(tool("Write", BAD_WRITE, id="toolu_withheld")),
        turn(thinking("better"), tool("Write", CLEAN_WRITE)),
    )
    proxy = await start_proxy()
    agent = await new_agent(proxy)
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert [c["input"] for c in answer.calls] == [CLEAN_WRITE]
    assert "toolu_withheld" not in answer.raw.decode()
    reminder = interrupts_in(upstream.calls[1])[0]
    assert "not executed" in reminder
    items = await proxy.log(("interrupted", "clean"))
    assert (items[0]["source"], items[0]["tool"], items[0]["paths"]) == ("tool", "Write", ["a.py"])
    await follow_up(agent, upstream)
    assert "toolu_withheld" not in str(upstream.calls[-1].messages)


async def test_a_violation_in_a_tool_call_after_shown_text_continues(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(thinking("plan"), text("I write it."), tool("Write", BAD_WRITE)),
        turn(thinking("better"), text("I write it well."), tool("Write", CLEAN_WRITE)),
    )
    agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert answer.texts == ["I write it.", "I write it well."]
    assert [c["input"] for c in answer.calls] == [CLEAN_WRITE]
    assert roles(upstream.calls[1]) == ["user", "assistant", "user"]
    await follow_up(agent, upstream)


async def test_a_violation_in_a_second_parallel_call_truncates(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(
            thinking("two"),
            tool("Read", {"file_path": "b.py"}, id="toolu_first"),
            tool("Write", BAD_WRITE, id="toolu_second"),
        )
    )
    proxy = await start_proxy()
    agent = await new_agent(proxy)
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert [c["name"] for c in answer.calls] == ["Read"]
    assert answer.stop_reason == "tool_use"
    assert len(upstream.calls) == 1
    items = await proxy.log(("truncated", "pending"))
    assert items[0]["tool"] == "Write"
    upstream.script(turn(thinking("well"), tool("Write", CLEAN_WRITE)))
    second = await agent.results()
    assert_clean(second, BAD)
    blocks = last_user_blocks(upstream.calls[1])
    assert blocks[0]["type"] == "tool_result"
    assert blocks[0]["content"] == "ok"
    assert "no-bad-word" in blocks[-1]["text"]
    assert "not executed" in blocks[-1]["text"]
    assert "toolu_second" not in str(upstream.calls[1].messages)
    await follow_up(agent, upstream)
    assert any("no-bad-word" in value for value in texts_of(upstream.calls[-1], "user"))


async def test_a_retry_that_violates_again_is_interrupted_again(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(text(f"{BAD} one")), turn(text(f"{BAD} two")), turn(thinking("ok"), text("Third time clean."))
    )
    proxy = await start_proxy()
    agent = await new_agent(proxy)
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert answer.texts == ["Third time clean."]
    assert len(interrupts_in(upstream.calls[2])) == 1, "the reminder at the same place is replaced"
    assert interrupts_in(upstream.calls[1]) != interrupts_in(upstream.calls[2]), "it tells of the repetition"
    await proxy.log(("interrupted", "violated again"), ("interrupted", "clean"))
    await follow_up(agent, upstream)


async def test_a_second_interrupt_after_more_text_was_shown(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(thinking("a"), text(f"First part, {BAD} one")),
        turn(thinking("b"), text(f"Second part, {BAD} two")),
        turn(thinking("c"), text("Third part.")),
    )
    agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert [value.strip() for value in answer.texts] == ["First part,", "Second part,", "Third part."]
    assert roles(upstream.calls[2]) == ["user", "assistant", "user", "assistant", "user"]
    await follow_up(agent, upstream)


async def test_a_spent_budget_delivers_the_last_attempt(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(*[turn(text(f"{BAD} {number}")) for number in (1, 2, 3)])
    proxy = await start_proxy()
    agent = await new_agent(proxy)
    answer = await agent.say("go")
    assert answer.complete
    assert answer.texts == [f"{BAD} 3"]
    items = await proxy.interrupts()
    assert [item["action"] for item in items] == ["interrupted", "interrupted", "exhausted"]
    assert [item["outcome"] for item in items[:2]] == ["violated again", "violated again"]
    await follow_up(agent, upstream)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_spent_budget_may_block(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any, stream: bool
) -> None:
    upstream.script(*[turn(tool("Write", BAD_WRITE)) for _ in range(3)])
    proxy = await start_proxy(budget=BudgetSettings(on_exhausted="block"))
    agent = await new_agent(proxy, stream=stream)
    answer = await agent.say("go")
    assert answer.error is not None
    assert "no-bad-word" in answer.error["message"]
    assert answer.error["type"] == "invalid_request_error", "a kind of error that clients do not retry"
    assert BAD not in answer.raw.decode()
    assert not answer.calls
    if not stream:
        assert answer.status == 400
    items = await proxy.interrupts()
    assert items[-1]["action"] == "blocked"
    assert len(upstream.calls) == 3


async def test_a_blocked_response_with_delivered_text_ends_cleanly(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text("Some words first."), tool("Write", BAD_WRITE)))
    proxy = await start_proxy(budget=BudgetSettings(per_rule=0, on_exhausted="block"))
    agent = await new_agent(proxy)
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert answer.texts == ["Some words first."]
    assert answer.stop_reason == "end_turn"
    await follow_up(agent, upstream)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("shown", ["", "Some words first: "])
async def test_keep_shows_the_model_its_partial_text(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any, stream: bool, shown: str
) -> None:
    upstream.script(
        turn(thinking("a"), text(f"{shown}{BAD} and then")), turn(thinking("b"), text("A clean answer."))
    )
    agent = await new_agent(await start_proxy(context_mode="keep"), stream=stream)
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    retry = upstream.calls[1]
    assert roles(retry) == ["user", "assistant", "user"]
    assert f"{shown}{BAD}" in texts_of(retry, "assistant")[0]
    assert interrupts_in(retry)
    agent.stream = True
    await follow_up(agent, upstream)


async def test_keep_shows_the_model_its_withheld_call(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(thinking("a"), tool("Write", BAD_WRITE)), turn(thinking("b"), tool("Write", CLEAN_WRITE))
    )
    agent = await new_agent(await start_proxy(context_mode="keep"))
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    retry = upstream.calls[1]
    assert roles(retry) == ["user", "assistant", "user"]
    assert retry.messages[1]["content"][-1]["type"] == "tool_use"
    result = last_user_blocks(retry)[0]
    assert result["type"] == "tool_result"
    assert result["is_error"] is True
    assert "not executed" in str(result["content"])
    await follow_up(agent, upstream)


async def test_keep_shows_the_model_a_second_withheld_call(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    """The reminder at the place is replaced; thinking that was signed after the old one cannot stay."""
    upstream.script(
        turn(thinking("a"), tool("Write", BAD_WRITE)),
        turn(thinking("b"), tool("Write", BAD_WRITE)),
        turn(thinking("c"), tool("Write", CLEAN_WRITE)),
    )
    agent = await new_agent(await start_proxy(context_mode="keep"))
    assert_clean(await agent.say("go"), BAD)
    assert upstream.refusals == []
    await follow_up(agent, upstream)


@pytest.mark.parametrize(
    ("mode", "interrupted"), [("prose-only", "text"), ("tool-only", "tool"), ("always", "both")]
)
@pytest.mark.parametrize("place", ["text", "tool"])
async def test_the_interrupt_mode_decides_where_rules_interrupt(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any, mode: str, interrupted: str, place: str
) -> None:
    bad = text(f"{BAD} here") if place == "text" else tool("Write", BAD_WRITE)
    upstream.script(turn(bad), turn(text("Clean.")))
    proxy = await start_proxy(interrupt_mode=mode)
    agent = await new_agent(proxy)
    answer = await agent.say("go")
    if interrupted in (place, "both"):
        assert_clean(answer, BAD)
        await proxy.log(("interrupted", "clean"))
    else:
        assert BAD in str(answer.blocks)
        assert len(upstream.calls) == 1
        items = await proxy.interrupts()
        assert items[0]["outcome"] == "pending"


@pytest.mark.parametrize(
    "steps",
    [
        (redacted(), text(f"Some words: {BAD}")),
        (thinking("", omitted=True), text(f"Some words: {BAD}")),
        (thinking("", omitted=True), tool("Write", BAD_WRITE)),
        (server_tool("web_search", {"query": "q"}, []), text(f"Found it: {BAD}")),
        (server_tool("web_search", {"query": "q"}, []), tool("Write", BAD_WRITE)),
        (thinking("a"), text("One."), thinking("b"), text(f"Two, {BAD}")),
        (thinking("a"), text("One."), thinking("b"), tool("Write", BAD_WRITE)),
        (thinking("a"), tool("Read", {"file_path": "b"}), thinking("b"), tool("Write", BAD_WRITE)),
        (ping(), text("One "), ping(), text(f"Two {BAD}")),
    ],
    ids=[
        "redacted thinking",
        "omitted thinking",
        "omitted thinking, call",
        "server tool, text",
        "server tool, call",
        "interleaved thinking, text",
        "interleaved thinking, call",
        "interleaved thinking between calls",
        "two text blocks",
    ],
)
async def test_what_came_before_the_violation_is_kept_legally(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any, steps: tuple[Any, ...]
) -> None:
    upstream.script(turn(*steps))
    upstream.otherwise(lambda body: turn(thinking("well"), text("Clean.")))
    agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    if answer.calls:
        await agent.results()
    await agent.say("and?")
    await agent.say("really?")
    assert upstream.refusals == []


@pytest.mark.parametrize("chunk", [1, 2, 5, 1000])
async def test_the_cut_of_deltas_does_not_matter(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any, chunk: int
) -> None:
    upstream.script(
        turn(text(f"Before the {BAD} after"), chunk=chunk),
        turn(tool("Write", BAD_WRITE), chunk=chunk),
        turn(text("Clean."), tool("Write", CLEAN_WRITE), chunk=chunk),
    )
    agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert answer.text.replace("\n", "").startswith("Before the ")
    assert answer.texts[-1] == "Clean."
    assert len(upstream.calls) == 3
    await follow_up(agent, upstream)


async def test_an_answer_that_is_not_streamed_restarts(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(thinking("a"), text("Some words, then "), tool("Write", BAD_WRITE)),
        turn(thinking("b"), text("Clean."), tool("Write", CLEAN_WRITE)),
    )
    proxy = await start_proxy()
    agent = await new_agent(proxy, stream=False)
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert answer.kinds == ["thinking", "text", "tool_use"]
    assert answer.texts == ["Clean."]
    await proxy.log(("interrupted", "clean"))
    await follow_up(agent, upstream)


async def test_usage_is_the_last_attempts_never_a_sum(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(text(f"{BAD} here"), input_tokens=1000), turn(text("A clean answer."), input_tokens=1010)
    )
    agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert answer.usage["input_tokens"] == 1010
    assert answer.usage["output_tokens"] < 50


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-4-1-20250805"])
async def test_manual_thinking_keeps_starting_with_thinking(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any, model: str
) -> None:
    upstream.script(
        turn(thinking("a"), text(f"Some words: {BAD}")),
        turn(thinking("b"), text("Clean."), tool("Write", CLEAN_WRITE)),
        turn(tool("Write", BAD_WRITE)),
        turn(text("Clean again."), tool("Write", CLEAN_WRITE)),
        turn(text("Done.")),
    )
    agent = await new_agent(
        await start_proxy(repeat_mode="always"),
        model=model,
        thinking={"type": "enabled", "budget_tokens": 4000},
    )
    assert_clean(await agent.say("go"), BAD)
    assert_clean(await agent.results(), BAD)
    assert_clean(await agent.results(), BAD)
    assert upstream.refusals == []
    assert upstream.unused == 0
