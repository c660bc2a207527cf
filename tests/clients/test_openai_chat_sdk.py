"""OpenAI's own Python SDK through the proxy, over Chat Completions: it takes the splice and goes on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from coding_agent.chat import CHAT_TOOLS
from proxy_under_test import Proxy, Workspace, running_proxy
from strict_anthropic import http_error, stream_error, text, tool, turn
from strict_openai_chat import StrictChatUpstream, strict_chat_upstream

openai = pytest.importorskip("openai")

BAD = "BADWORD"
CLEAN_WRITE = {"file_path": "a.py", "content": "print('fine')\n"}
BAD_WRITE = {"file_path": "a.py", "content": f"print('{BAD}')\n"}
READ = {"file_path": "b"}

SCRIPTS: dict[str, tuple[tuple[Any, ...], str | None, list[dict[str, Any]]]] = {
    "restart": ((turn(text(f"{BAD} first")), turn(text("Clean."))), "Clean.", []),
    "restart of a call": (
        (turn(tool("Write", BAD_WRITE)), turn(tool("Write", CLEAN_WRITE))),
        None,
        [CLEAN_WRITE],
    ),
    "continue": (
        (
            turn(text(f"Shown words, {BAD}")),
            turn(text("Clean."), tool("Write", CLEAN_WRITE), tool("Read", READ)),
        ),
        "Shown words, \n\nClean.",
        [CLEAN_WRITE, READ],
    ),
    "continue with a call": (
        (turn(text("I write."), tool("Write", BAD_WRITE)), turn(tool("Write", CLEAN_WRITE))),
        "I write.",
        [CLEAN_WRITE],
    ),
    "truncate": ((turn(tool("Read", READ), tool("Write", BAD_WRITE)),), None, [READ]),
}


@pytest.fixture(autouse=True)
def rule(workspace: Workspace) -> None:
    workspace.rule("no-bad-word", BAD, scope=["text", "tool"])


@pytest.fixture
async def upstream() -> AsyncIterator[StrictChatUpstream]:
    async with strict_chat_upstream() as server:
        yield server


@pytest.fixture
async def proxy(workspace: Workspace, upstream: StrictChatUpstream) -> AsyncIterator[Proxy]:
    async with running_proxy(workspace, upstream.url) as running:
        yield running


@pytest.fixture
async def client(proxy: Proxy) -> AsyncIterator[Any]:
    async with openai.AsyncOpenAI(base_url=f"{proxy.url}/v1", api_key="k", max_retries=0) as made:
        yield made


def request(messages: list[Any]) -> dict[str, Any]:
    return {"model": "gpt-x", "messages": messages, "tools": CHAT_TOOLS}


def streamed(messages: list[Any]) -> dict[str, Any]:
    return {**request(messages), "stream_options": {"include_usage": True}}


def next_messages(messages: list[Any], message: Any) -> list[Any]:
    """The history with the answer and what a program says to it."""
    echoed = message.model_dump(
        exclude_none=True, exclude={"parsed": True, "tool_calls": {"__all__": {"index"}}}
    )
    for call in echoed.get("tool_calls", ()):
        call["function"].pop("parsed_arguments", None)
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in echoed.get("tool_calls", ())
    ]
    return [*messages, echoed, *(results or [{"role": "user", "content": "more"}])]


def check(message: Any, name: str) -> None:
    _, said, inputs = SCRIPTS[name]
    assert (message.content or None) == said
    assert [json.loads(call.function.arguments) for call in message.tool_calls or ()] == inputs


@pytest.mark.parametrize("name", SCRIPTS)
async def test_the_stream_helper_gets_a_clean_completion_and_goes_on(
    upstream: StrictChatUpstream, client: Any, name: str
) -> None:
    script, _, inputs = SCRIPTS[name]
    upstream.script(*script, turn(text("Next.")), turn(text("Bye.")))
    messages: list[Any] = [{"role": "user", "content": "go"}]
    seen = []
    async with client.chat.completions.stream(**streamed(messages)) as stream:
        async for event in stream:
            seen.append(event.model_dump_json())
        final = await stream.get_final_completion()
    assert BAD not in "".join(seen)
    assert BAD not in final.model_dump_json()
    message = final.choices[0].message
    check(message, name)
    assert final.choices[0].finish_reason == ("tool_calls" if inputs else "stop")
    assert final.usage.total_tokens == final.usage.prompt_tokens + final.usage.completion_tokens > 0
    for _ in range(2):
        messages = next_messages(messages, message)
        async with client.chat.completions.stream(**streamed(messages)) as stream:
            message = (await stream.get_final_completion()).choices[0].message
    assert message.content == "Bye."
    assert upstream.refusals == []


@pytest.mark.parametrize("name", SCRIPTS)
async def test_raw_chunks_never_carry_the_violation(
    upstream: StrictChatUpstream, client: Any, name: str
) -> None:
    script, said, _ = SCRIPTS[name]
    upstream.script(*script)
    chunks = [
        chunk
        async for chunk in await client.chat.completions.create(
            **streamed([{"role": "user", "content": "go"}]), stream=True
        )
    ]
    assert BAD not in "".join(chunk.model_dump_json() for chunk in chunks)
    assert len({chunk.id for chunk in chunks}) == 1
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == (said or "")
    assert [delta.role for delta in deltas if delta.role] == ["assistant"]
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices].count(None) == len(
        deltas
    ) - 1


@pytest.mark.parametrize("name", ["restart", "restart of a call", "continue"])
async def test_a_completion_that_is_not_streamed_is_the_retry_alone(
    upstream: StrictChatUpstream, client: Any, name: str
) -> None:
    script, said, inputs = SCRIPTS[name]
    upstream.script(*script, turn(text("Next.")))
    messages: list[Any] = [{"role": "user", "content": "go"}]
    completion = await client.chat.completions.create(**request(messages))
    assert BAD not in completion.model_dump_json()
    message = completion.choices[0].message
    assert message.content == (said and "Clean.")
    assert [json.loads(call.function.arguments) for call in message.tool_calls or ()] == inputs
    after = await client.chat.completions.create(**request(next_messages(messages, message)))
    assert after.choices[0].message.content == "Next."
    assert upstream.refusals == []


async def test_an_error_status_is_the_sdks_own_exception(upstream: StrictChatUpstream, client: Any) -> None:
    upstream.script(http_error(429, headers={"retry-after": "3"}))
    with pytest.raises(openai.RateLimitError) as caught:
        await client.chat.completions.create(**request([{"role": "user", "content": "go"}]))
    assert caught.value.response.headers["retry-after"] == "3"


@pytest.mark.parametrize(
    "failure", [http_error(500, message="no more"), turn(stream_error("server_error", "no more"))]
)
async def test_a_failed_retry_is_an_error_and_never_half_a_completion(
    upstream: StrictChatUpstream, client: Any, failure: Any
) -> None:
    upstream.script(turn(tool("Write", BAD_WRITE)), failure)
    with pytest.raises(openai.APIError) as caught:
        async with client.chat.completions.stream(**request([{"role": "user", "content": "go"}])) as stream:
            await stream.get_final_completion()
    assert "no more" in str(caught.value)


async def test_azures_client_is_served_under_its_own_paths(
    upstream: StrictChatUpstream, proxy: Proxy
) -> None:
    upstream.script(turn(text(BAD)), turn(text("Clean.")))
    async with openai.AsyncAzureOpenAI(
        azure_endpoint=proxy.url, api_key="k", api_version="2025-01-01", max_retries=0
    ) as client:
        completion = await client.chat.completions.create(
            model="my-gpt", messages=[{"role": "user", "content": "go"}]
        )
    assert completion.choices[0].message.content == "Clean."
    assert {(call.path, call.query) for call in upstream.calls} == {
        ("/openai/deployments/my-gpt/chat/completions", "api-version=2025-01-01")
    }


async def test_the_headers_of_the_proxy_are_no_trouble_and_can_be_read(
    upstream: StrictChatUpstream, proxy: Proxy, client: Any
) -> None:
    upstream.script(turn(text(f"{BAD} first")), turn(text("Clean.")))
    answer = await client.chat.completions.with_raw_response.create(
        **request([{"role": "user", "content": "go"}]), extra_headers={"x-ttsr-session": "mine"}
    )
    assert answer.parse().choices[0].message.content == "Clean."
    assert answer.headers["x-ttsr-interrupts"] == "1"
    (item,) = await proxy.log(("interrupted", "clean"))
    assert (item["request"], item["conversation"]) == (answer.headers["x-ttsr-request-id"], "mine")
