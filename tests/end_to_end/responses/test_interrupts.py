"""Interrupts over the Responses API, for each way in which agents keep a conversation."""

from __future__ import annotations

from typing import Any

import pytest
from proxy_under_test import Workspace
from strict_anthropic import http_error, ping, server_tool, stream_error, text, thinking, tool, turn
from strict_openai_responses import StrictResponsesUpstream, custom, shell
from ttsr_asserts import assert_clean

from ttsr_proxy.config import BudgetSettings

BAD = "BADWORD"
CLEAN_WRITE = {"file_path": "a.py", "content": "print('fine')\n"}
BAD_WRITE = {"file_path": "a.py", "content": f"x = 1\nprint('{BAD}')\n"}
READ = {"file_path": "b.py"}
PATCH = "*** Begin Patch\n*** Add File: a.py\n+x = '{}'\n*** End Patch"

KEEPING = {
    "stateless": {},
    "stateless, no ids": {"ids": False},
    "whole history, stored": {"store": True},
    "chained": {"chains": True},
}


@pytest.fixture(autouse=True)
def rule(workspace: Workspace) -> None:
    workspace.rule("no-bad-word", BAD, scope=["text", "tool"])


@pytest.fixture(params=KEEPING.values(), ids=KEEPING.keys())
def keeping(request: Any) -> dict[str, Any]:
    return dict(request.param)


def said(received: Any) -> list[str]:
    """Each input item of a request in a few words."""
    found = []
    for item in received.body["input"]:
        content = item.get("content") or ""
        if isinstance(content, list):
            content = "|".join(part.get("text", part.get("refusal", "")) for part in content)
        kind = item.get("role") if item.get("type", "message") == "message" else item["type"]
        found.append(f"{kind}: {content}" if content else str(kind))
    return found


def interrupts_in(received: Any) -> list[str]:
    return [entry for entry in said(received) if "<system-interrupt" in entry]


async def follow_up(agent: Any, upstream: StrictResponsesUpstream) -> Any:
    """Two more turns: upstream accepts the history that it is shown. The last request that it got."""
    upstream.script(
        turn(thinking("more"), text("More.")),
        turn(thinking("last"), text("Last."), tool("Read", READ)),
    )
    await (agent.results() if agent.open_calls else agent.say("and?"))
    answer = await agent.say("really?")
    assert upstream.refusals == []
    assert answer.kinds == ["thinking", "text", "tool_use"]
    assert upstream.unused == 0
    return upstream.calls[-1]


async def test_a_violation_at_the_start_of_text_restarts(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any, keeping: dict[str, Any]
) -> None:
    upstream.script(turn(text(f"{BAD} is here.")), turn(thinking("ok"), text("A clean answer.")))
    proxy = await start_proxy()
    agent = await new_agent(proxy, **keeping)
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert answer.texts == ["A clean answer."]
    assert len(interrupts_in(upstream.calls[1])) == 1
    assert said(upstream.calls[1])[-1].startswith("user: <system-interrupt")
    assert BAD not in str(upstream.calls[1].body)
    items = await proxy.log(("interrupted", "clean"))
    assert items[0]["protocol"] == "openai-responses"
    last = await follow_up(agent, upstream)
    assert len(interrupts_in(last)) == (0 if keeping.get("chains") else 1)


async def test_a_violation_after_shown_text_continues(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any, keeping: dict[str, Any]
) -> None:
    upstream.script(
        turn(thinking("plan"), text(f"Here is the thing: {BAD} and more.")),
        turn(thinking("again"), text("Here is the better thing."), tool("Write", CLEAN_WRITE)),
    )
    proxy = await start_proxy()
    agent = await new_agent(proxy, **keeping)
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert answer.kinds == ["thinking", "text", "thinking", "text", "tool_use"]
    assert answer.texts == ["Here is the thing: ", "Here is the better thing."]
    assert said(upstream.calls[1])[:2] == ["user: go", "assistant: Here is the thing: "]
    assert said(upstream.calls[1])[2].startswith("user: <system-interrupt")
    await proxy.log(("interrupted", "clean"))
    last = await follow_up(agent, upstream)
    if not keeping.get("chains"):
        assert [entry.split(":")[0] for entry in said(last)][:6] == [
            "user",
            "assistant",
            "user",
            "reasoning",
            "assistant",
            "function_call",
        ]


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        (tool("Write", BAD_WRITE), tool("Write", CLEAN_WRITE)),
        (custom("apply_patch", PATCH.format(BAD)), custom("apply_patch", PATCH.format("ok"))),
        (shell(f"echo {BAD} > a.py"), shell("echo ok > a.py")),
    ],
    ids=["function", "custom", "shell"],
)
async def test_a_violation_in_a_call(
    upstream: StrictResponsesUpstream,
    start_proxy: Any,
    new_agent: Any,
    keeping: dict[str, Any],
    bad: Any,
    good: Any,
) -> None:
    upstream.script(turn(thinking("plan"), bad), turn(thinking("again"), good))
    proxy = await start_proxy()
    agent = await new_agent(proxy, **keeping)
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert answer.kinds == ["thinking", "thinking", "tool_use"]
    assert answer.calls[0]["call_id"] == good.id
    await proxy.log(("interrupted", "clean"))
    await follow_up(agent, upstream)


async def test_a_violation_in_the_second_of_two_parallel_calls_truncates(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any, keeping: dict[str, Any]
) -> None:
    upstream.script(turn(thinking("plan"), tool("Read", READ), tool("Write", BAD_WRITE)))
    proxy = await start_proxy()
    agent = await new_agent(proxy, **keeping)
    answer = await agent.say("go")
    assert answer.complete
    assert BAD not in answer.raw.decode()
    assert answer.kinds == ["thinking", "tool_use"]
    assert len(upstream.calls) == 1
    last = await follow_up(agent, upstream)
    told = said(upstream.calls[1])
    assert told[-1].startswith("user: <system-interrupt")
    assert told[-2] == "function_call_output"
    assert len(interrupts_in(last)) == (0 if keeping.get("chains") else 1)
    await proxy.log(("truncated", "clean"))


