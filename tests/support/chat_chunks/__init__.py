"""Chat Completions streams in the spelling of one server or another."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["DONE", "call", "chunk", "data", "joined", "stream", "usage"]

DONE = b"data: [DONE]\n\n"


def data(payload: Any) -> bytes:
    """One event with this JSON, with spaces after separators as most servers write it."""
    return f"data: {json.dumps(payload, ensure_ascii=False)}\n\n".encode()


def chunk(
    delta: dict[str, Any] | None = None, finish: str | None = None, *, index: int = 0, **more: Any
) -> dict[str, Any]:
    """A chunk with one choice; `more` are further fields of the chunk."""
    choice = {"index": index, "delta": delta or {}, "logprobs": None, "finish_reason": finish}
    return {
        "id": "chatcmpl-A",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": "gpt-x",
        "system_fingerprint": "fp_1",
        "choices": [choice],
        **more,
    }


def usage(prompt: int = 10, completion: int = 5, **more: Any) -> dict[str, Any]:
    """The chunk that tells the usage after the last choice."""
    told = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {**chunk(), "choices": [], "usage": told, **more}


def call(
    index: int | None, arguments: str | None = None, *, id: str | None = None, name: str | None = None
) -> dict[str, Any]:
    """A delta with one piece of a tool call; what is None is left out."""
    function = {"name": name, "arguments": arguments}
    entry = {"index": index, "id": id, "type": "function" if id else None}
    entry = {key: value for key, value in entry.items() if value is not None}
    return {"tool_calls": [{**entry, "function": {k: v for k, v in function.items() if v is not None}}]}


def stream(*payloads: Any, done: bool = True) -> bytes:
    """The events of these payloads; bytes stand for themselves."""
    written = b"".join(one if isinstance(one, bytes) else data(one) for one in payloads)
    return written + DONE if done else written


def joined(written: bytes) -> dict[str, Any]:
    """What a client that goes by the indexes makes of a stream with one choice."""
    message: dict[str, Any] = {"ids": set(), "finish": [], "usage": [], "done": 0}
    for event in written.decode().split("\n\n"):
        if not event.startswith("data: "):
            continue
        if event == "data: [DONE]":
            message["done"] += 1
            continue
        payload = json.loads(event[6:])
        message["ids"].add(payload["id"])
        if payload.get("usage"):
            message["usage"].append(payload["usage"])
        for choice in payload["choices"]:
            for name, value in choice["delta"].items():
                if name == "tool_calls":
                    _join_calls(message.setdefault("tool_calls", []), value)
                elif isinstance(value, str):
                    message[name] = message.get(name, "") + value
            if choice["finish_reason"]:
                message["finish"].append(choice["finish_reason"])
    return message


def _join_calls(calls: list[dict[str, Any]], pieces: list[dict[str, Any]]) -> None:
    for piece in pieces:
        if piece["index"] == len(calls):
            calls.append({"id": piece["id"], "name": piece["function"]["name"], "arguments": ""})
        calls[piece["index"]]["arguments"] += piece["function"].get("arguments") or ""
