"""Interrupts over Chat Completions: what the client gets, what upstream is asked next, what is logged."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from proxy_under_test import Workspace
from strict_anthropic import http_error, listening, ping, stall, stream_error, text, thinking, tool, turn
from strict_openai_chat import Dialect, StrictChatUpstream
from ttsr_asserts import assert_clean

from ttsr_proxy.config import BudgetSettings, Upstreams
from ttsr_proxy.web.app import create_app
from ttsr_proxy.web.server import make_runner

BAD = "BADWORD"
CLEAN_WRITE = {"file_path": "a.py", "content": "print('fine')\n"}
BAD_WRITE = {"file_path": "a.py", "content": f"x = 1\nprint('{BAD}')\n"}
READ = {"file_path": "b.py"}

DIALECTS = {
    "openai": Dialect(),
    "azure": Dialect(prompt_filter=True),
    "ollama": Dialect(
        role_everywhere=True, whole_calls=True, stop_in_last=True, count_calls=False, reasoning="reasoning"
    ),
    "no done": Dialect(done=False),
}


@pytest.fixture(autouse=True)
def rule(workspace: Workspace) -> None:
    workspace.rule("no-bad-word", BAD, scope=["text", "tool"])


@pytest.fixture(params=DIALECTS.values(), ids=DIALECTS.keys())
def any_server(request: Any, upstream: StrictChatUpstream) -> StrictChatUpstream:
    upstream.dialect = request.param
    return upstream


def said(received: Any) -> list[tuple[str, str]]:
    """Role and text of each message of a request, a call by its name."""
    found = []
    for message in received.messages:
        content = message.get("content") or ""
        if isinstance(content, list):
            content = "|".join(part["text"] for part in content)
        names = [call["function"]["name"] for call in message.get("tool_calls", ())]
        found.append((message["role"], " ".join([content, *names]).strip()))
    return found


def roles(received: Any) -> list[str]:
    return [role for role, _ in said(received)]


async def follow_up(agent: Any, upstream: StrictChatUpstream) -> Any:
    """Two more turns: upstream accepts the history that it is shown. The last request that it got."""
    upstream.script(turn(text("More.")), turn(text("Last."), tool("Read", READ)))
    await (agent.results() if "tool_calls" in agent.messages[-1] else agent.say("and?"))
    answer = await agent.say("really?")
    assert answer.kinds == ["text", "tool_use"]
    assert upstream.refusals == []
    assert upstream.unused == 0
    return upstream.calls[-1]


async def test_a_violation_at_the_start_of_text_restarts(
    any_server: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream = any_server
    upstream.script(turn(text(f"{BAD} is here.")), turn(text("A clean answer.")))
    proxy = await start_proxy()
    agent = await new_agent(proxy)
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert answer.text == "A clean answer."
    assert answer.stop_reason == "stop"
    (role, reminder) = said(upstream.calls[1])[-1]
    assert role == "user"
    assert reminder.startswith('go\n\n<system-interrupt reason="rule_violation" rule="no-bad-word"')
    assert "Use the allowed word instead." in reminder
    (item,) = await proxy.log(("interrupted", "clean"))
    assert (item["source"], item["protocol"]) == ("text", "openai-chat")
    last = await follow_up(agent, upstream)
    assert said(last)[1] == ("user", reminder)
    assert BAD not in str(last.messages)


async def test_a_violation_after_shown_text_continues(
    any_server: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream = any_server
    upstream.script(
        turn(text(f"Shown words, then {BAD} and more.")),
        turn(text("The clean rest."), tool("Write", CLEAN_WRITE), tool("Read", READ)),
    )
    agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert answer.text == "Shown words, then \n\nThe clean rest."
    assert [call["input"] for call in answer.calls] == [CLEAN_WRITE, READ]
    assert answer.stop_reason == "tool_calls"
    retry = upstream.calls[1]
    assert roles(retry) == ["system", "user", "assistant", "user"]
    assert said(retry)[2] == ("assistant", "Shown words, then")
    last = await follow_up(agent, upstream)
    assert said(last)[:7] == [
        *said(retry),
        ("assistant", "The clean rest. Write Read"),
        ("tool", "ok"),
        ("tool", "ok"),
    ]


@pytest.mark.parametrize("before", [(), (text("I write it."),)], ids=["first", "after text"])
async def test_a_violation_in_a_call_is_never_seen(
    any_server: StrictChatUpstream, start_proxy: Any, new_agent: Any, before: Any
) -> None:
    upstream = any_server
    upstream.script(turn(*before, tool("Write", BAD_WRITE)), turn(tool("Write", CLEAN_WRITE)))
    proxy = await start_proxy()
    agent = await new_agent(proxy)
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert [call["input"] for call in answer.calls] == [CLEAN_WRITE]
    assert answer.text == "".join("I write it." for _ in before)
    (item,) = await proxy.log(("interrupted", "clean"))
    assert (item["tool"], item["paths"]) == ("Write", ["a.py"])
    last = await follow_up(agent, upstream)
    assert sum("<system-interrupt" in content for _, content in said(last)) == 1


async def test_a_violation_in_the_second_of_two_calls_ends_behind_the_first(
    any_server: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream = any_server
    upstream.script(turn(text("Two calls."), tool("Read", READ), tool("Write", BAD_WRITE)))
    proxy = await start_proxy()
    agent = await new_agent(proxy)
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert [call["name"] for call in answer.calls] == ["Read"]
    assert answer.stop_reason == "tool_calls"
    assert len(upstream.calls) == 1
    last = await follow_up(agent, upstream)
    assert roles(last)[:6] == ["system", "user", "assistant", "tool", "user", "assistant"]
    assert "<system-interrupt" in said(last)[4][1]
    await proxy.log(("truncated", "clean"))


async def test_a_retry_that_breaks_the_rule_again_is_interrupted_again(
    any_server: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream = any_server
    upstream.script(
        turn(text(f"One, {BAD}")), turn(text(f"two, {BAD}")), turn(text("three."), tool("Read", READ))
    )
    proxy = await start_proxy()
    agent = await new_agent(proxy)
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert answer.text == "One, \n\ntwo, \n\nthree."
    await proxy.log(("interrupted", "violated again"), ("interrupted", "clean"))
    last = await follow_up(agent, upstream)
    assert roles(last)[:8] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
        "assistant",
        "tool",
    ]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_a_violation_in_reasoning_is_cut(
    upstream: StrictChatUpstream, workspace: Workspace, start_proxy: Any, new_agent: Any, field: str
) -> None:
    workspace.rule("no-bad-thought", BAD, scope=["thinking"])
    upstream.dialect = Dialect(reasoning=field, takes_reasoning=True)
    upstream.script(
        turn(thinking(f"Half a thought, {BAD} here"), text("unseen")),
        turn(thinking("A better one."), text("Clean."), tool("Read", READ)),
    )
    agent = await new_agent(await start_proxy(), echo_reasoning=True)
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert answer.message[field] == "Half a thought, \n\nA better one."
    assert answer.text == "Clean."
    last = await follow_up(agent, upstream)
    assert last.messages[2][field] == "A better one."


async def test_what_is_not_streamed_is_asked_for_again(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(
        turn(text("Words"), tool("Write", BAD_WRITE)), turn(text("Clean."), tool("Write", CLEAN_WRITE))
    )
    agent = await new_agent(await start_proxy(), stream=False)
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert [call["input"] for call in answer.calls] == [CLEAN_WRITE]
    assert roles(upstream.calls[1]) == ["system", "user"]
    last = await follow_up(agent, upstream)
    assert "<system-interrupt" in said(last)[1][1]


async def test_several_choices_that_are_not_streamed_are_asked_for_again(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text(f"A {BAD}")), turn(text("Clean.")))
    agent = await new_agent(await start_proxy(), stream=False, extra={"n": 3})
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert [call.body["n"] for call in upstream.calls] == [3, 3]
    assert len(json.loads(answer.raw)["choices"]) == 3
    await follow_up(agent, upstream)


async def test_an_older_function_call_is_watched(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.dialect = Dialect(older_calls=True)
    upstream.script(turn(tool("Write", BAD_WRITE)), turn(tool("Write", CLEAN_WRITE)), turn(text("Done.")))
    agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert answer.calls[0]["input"] == CLEAN_WRITE
    assert (await agent.results()).text == "Done."
    assert upstream.refusals == []
    assert "<system-interrupt" in said(upstream.calls[-1])[1][1]


async def test_a_structured_answer_only_restarts(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text(f'{{"a": "shown?", "b": "{BAD}"}}')), turn(text('{"a": "b"}')))
    agent = await new_agent(await start_proxy(), extra={"response_format": {"type": "json_object"}})
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert json.loads(answer.text) == {"a": "b"}


async def test_kept_output_stands_in_the_retry_as_a_call_with_its_result(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text("I write."), tool("Write", BAD_WRITE)), turn(tool("Write", CLEAN_WRITE)))
    agent = await new_agent(await start_proxy(context_mode="keep"))
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    retry = upstream.calls[1]
    assert roles(retry) == ["system", "user", "assistant", "tool", "user"]
    assert said(retry)[2] == ("assistant", "I write. Write")
    assert "not executed" in said(retry)[3][1]
    last = await follow_up(agent, upstream)
    assert roles(last)[:7] == ["system", "user", "assistant", "tool", "user", "assistant", "tool"]


async def test_a_spent_budget_lets_the_last_attempt_through(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(text(f"{BAD} 1")), turn(text(f"{BAD} 2")))
    proxy = await start_proxy(budget=BudgetSettings(per_rule=1))
    agent = await new_agent(proxy)
    answer = await agent.say("go")
    assert answer.text == f"{BAD} 2"
    await proxy.log(("interrupted", "violated again"), ("exhausted", "violated again"))


async def test_a_blocked_answer_is_an_error_of_this_api(
    upstream: StrictChatUpstream, workspace: Workspace, start_proxy: Any, new_agent: Any
) -> None:
    workspace.rule("no-bad-word", BAD, scope=["text", "tool"], maxInterrupts=0, onExhausted="block")
    upstream.script(turn(tool("Write", BAD_WRITE)))
    agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert answer.error is not None
    assert answer.error["type"] == "invalid_request_error"
    assert "no-bad-word" in answer.error["message"]
    assert BAD not in answer.raw.decode()


async def test_a_retry_that_upstream_refuses_is_told_in_its_words(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.dialect = DIALECTS["ollama"]
    upstream.script(turn(tool("Write", BAD_WRITE)), http_error(500, message="out of memory"))
    agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert answer.status == 500
    assert answer.error is not None
    assert answer.error["message"] == "out of memory"


async def test_a_retry_that_fails_in_its_stream_is_an_error_of_the_stream(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(tool("Write", BAD_WRITE)), turn(stream_error("server_error", "Overloaded")))
    agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert answer.error == {"message": "Overloaded", "type": "server_error", "param": None, "code": None}


async def test_a_client_hears_of_a_retry_that_takes_long(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ttsr_proxy.interception.exchange.KEEPALIVE_SECONDS", 0.05)
    gate = asyncio.Event()
    upstream.script(
        turn(text("Shown, "), tool("Write", BAD_WRITE)), turn(stall(gate), tool("Write", CLEAN_WRITE))
    )
    agent = await new_agent(await start_proxy())
    agent.add_user({"type": "text", "text": "go"})
    seen = b""
    async with agent.request() as response:
        async for data in response.content.iter_any():
            seen += data
            if b": keep-alive" in seen:
                gate.set()
    assert seen.count(b"data: [DONE]") == 1
    assert b"fine" in seen


# Bytes.


STEPS = (thinking("Hm."), ping(), text("Some text. ✓"), tool("Write", CLEAN_WRITE), tool("Read", READ))


@pytest.mark.parametrize("eol", ["\n", "\r\n"])
async def test_without_a_violation_the_bytes_are_upstreams(
    any_server: StrictChatUpstream, start_proxy: Any, new_agent: Any, eol: str
) -> None:
    any_server.script(turn(*STEPS, eol=eol, extra={"service_tier": "default", "x": [1]}))
    agent = await new_agent(await start_proxy())
    agent.add_user({"type": "text", "text": "go"})
    async with agent.request() as response:
        got = await response.read()
    assert got == bytes(any_server.calls[0].wrote)
    assert any_server.calls[0].raw == json.dumps(agent.body()).encode()


async def test_without_a_violation_a_whole_answer_is_upstreams(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(turn(*STEPS))
    agent = await new_agent(await start_proxy(), stream=False)
    answer = await agent.say("go")
    assert answer.message["content"] == "Some text. ✓"
    assert len(answer.calls) == 2


@pytest.mark.parametrize(
    "path",
    [
        "/chat/completions",
        "/openai/deployments/my-gpt/chat/completions?api-version=2025-01-01",
        "/api/v1/chat/completions",
    ],
)
async def test_the_paths_of_other_servers_are_inspected(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any, path: str
) -> None:
    upstream.path = path.partition("?")[0]
    upstream.script(turn(text(f"{BAD}")), turn(text("Clean.")))
    agent = await new_agent(await start_proxy())
    agent.path = path if path.startswith(("/openai", "/api")) else "/v1" + path
    answer = await agent.say("go")
    assert_clean(answer, BAD)
    assert [received.query for received in upstream.received] == [path.partition("?")[2]] * 2


async def test_an_error_of_upstream_passes_as_it_came(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    upstream.script(http_error(429, message="slow down", headers={"retry-after": "7"}))
    agent = await new_agent(await start_proxy())
    answer = await agent.say("go")
    assert (answer.status, answer.headers["retry-after"]) == (429, "7")
    assert answer.error is not None
    assert answer.error["message"] == "slow down"


async def test_an_upstream_that_is_not_there_is_an_error_of_this_api(
    start_proxy: Any, new_agent: Any
) -> None:
    agent = await new_agent(await start_proxy("http://127.0.0.1:9"))
    answer = await agent.say("go")
    assert answer.status == 502
    assert answer.error is not None
    assert answer.error["type"] == "server_error"


async def test_a_client_that_leaves_ends_the_upstream_call(
    upstream: StrictChatUpstream, start_proxy: Any, new_agent: Any
) -> None:
    waiting = stall()
    upstream.script(turn(text("Some text", waiting)))
    agent = await new_agent(await start_proxy())
    agent.add_user({"type": "text", "text": "go"})
    async with agent.request() as response:
        await waiting.reached.wait()
        response.close()
    await asyncio.wait_for(upstream.calls[0].aborted.wait(), 5)


async def test_an_embedding_is_not_looked_at(upstream: StrictChatUpstream, start_proxy: Any) -> None:
    proxy = await start_proxy()
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{proxy.url}/v1/embeddings", json={"input": BAD}) as response,
    ):
        assert response.status == 404
    assert upstream.received[0].body == {"input": BAD}


async def test_everything_below_azures_paths_goes_to_the_upstream_of_openai(
    workspace: Workspace, upstream: StrictChatUpstream
) -> None:
    settings = replace(
        workspace.settings("http://127.0.0.1:9"),
        upstreams=Upstreams(anthropic="http://127.0.0.1:9", openai=upstream.url),
    )
    async with (
        listening(make_runner(create_app(settings), drain_seconds=0.1)) as url,
        aiohttp.ClientSession(headers={"api-key": "k"}) as session,
    ):
        await session.get(f"{url}/openai/models?api-version=2025-01-01")
    assert [received.path for received in upstream.received] == ["/openai/models"]


async def test_other_traffic_for_an_upstream_that_is_not_there_fails_in_the_words_of_openai(
    start_proxy: Any,
) -> None:
    proxy = await start_proxy("http://127.0.0.1:9")
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{proxy.url}/v1/embeddings", json={"input": "x"}) as response,
    ):
        assert response.status == 502
        assert (await response.json())["error"]["type"] == "server_error"
