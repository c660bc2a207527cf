"""The demo's model, asked by the official client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp.test_utils import TestServer
from anthropic import AsyncAnthropic

from ttsr_proxy.cli.demo import REQUEST
from ttsr_proxy.cli.demo_model import CLEAN, FILE, VIOLATING, DemoModel

REMINDER = '<system-interrupt reason="rule_violation" rule="no-eval" path="x">No eval.</system-interrupt>'
ASKED: list[dict[str, Any]] = REQUEST["messages"]
REMINDED: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "Write it."}, {"type": "text", "text": REMINDER}]}
]
RESULT: list[dict[str, Any]] = [
    *ASKED,
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Write", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]},
]


@pytest.fixture
def model() -> DemoModel:
    return DemoModel()


@pytest.fixture
async def client(model: DemoModel) -> AsyncIterator[AsyncAnthropic]:
    async with (
        TestServer(model.application()) as server,
        AsyncAnthropic(base_url=str(server.make_url("")), api_key="none", max_retries=0) as client,
    ):
        yield client


async def ask(client: AsyncAnthropic, stream: bool, **changes: Any) -> Any:
    request = {**REQUEST, **changes}
    if not stream:
        return await client.messages.create(**{**request, "stream": False})
    del request["stream"]
    async with client.messages.stream(**request) as answer:
        return await answer.get_final_message()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("messages", "code"), [(ASKED, VIOLATING), (REMINDED, CLEAN)])
async def test_it_breaks_the_rule_until_it_is_reminded(
    client: AsyncAnthropic, stream: bool, messages: list[dict[str, Any]], code: str
) -> None:
    answer = await ask(client, stream, messages=messages)
    assert answer.stop_reason == "tool_use"
    assert answer.content[1].name == "Write"
    assert answer.content[1].input == {"file_path": FILE, "content": code}


async def test_it_uses_the_path_argument_that_the_tool_has(client: AsyncAnthropic) -> None:
    schema = {"type": "object", "properties": {"filePath": {}, "content": {}}}
    answer = await ask(client, True, tools=[{"name": "write", "input_schema": schema}])
    assert answer.content[1].input["filePath"] == FILE


async def test_without_a_write_tool_the_code_is_in_the_text(client: AsyncAnthropic) -> None:
    answer = await ask(client, True, tools=[])
    assert VIOLATING in answer.content[0].text
    assert answer.stop_reason == "end_turn"


async def test_a_tool_result_ends_the_turn(client: AsyncAnthropic) -> None:
    answer = await ask(client, True, messages=RESULT)
    assert answer.stop_reason == "end_turn"


async def test_it_remembers_what_it_sent(client: AsyncAnthropic, model: DemoModel) -> None:
    await ask(client, True)
    await ask(client, True, messages=REMINDED)
    assert [("eval(expression)" in attempt) for attempt in model.attempts] == [True, False]


async def test_tokens_can_be_counted(client: AsyncAnthropic) -> None:
    counted = await client.messages.count_tokens(
        model="demo-model", messages=[{"role": "user", "content": "x"}]
    )
    assert counted.input_tokens > 0
