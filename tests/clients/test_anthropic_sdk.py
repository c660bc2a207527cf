"""Anthropic's own Python SDK through the proxy: it accepts the spliced stream and goes on from there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from coding_agent import TOOLS
from proxy_under_test import Proxy, Workspace
from strict_anthropic import StrictUpstream, http_error, text, thinking, tool, turn

anthropic = pytest.importorskip("anthropic")

BAD = "BADWORD"
MODEL = "claude-opus-5-5"
CLEAN_WRITE = {"file_path": "a.py", "content": "print('fine')\n"}
BAD_WRITE = {"file_path": "a.py", "content": f"print('{BAD}')\n"}

SCRIPTS: dict[str, tuple[tuple[Any, ...], list[str]]] = {
    "restart": (
        (turn(text(f"{BAD} first")), turn(thinking("b"), text("Clean."))),
        ["thinking", "text"],
    ),
    "restart after thinking": (
        (turn(thinking("a"), tool("Write", BAD_WRITE)), turn(thinking("b"), tool("Write", CLEAN_WRITE))),
        ["thinking", "thinking", "tool_use"],
    ),
    "continue": (
        (
            turn(thinking("a"), text(f"Shown words, {BAD}")),
            turn(thinking("b"), text("Clean."), tool("Write", CLEAN_WRITE)),
        ),
        ["thinking", "text", "thinking", "text", "tool_use"],
    ),
    "truncate": (
        (turn(thinking("a"), tool("Read", {"file_path": "b"}), tool("Write", BAD_WRITE)),),
        ["thinking", "tool_use"],
    ),
    "thinking": (
        (turn(thinking(f"half a thought, {BAD}"), text("unseen")), turn(thinking("b"), text("Clean."))),
        ["thinking", "thinking", "text"],
    ),
}


@pytest.fixture(autouse=True)
def rule(workspace: Workspace) -> None:
    workspace.rule("no-bad-word", BAD, scope=["text", "tool", "thinking"])


@pytest.fixture
async def client(proxy: Proxy) -> AsyncIterator[Any]:
    async with anthropic.AsyncAnthropic(base_url=proxy.url, api_key="k", max_retries=0) as made:
        yield made


def request(messages: list[Any]) -> dict[str, Any]:
    return {
        "model": MODEL,
        "max_tokens": 8000,
        "messages": messages,
        "tools": TOOLS,
        "thinking": {"type": "adaptive"},
    }


def next_messages(messages: list[Any], message: Any) -> list[Any]:
    """The history with the answer and what a program says to it."""
    content = [block.model_dump(exclude_none=True) for block in message.content]
    results = [
        {"type": "tool_result", "tool_use_id": b["id"], "content": "ok"}
        for b in content
        if b["type"] == "tool_use"
    ]
    return [
        *messages,
        {"role": "assistant", "content": content},
        {"role": "user", "content": results or [{"type": "text", "text": "more"}]},
    ]


@pytest.mark.parametrize("name", SCRIPTS)
async def test_the_stream_helper_gets_a_clean_message_and_goes_on(
    upstream: StrictUpstream, client: Any, name: str
) -> None:
    script, kinds = SCRIPTS[name]
    upstream.script(*script, turn(thinking("c"), text("Next.")), turn(text("Bye.")))
    messages: list[Any] = [{"role": "user", "content": "go"}]
    seen = []
    async with client.messages.stream(**request(messages)) as stream:
        async for event in stream:
            seen.append(event.model_dump_json())
        message = await stream.get_final_message()
    assert BAD not in "".join(seen)
    assert BAD not in message.model_dump_json()
    assert [block.type for block in message.content] == kinds
    calls = [block for block in message.content if block.type == "tool_use"]
    assert message.stop_reason == ("tool_use" if calls else "end_turn")
    assert message.usage.output_tokens > 0
    for _ in range(2):
        messages = next_messages(messages, message)
        async with client.messages.stream(**request(messages)) as stream:
            message = await stream.get_final_message()
    assert message.content[-1].text == "Bye."
    assert upstream.refusals == []


@pytest.mark.parametrize("name", SCRIPTS)
async def test_raw_events_never_carry_the_violation(upstream: StrictUpstream, client: Any, name: str) -> None:
    script, kinds = SCRIPTS[name]
    upstream.script(*script)
    events = [
        event
        async for event in await client.messages.create(
            **request([{"role": "user", "content": "go"}]), stream=True
        )
    ]
    assert BAD not in "".join(event.model_dump_json() for event in events)
    names = [event.type for event in events]
    assert names.count("message_start") == names.count("message_stop") == 1
    starts = [event.content_block.type for event in events if event.type == "content_block_start"]
    assert starts == kinds


@pytest.mark.parametrize("name", ["restart", "restart after thinking", "continue"])
async def test_a_message_that_is_not_streamed_is_the_retry_alone(
    upstream: StrictUpstream, client: Any, name: str
) -> None:
    script, _ = SCRIPTS[name]
    upstream.script(*script, turn(text("Next.")))
    messages: list[Any] = [{"role": "user", "content": "go"}]
    message = await client.messages.create(**request(messages))
    assert BAD not in message.model_dump_json()
    assert message.content[0].type == "thinking"
    assert message.content[0].thinking == "b"
    after = await client.messages.create(**request(next_messages(messages, message)))
    assert after.content[0].text == "Next."
    assert upstream.refusals == []


async def test_an_error_status_is_the_sdks_own_exception(upstream: StrictUpstream, client: Any) -> None:
    upstream.script(http_error(429, headers={"retry-after": "3"}))
    with pytest.raises(anthropic.RateLimitError) as caught:
        await client.messages.create(**request([{"role": "user", "content": "go"}]))
    assert caught.value.response.headers["retry-after"] == "3"


async def test_a_failed_retry_is_an_error_and_never_a_half_message(
    upstream: StrictUpstream, client: Any
) -> None:
    upstream.script(turn(tool("Write", BAD_WRITE)), http_error(400, message="no more"))
    upstream.otherwise(lambda body: http_error(400, message="no more"))
    with pytest.raises(anthropic.APIError) as caught:
        async with client.messages.stream(**request([{"role": "user", "content": "go"}])) as stream:
            await stream.get_final_message()
    assert "no more" in str(caught.value)


async def test_tokens_are_counted_on_the_translated_history(upstream: StrictUpstream, client: Any) -> None:
    script, _ = SCRIPTS["continue"]
    upstream.script(*script)
    messages: list[Any] = [{"role": "user", "content": "go"}]
    async with client.messages.stream(**request(messages)) as stream:
        message = await stream.get_final_message()
    counted = request(next_messages(messages, message))
    del counted["max_tokens"]
    answer = await client.messages.count_tokens(**counted)
    assert answer.input_tokens > 0
    assert "system-interrupt" in str(upstream.counts[0].body)
    assert upstream.refusals == []


async def test_the_headers_of_the_proxy_are_no_trouble_and_can_be_read(
    proxy: Proxy, upstream: StrictUpstream, client: Any
) -> None:
    upstream.script(turn(text(f"{BAD} first")), turn(text("Clean.")))
    answer = await client.messages.with_raw_response.create(
        **request([{"role": "user", "content": "go"}]), extra_headers={"x-ttsr-session": "mine"}
    )
    assert (await answer.parse()).content[-1].text == "Clean."
    assert answer.headers["x-ttsr-interrupts"] == "1"
    (item,) = await proxy.log(("interrupted", "clean"))
    assert (item["request"], item["conversation"]) == (answer.headers["x-ttsr-request-id"], "mine")
