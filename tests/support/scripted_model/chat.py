"""The script in Chat Completions, and what the API refuses of a history."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from scripted_model.plan import Model
from scripted_model.steps import Say, Think
from scripted_model.tools import invocation
from scripted_model.wire import fresh_id, pieces, sse

_ROLES = {"system", "developer", "user", "assistant", "tool"}


def refusal(body: dict[str, Any]) -> str | None:
    """Why the API would refuse the request, or None."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "'messages' is required"
    waiting: set[str] = set()
    for index, message in enumerate(messages):
        role = message.get("role")
        if role not in _ROLES:
            return f"messages[{index}].role: {role!r} is not a role"
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                return f"messages[{index}]: a 'tool' message must answer a message with 'tool_calls'"
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return f"messages[{index}]: tool_call_ids without response messages: {sorted(waiting)}"
        calls = message.get("tool_calls") or []
        waiting = {call["id"] for call in calls}
        if not calls and not message.get("content"):
            return f"messages[{index}]: 'content' must not be empty"
        for call in calls:
            try:
                json.loads(call["function"]["arguments"])
            except ValueError:
                return f"messages[{index}]: the arguments of {call['id']} are no JSON"
    return f"tool_call_ids without response messages: {sorted(waiting)}" if waiting else None


def answer(body: dict[str, Any], model: Model) -> Iterator[bytes]:
    """The stream of chunks, as bytes of one event each."""
    asked, parts = model.parts(body)
    head = {"id": fresh_id("chatcmpl-"), "object": "chat.completion.chunk", "created": 1_790_000_000}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return sse(None, {**head, "model": body["model"], "choices": [choice]})

    yield chunk({"role": "assistant", "content": ""})
    calls = 0
    for part in parts:
        if isinstance(part, Say):
            for piece in pieces(part.text):
                yield chunk({"content": piece})
        elif isinstance(part, Think):
            for piece in pieces(part.text):
                yield chunk({"reasoning_content": piece})
        else:
            call = invocation(part, asked, model.project)
            opened = {"index": calls, "id": fresh_id("call_"), "type": "function"}
            yield chunk({"tool_calls": [{**opened, "function": {"name": call.tool.name, "arguments": ""}}]})
            for piece in pieces(call.written):
                yield chunk({"tool_calls": [{"index": calls, "function": {"arguments": piece}}]})
            calls += 1
    yield chunk({}, "tool_calls" if calls else "stop")
    if (body.get("stream_options") or {}).get("include_usage"):
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        yield sse(None, {**head, "model": body["model"], "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def whole(body: dict[str, Any], model: Model) -> dict[str, Any]:
    """The answer to a request that is not streamed."""
    asked, parts = model.parts(body)
    calls = [invocation(part, asked, model.project) for part in parts if not isinstance(part, Say | Think)]
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "".join(part.text for part in parts if isinstance(part, Say)) or None,
    }
    if calls:
        message["tool_calls"] = [
            {
                "id": fresh_id("call_"),
                "type": "function",
                "function": {"name": call.tool.name, "arguments": call.written},
            }
            for call in calls
        ]
    return {
        "id": fresh_id("chatcmpl-"),
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }
