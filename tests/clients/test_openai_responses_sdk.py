"""OpenAI's own Python SDK through the proxy, over the Responses API: it takes the splice and goes on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from coding_agent.responses import RESPONSES_TOOLS
from proxy_under_test import Proxy, Workspace
from strict_anthropic import text, thinking, tool, turn
from strict_openai_responses import StrictResponsesUpstream, custom, strict_responses_upstream

openai = pytest.importorskip("openai")

BAD = "BADWORD"
CLEAN_WRITE = {"file_path": "a.py", "content": "print('fine')\n"}
BAD_WRITE = {"file_path": "a.py", "content": f"print('{BAD}')\n"}
PATCH = "*** Begin Patch\n*** Add File: a.py\n+x = '{}'\n*** End Patch"
OUTPUTS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}

SCRIPTS: dict[str, tuple[tuple[Any, ...], list[str], list[str]]] = {
    "restart": (
        (turn(text(f"{BAD} first")), turn(thinking("b"), text("Clean."))),
        ["reasoning", "message"],
        ["reasoning", "message"],
    ),
    "call": (
        (turn(thinking("a"), tool("Write", BAD_WRITE)), turn(thinking("b"), tool("Write", CLEAN_WRITE))),
        ["reasoning", "reasoning", "function_call"],
        ["reasoning", "function_call"],
    ),
    "custom call": (
        (
            turn(custom("apply_patch", PATCH.format(BAD))),
            turn(thinking("b"), custom("apply_patch", PATCH.format("ok"))),
        ),
        ["reasoning", "custom_tool_call"],
        ["reasoning", "custom_tool_call"],
    ),
    "continue": (
        (
            turn(thinking("a"), text(f"Shown words, {BAD}")),
            turn(thinking("b"), text("Clean."), tool("Write", CLEAN_WRITE)),
        ),
        ["reasoning", "message", "reasoning", "message", "function_call"],
        ["reasoning", "message", "function_call"],
    ),
    "reasoning": (
        (turn(thinking(f"half a thought, {BAD}"), text("unseen")), turn(thinking("b"), text("Clean."))),
        ["reasoning", "reasoning", "message"],
        ["reasoning", "message"],
    ),
}
"""The model's attempts, and the types of the items of a streamed and of a whole answer."""


@pytest.fixture(autouse=True)
def rule(workspace: Workspace) -> None:
    workspace.rule("no-bad-word", BAD, scope=["text", "tool", "thinking"])


@pytest.fixture
async def upstream() -> AsyncIterator[StrictResponsesUpstream]:
    async with strict_responses_upstream() as server:
        yield server


@pytest.fixture
async def client(proxy: Proxy) -> AsyncIterator[Any]:
    async with openai.AsyncOpenAI(base_url=f"{proxy.url}/v1", api_key="k", max_retries=0) as made:
        yield made


async def created(client: Any, **request: Any) -> tuple[Any, str]:
    """A raw stream: the final response, and everything that the stream said."""
    seen, final = [], None
    async for event in await client.responses.create(stream=True, **request):
        seen.append(event.to_json(warnings=False))
        if event.type == "response.completed":
            final = event.response
    return final, "".join(seen)


async def helped(client: Any, **request: Any) -> tuple[Any, str]:
    """The stream helper, which assembles the answer and refuses what does not fit together."""
    seen = []
    async with client.responses.stream(**request) as stream:
        async for event in stream:
            seen.append(event.to_json(warnings=False))
        return await stream.get_final_response(), "".join(seen)


async def whole(client: Any, **request: Any) -> tuple[Any, str]:
    answer = await client.responses.create(**request)
    return answer, answer.to_json()


@pytest.mark.parametrize("chains", [False, True], ids=["whole history", "previous_response_id"])
@pytest.mark.parametrize("ask", [created, helped, whole])
@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_violation_never_shows_and_the_next_turns_are_accepted(
    upstream: StrictResponsesUpstream, client: Any, name: str, ask: Any, chains: bool
) -> None:
    attempts, streamed, complete = SCRIPTS[name]
    upstream.script(*attempts, turn(thinking("c"), text("Second.")), turn(text("Third.")))
    request: dict[str, Any] = {"model": "gpt-x", "tools": RESPONSES_TOOLS}
    if not chains:
        request |= {"store": False, "include": ["reasoning.encrypted_content"]}
    history: list[Any] = [{"role": "user", "content": "go"}]
    answer, shown = await ask(client, input=history, **request)
    assert BAD not in shown
    assert [item.type for item in answer.output] == (complete if ask is whole else streamed)
    assert answer.status == "completed"
    for said in ("Second.", "Third."):
        new = [
            {"type": OUTPUTS[item.type], "call_id": item.call_id, "output": "ok"}
            for item in answer.output
            if item.type in OUTPUTS
        ] or [{"role": "user", "content": "go on"}]
        if chains:
            answer, shown = await ask(client, input=new, previous_response_id=answer.id, **request)
        else:
            history += [*answer.output, *new]
            answer, shown = await ask(client, input=history, **request)
        assert answer.output_text == said
        assert BAD not in shown
    assert upstream.refusals == []
    assert upstream.unused == 0


@pytest.mark.parametrize("ask", [created, helped])
async def test_a_truncated_answer_is_whole(upstream: StrictResponsesUpstream, client: Any, ask: Any) -> None:
    upstream.script(
        turn(thinking("a"), tool("Read", {"file_path": "b"}), tool("Write", BAD_WRITE)), turn(text("Sorry."))
    )
    request: dict[str, Any] = {"model": "gpt-x", "tools": RESPONSES_TOOLS}
    answer, shown = await ask(client, input="go", **request)
    assert BAD not in shown
    assert [item.type for item in answer.output] == ["reasoning", "function_call"]
    result = {"type": "function_call_output", "call_id": answer.output[1].call_id, "output": "ok"}
    answer, _ = await ask(client, input=[result], previous_response_id=answer.id, **request)
    assert answer.output_text == "Sorry."
    assert upstream.refusals == []
    assert "<system-interrupt" in json.dumps(upstream.calls[1].body)


@pytest.mark.parametrize("ask", [created, helped, whole])
async def test_an_answer_without_match_is_complete(
    upstream: StrictResponsesUpstream, client: Any, ask: Any
) -> None:
    upstream.script(turn(thinking("a"), text("Hello."), tool("Write", CLEAN_WRITE)))
    answer, _ = await ask(client, model="gpt-x", input="go", tools=RESPONSES_TOOLS)
    assert answer.output_text == "Hello."
    assert json.loads(answer.output[2].arguments) == CLEAN_WRITE


async def test_the_headers_of_the_proxy_are_no_trouble_and_can_be_read(
    upstream: StrictResponsesUpstream, proxy: Proxy, client: Any
) -> None:
    upstream.script(turn(text(f"{BAD} first")), turn(text("Clean.")))
    answer = await client.responses.with_raw_response.create(
        model="gpt-x", input="go", extra_headers={"x-ttsr-session": "mine"}
    )
    assert answer.parse().output_text == "Clean."
    assert answer.headers["x-ttsr-interrupts"] == "1"
    (item,) = await proxy.log(("interrupted", "clean"))
    assert (item["request"], item["conversation"]) == (answer.headers["x-ttsr-request-id"], "mine")
