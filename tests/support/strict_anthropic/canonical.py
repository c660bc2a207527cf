"""One form for all ways of writing the same conversation: what signatures are made over."""

from __future__ import annotations

import json
from typing import Any

Json = Any
Block = dict[str, Any]
Message = dict[str, Any]

THINKING_TYPES = frozenset({"thinking", "redacted_thinking"})


def blocks_of(content: Json) -> list[Block]:
    """Content as a list of blocks: a string is one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def merged(messages: list[Message]) -> list[Message]:
    """Messages with string content as blocks and consecutive user or assistant messages made one."""
    result: list[Message] = []
    for message in messages:
        blocks = blocks_of(message.get("content"))
        if result and message["role"] == result[-1]["role"] and message["role"] != "system":
            result[-1]["content"] = [*result[-1]["content"], *blocks]
        else:
            result.append({**message, "content": blocks})
    return result


def without_cache_marks(value: Json) -> Json:
    """The same value with every `cache_control` left out, and nested text content as blocks."""
    if isinstance(value, list):
        return [without_cache_marks(item) for item in value]
    if isinstance(value, dict):
        # a tool's input is the model's own and may use any key
        return {
            key: item if key == "input" else without_cache_marks(item)
            for key, item in value.items()
            if key != "cache_control"
        }
    return value


def _block(block: Block) -> Block:
    plain: Block = without_cache_marks(block)
    if plain.get("type") == "tool_result":
        plain = {**plain, "content": blocks_of(plain.get("content") or [])}
        if not plain.get("is_error"):
            plain.pop("is_error", None)
    if plain.get("type") == "text" and not plain.get("citations"):
        plain.pop("citations", None)
    return plain


def prefix_text(body: Json, upto: int | None = None) -> str:
    """Canonical text of system, tools and the first `upto` merged messages (None: all), without thinking."""
    messages = [
        {
            "role": message["role"],
            "content": [_block(b) for b in message["content"] if b.get("type") not in THINKING_TYPES],
        }
        for message in merged(body.get("messages") or [])[:upto]
    ]
    system = [_block(block) for block in blocks_of(body.get("system") or [])]
    tools = without_cache_marks(body.get("tools") or [])
    return json.dumps([system, tools, messages], sort_keys=True, separators=(",", ":"), ensure_ascii=True)
