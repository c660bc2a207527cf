"""What the writer makes, read by the official SDK: an implementation that is not ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ttsr_proxy.protocols.anthropic.response import AnthropicReader
from ttsr_proxy.protocols.anthropic.usage import usage_changes
from ttsr_proxy.protocols.anthropic.writer import AnthropicWriter
from ttsr_proxy.protocols.events import BlockDelta, BlockEnded, BlockStarted, ResponseEnding, ResponseStarted

anthropic = pytest.importorskip("anthropic")
httpx = pytest.importorskip("httpx2")


def final_message(stream: bytes) -> Any:
    """The message that the SDK makes of these bytes."""
    transport = httpx.MockTransport(
        lambda _: httpx.Response(200, headers={"content-type": "text/event-stream"}, content=stream)
    )
    client = anthropic.Anthropic(api_key="x", http_client=anthropic.DefaultHttpxClient(transport=transport))
    question = {"role": "user", "content": "x"}
    with client, client.messages.stream(model="claude-x", max_tokens=9, messages=[question]) as answer:
        return answer.get_final_message()


def test_an_answer_reads_as_the_sdk_reads_it(answer: bytes, answer_blocks: list[dict[str, Any]]) -> None:
    message = final_message(answer)
    assert [block.to_dict() for block in message.content] == answer_blocks


def test_a_cut_block_and_a_retry_read_as_one_message(answer: bytes, sse: Callable[..., bytes]) -> None:
    writer = AnthropicWriter()
    first = AnthropicReader().feed(
        sse(
            {
                "type": "message_start",
                "message": {"id": "msg_0", "content": [], "usage": {"output_tokens": 1}},
            },
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "good bad"}},
        )
    )
    start, opened, cut = first
    assert isinstance(start, ResponseStarted)
    assert isinstance(opened, BlockStarted)
    assert isinstance(cut, BlockDelta)
    written = writer.start(start) + writer.keepalive(None, True) + writer.reindex(opened, 0)
    written += writer.part_of(cut, 0, "good ") + writer.keepalive((0, "text"), True) + writer.stop_block(0)
    retry = AnthropicReader().feed(answer)
    for event in retry:
        if isinstance(event, BlockStarted | BlockDelta | BlockEnded):
            written += writer.reindex(event, event.index + 1)
        elif isinstance(event, ResponseEnding):
            restarted = retry[0]
            assert isinstance(restarted, ResponseStarted)
            changes = usage_changes(restarted.usage, event.usage, 2)
            written += writer.ending(event, usage_changes=changes)
    written += writer.end(retry[-1])  # type: ignore[arg-type]
    message = final_message(written)
    assert message.id == "msg_0"
    assert [block.type for block in message.content] == [
        "text",
        "thinking",
        "redacted_thinking",
        "text",
        "server_tool_use",
        "web_search_tool_result",
        "tool_use",
    ]
    assert message.content[0].text == "good "
    assert message.content[-1].input == {"file_path": "a.py", "content": "x = 1"}
    assert message.stop_reason == "tool_use"
    assert (message.usage.input_tokens, message.usage.output_tokens) == (10, 44)


def test_a_made_up_end_reads_as_a_complete_message(answer: bytes) -> None:
    head = answer[: answer.index(b"event: message_delta")]
    message = final_message(head + AnthropicWriter().finish("end_turn", {"output_tokens": 7}))
    assert (message.stop_reason, message.usage.output_tokens) == ("end_turn", 7)
