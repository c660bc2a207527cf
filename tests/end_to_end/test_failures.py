"""When a retry fails, or an answer ends early: what the client is told depends on what it already has."""

from __future__ import annotations

import gzip
import json
from typing import Any

import aiohttp
import pytest
from coding_agent import Agent
from proxy_under_test import Workspace
from strict_anthropic import StrictUpstream, drop, http_error, stream_error, text, thinking, tool, turn
from ttsr_asserts import assert_clean, interrupts_in, roles

from ttsr_proxy.config import BudgetSettings

BAD = "BADWORD"
BAD_WRITE = {"file_path": "a.py", "content": f"print('{BAD}')\n"}


@pytest.fixture(autouse=True)
def rule(workspace: Workspace) -> None:
    workspace.rule("no-bad-word", BAD, scope=["text", "tool"])


async def test_unsent_a_failed_retry_is_upstreams_own_status(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(tool("Write", BAD_WRITE)), http_error(401, message="key expired"))
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy, stream=False)
    answer = await agent.say("go")
    assert answer.status == 401
    assert answer.error == {"type": "authentication_error", "message": "key expired"}
    await proxy.log(("interrupted", "failed"))


async def test_opened_a_failed_retry_is_a_stream_error_with_upstreams_words(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(tool("Write", BAD_WRITE)), http_error(401, message="key expired"))
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy)
    answer = await agent.say("go")
    assert answer.error == {"type": "authentication_error", "message": "key expired"}
    assert BAD not in answer.raw.decode()
    await proxy.log(("interrupted", "failed"))


FAILURES = {
    "status": http_error(500),
    "drop": turn(thinking("b"), drop()),
    "stream error": turn(thinking("b"), stream_error("api_error", "broken")),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
async def test_after_content_a_failed_retry_is_a_clean_short_end(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any, failure: Any
) -> None:
    upstream.script(turn(thinking("a"), text("Shown first."), tool("Write", BAD_WRITE)))
    upstream.otherwise(lambda body: failure)
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy)
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert answer.texts == ["Shown first."]
    assert answer.stop_reason == "end_turn"
    assert (await proxy.interrupts())[0]["outcome"] == "failed"
    upstream.otherwise(lambda body: turn(text("On we go.")))
    assert (await agent.say("go on")).text == "On we go."
    assert upstream.refusals == []


async def test_an_overloaded_upstream_is_asked_again_as_it_wishes(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(text(f"{BAD} here")), http_error(529, headers={"retry-after": "0"}), turn(text("Clean."))
    )
    agent: Agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert answer.texts == ["Clean."]


async def test_a_refused_reminder_is_left_out(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(tool("Write", BAD_WRITE)),
        http_error(400, message="no such thing"),
        turn(thinking("b"), text("Clean.")),
    )
    agent: Agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert len(interrupts_in(upstream.calls[1])) == 1
    assert upstream.calls[2].messages == upstream.calls[0].messages
    upstream.script(turn(text("On we go.")))
    await agent.say("more")
    assert interrupts_in(upstream.calls[3]) == []
    assert upstream.refusals == []


async def test_a_failed_retry_refunds_its_budget(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(tool("Write", BAD_WRITE)),
        http_error(401),
        turn(tool("Write", BAD_WRITE)),
        turn(text("Clean.")),
    )
    agent: Agent = await new_agent(await start_proxy(budget=BudgetSettings(per_rule=1)), stream=False)
    assert (await agent.say("go")).status == 401
    answer = await agent.ask()
    assert_clean(answer, BAD)
    assert answer.texts == ["Clean."]


async def test_a_blocked_request_that_is_sent_again_is_refused_without_asking_upstream(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(tool("Write", BAD_WRITE)), turn(tool("Write", BAD_WRITE)))
    agent: Agent = await new_agent(
        await start_proxy(budget=BudgetSettings(per_rule=1, on_exhausted="block")), stream=False
    )
    first = await agent.say("go")
    second = await agent.ask()
    for answer in (first, second):
        assert answer.status == 400
        assert answer.error is not None
        assert "no-bad-word" in answer.error["message"]
    assert len(upstream.calls) == 2


async def test_a_blocked_request_is_known_when_it_falls_back_to_a_whole_message(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(tool("Write", BAD_WRITE)), turn(tool("Write", BAD_WRITE)))
    agent: Agent = await new_agent(
        await start_proxy(budget=BudgetSettings(per_rule=1, on_exhausted="block")), max_tokens=64_000
    )
    assert (await agent.say("go")).error is not None
    agent.stream, agent.max_tokens, agent.thinking = False, 32_000, None
    second = await agent.ask()
    assert second.status == 400
    assert second.error is not None
    assert "no-bad-word" in second.error["message"]
    assert len(upstream.calls) == 2


async def test_text_that_might_have_become_a_match_is_released_at_the_end(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text(f"It ends with {BAD[:-2]}")))
    agent: Agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert answer.raw == bytes(upstream.calls[0].wrote)


async def test_held_text_is_released_before_a_drop(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text(f"It ends with {BAD[:-2]}", drop())))
    agent: Agent = await new_agent(await start_proxy())
    agent.add_user({"type": "text", "text": "go"})
    seen = bytearray()
    async with agent.request() as response:
        with pytest.raises(aiohttp.ClientError):
            await _read_into(seen, response.content)
    assert seen == upstream.calls[0].wrote


async def _read_into(seen: bytearray, content: aiohttp.StreamReader) -> None:
    async for piece in content.iter_any():
        seen += piece


async def test_structured_output_only_ever_restarts(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(text('{"words": "shown first", "word": "' + BAD + '"}')), turn(text('{"words": "clean"}'))
    )
    schema = {"type": "json_schema", "schema": {"type": "object"}}
    agent: Agent = await new_agent(await start_proxy(), extra={"output_config": {"format": schema}})
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert answer.texts == ['{"words": "clean"}']
    assert roles(upstream.calls[1]) == ["user"]


async def test_a_compressed_request_is_understood(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text(f"{BAD} here")), turn(text("Clean.")))
    proxy = await start_proxy()
    agent: Agent = await new_agent(proxy, stream=False)
    agent.add_user({"type": "text", "text": "go"})
    headers = {
        "content-type": "application/json",
        "content-encoding": "gzip",
        "x-api-key": "k",
        "anthropic-version": "2023-06-01",
    }
    data = gzip.compress(json.dumps(agent.body()).encode())
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{proxy.url}/v1/messages", data=data, headers=headers) as response,
    ):
        document = await response.json()
    assert document["content"] == [{"type": "text", "text": "Clean."}]


async def test_a_title_call_of_a_known_agent_is_only_observed(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text(f"{BAD} as a title")))
    proxy = await start_proxy()
    agent: Agent = await new_agent(
        proxy,
        tools=[],
        headers={"user-agent": "opencode/1.18.33 ai-sdk/provider-utils/3.0", "x-session-id": "ses_1"},
    )
    assert (await agent.say("Generate a title")).text == f"{BAD} as a title"
    items = await proxy.interrupts()
    assert [item["action"] for item in items] == ["observed"]


async def test_a_plain_call_without_tools_is_ordinary_traffic(
    upstream: StrictUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text(f"{BAD} here")), turn(text("Clean.")))
    agent: Agent = await new_agent(await start_proxy(), tools=[], thinking=None)
    assert_clean(await agent.say("go"), BAD)