async def test_a_second_attempt_that_breaks_the_rule_again(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any, keeping: dict[str, Any]
) -> None:
    upstream.script(
        turn(text(f"First part. {BAD}")),
        turn(text(f"Second part. {BAD}")),
        turn(text("Third part.")),
    )
    proxy = await start_proxy()
    agent = await new_agent(proxy, **keeping)
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert [part.strip() for part in answer.texts] == ["First part.", "Second part.", "Third part."]
    await proxy.log(("interrupted", "violated again"), ("interrupted", "clean"))
    await follow_up(agent, upstream)


async def test_a_violation_in_reasoning_leaves_no_reasoning_behind(
    workspace: Workspace,
    upstream: StrictResponsesUpstream,
    start_proxy: Any,
    new_agent: Any,
    keeping: dict[str, Any],
) -> None:
    workspace.rule("no-bad-thought", "BADTHOUGHT", scope="thinking")
    upstream.script(
        turn(thinking("I could use BADTHOUGHT for this"), text("Fine.")),
        turn(thinking("I do it well"), text("Done well.")),
    )
    proxy = await start_proxy()
    agent = await new_agent(proxy, **keeping)
    answer = await agent.say("go")
    assert_clean(answer, "BADTHOUGHT")
    assert answer.kinds == ["thinking", "text"]
    assert answer.texts == ["Done well."]
    await proxy.log(("interrupted", "clean"))
    await follow_up(agent, upstream)


async def test_an_answer_that_is_not_streamed_restarts(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any, keeping: dict[str, Any]
) -> None:
    upstream.script(
        turn(text("Some text."), custom("apply_patch", PATCH.format(BAD))),
        turn(thinking("hm"), text("Good."), custom("apply_patch", PATCH.format("ok"))),
    )
    proxy = await start_proxy()
    agent = await new_agent(proxy, stream=False, **keeping)
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert answer.kinds == ["thinking", "text", "tool_use"]
    await proxy.log(("interrupted", "clean"))
    await follow_up(agent, upstream)


async def test_hosted_tools_pass_and_count_as_delivered(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(server_tool("web_search", {"query": "x"}, []), text(f"{BAD} found.")),
        turn(text("Found it.")),
    )
    agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert answer.kinds == ["web_search_call", "text"]
    assert said(upstream.calls[1])[:2] == ["user: go", "web_search_call"]
    await follow_up(agent, upstream)


async def test_a_kept_violation_is_a_call_with_a_result(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any, keeping: dict[str, Any]
) -> None:
    upstream.script(
        turn(thinking("plan"), custom("apply_patch", PATCH.format(BAD))),
        turn(thinking("again"), tool("Write", CLEAN_WRITE)),
    )
    agent = await new_agent(await start_proxy(context_mode="keep"), **keeping)
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    kinds = [entry.split(":")[0] for entry in said(upstream.calls[1])]
    assert kinds[-3:] == ["custom_tool_call", "custom_tool_call_output", "user"]
    await follow_up(agent, upstream)


async def test_a_spent_budget_that_blocks_fails_the_response_natively(
    workspace: Workspace, upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(*[turn(tool("Write", BAD_WRITE))] * 3)
    proxy = await start_proxy(budget=BudgetSettings(per_rule=1, on_exhausted="block"))
    agent = await new_agent(proxy)
    answer = await agent.say("go")
    assert not answer.complete
    assert answer.error is not None
    assert answer.error["code"] == "invalid_prompt"
    assert "no-bad-word" in answer.error["message"]
    assert BAD not in answer.raw.decode()


@pytest.mark.parametrize("failure", [http_error(500), turn(stream_error("server_error", "oh"))])
async def test_a_retry_that_fails_behind_delivered_text_ends_short(
    upstream: StrictResponsesUpstream,
    start_proxy: Any,
    new_agent: Any,
    keeping: dict[str, Any],
    failure: Any,
) -> None:
    upstream.script(turn(thinking("plan"), text(f"Delivered. {BAD}")), failure)
    proxy = await start_proxy()
    agent = await new_agent(proxy, **keeping)
    answer = await agent.say("go")
    assert answer.complete
    assert answer.stop_reason == "completed"
    assert [part.strip() for part in answer.texts] == ["Delivered."]
    await proxy.log(("interrupted", "failed"))
    await follow_up(agent, upstream)


async def test_a_retry_that_fails_with_nothing_delivered_fails_natively(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(tool("Write", BAD_WRITE)), turn(stream_error("rate_limit_exceeded", "slow down")))
    agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert not answer.complete
    assert answer.error == {"code": "rate_limit_exceeded", "message": "slow down"}


@pytest.mark.parametrize("chunk", [1, 3, 1000])
async def test_the_verdict_does_not_depend_on_the_deltas(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any, chunk: int
) -> None:
    upstream.script(turn(text("So: ", ping(), f"{BAD}!"), chunk=chunk), turn(text("So: fine."), chunk=chunk))
    agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert "".join(answer.texts) == "So: So: fine."


async def test_structured_output_is_held_whole_and_restarts(
    upstream: StrictResponsesUpstream, start_proxy: Any, new_agent: Any
) -> None:
    schema = {"text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}}}
    upstream.script(turn(text('{"a": "fine", "b": "', f'{BAD}"}}')), turn(text('{"a": "fine"}')))
    agent = await new_agent(await start_proxy(), extra=schema)
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert answer.texts == ['{"a": "fine"}']
