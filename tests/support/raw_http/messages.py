"""Plain Anthropic Messages traffic, as bytes."""

from __future__ import annotations

import json

BODY = json.dumps(
    {
        "model": "claude-opus-5-5",
        "max_tokens": 100,
        "stream": True,
        "messages": [{"role": "user", "content": "hi"}],
    }
).encode()
HEADERS = (("content-type", "application/json"), ("x-api-key", "k"), ("anthropic-version", "2023-06-01"))


def events(*texts: str) -> list[bytes]:
    """The events of an answer that says these texts, one delta each."""

    def event(name: str, **data: object) -> bytes:
        return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode()

    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    stop = {"stop_reason": "end_turn", "stop_sequence": None}
    deltas = [
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": text}) for text in texts
    ]
    return [
        event("message_start", message=message),
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        *deltas,
        event("content_block_stop", index=0),
        event("message_delta", delta=stop, usage={"output_tokens": 5}),
        event("message_stop"),
    ]
