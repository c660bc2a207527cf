from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest


def _sse(*payloads: dict[str, Any]) -> bytes:
    """A Messages stream of these events, in upstream's own spelling (spaces after separators)."""
    return b"".join(
        f"event: {payload['type']}\ndata: {json.dumps(payload, ensure_ascii=False)}\n\n".encode()
        for payload in payloads
    )


@pytest.fixture(scope="session")
def sse() -> Callable[..., bytes]:
    return _sse


@pytest.fixture(scope="session")
def answer() -> bytes:
    """A stream with every kind of block."""
    deltas: list[tuple[int, dict[str, Any], list[dict[str, Any]]]] = [
        (
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            [
                {"type": "thinking_delta", "thinking": "Let me "},
                {"type": "thinking_delta", "thinking": "see 漢"},
                {"type": "signature_delta", "signature": "c2ln"},
            ],
        ),
        (1, {"type": "redacted_thinking", "data": "b3BhcXVl"}, []),
        (
            2,
            {"type": "text", "text": ""},
            [
                {"type": "text_delta", "text": "Hello "},
                {"type": "citations_delta", "citation": {"type": "char_location", "cited_text": "x"}},
                {"type": "text_delta", "text": "wörld 😀"},
            ],
        ),
        (
            3,
            {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}},
            [{"type": "input_json_delta", "partial_json": '{"query":"x"}'}],
        ),
        (4, {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}, []),
        (
            5,
            {"type": "tool_use", "id": "toolu_1", "name": "Write", "input": {}},
            [
                {"type": "input_json_delta", "partial_json": ""},
                {"type": "input_json_delta", "partial_json": '{"file_path":"a.py",'},
                {"type": "input_json_delta", "partial_json": '"content":"x = 1"}'},
            ],
        ),
    ]
    usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}, {"type": "ping"}]
    for index, block, pieces in deltas:
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in pieces]
        events.append({"type": "content_block_stop", "index": index})
    ending = {"stop_reason": "tool_use", "stop_sequence": None}
    events.append({"type": "message_delta", "delta": ending, "usage": {"output_tokens": 42}})
    events.append({"type": "message_stop"})
    return _sse(*events)


@pytest.fixture(scope="session")
def answer_blocks() -> list[dict[str, Any]]:
    """The blocks of `answer` as history carries them."""
    return [
        {"type": "thinking", "thinking": "Let me see 漢", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
        {
            "type": "text",
            "text": "Hello wörld 😀",
            "citations": [{"type": "char_location", "cited_text": "x"}],
        },
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []},
        {
            "type": "tool_use",
            "id": "toolu_1",
            "name": "Write",
            "input": {"file_path": "a.py", "content": "x = 1"},
        },
    ]
