"""The same answers in every protocol, as the bytes of events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from strict_anthropic.script import Turn, text, turn
from strict_anthropic.wire import Writer as AnthropicWriter
from strict_openai_chat.wire import Dialect as ChatDialect
from strict_openai_chat.wire import Writer as ChatWriter
from strict_openai_responses.wire import Writer as ResponsesWriter

__all__ = ["DIALECTS", "Dialect"]

_MESSAGES = [{"role": "user", "content": "hi"}]


@dataclass(frozen=True, slots=True)
class Dialect:
    """One protocol: where its requests go, what they look like and how its answers are written."""

    path: str
    headers: tuple[tuple[str, str], ...]
    request: dict[str, Any]
    writer: Callable[[Turn, dict[str, Any]], Any]
    terminal: bytes
    """What stands in the end of every whole answer."""
    error: bytes
    """An error as the API reports it inside a stream."""

    def body(self, **more: Any) -> bytes:
        """The request for a streamed answer, with these fields changed."""
        return json.dumps({**self.request, **more}).encode()

    def events(self, *texts: str) -> list[bytes]:
        """The events of an answer that says these texts, one delta each."""
        acts: Iterator[Any] = self.writer(turn(text(*texts)), self.request).stream()
        return [act for act in acts if isinstance(act, bytes)]


DIALECTS = {
    "anthropic": Dialect(
        "/v1/messages",
        (("content-type", "application/json"), ("x-api-key", "k"), ("anthropic-version", "2023-06-01")),
        {"model": "claude-opus-5-5", "max_tokens": 900, "stream": True, "messages": _MESSAGES},
        AnthropicWriter,
        b"message_stop",
        b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n',
    ),
    "chat": Dialect(
        "/v1/chat/completions",
        (("content-type", "application/json"), ("authorization", "Bearer k")),
        {"model": "gpt-x", "stream": True, "messages": _MESSAGES},
        lambda said, body: ChatWriter(said, body, ChatDialect()),
        b"[DONE]",
        b'data: {"error":{"message":"busy","type":"server_error","code":"overloaded"}}\n\n',
    ),
    "responses": Dialect(
        "/v1/responses",
        (("content-type", "application/json"), ("authorization", "Bearer k")),
        {"model": "gpt-x", "stream": True, "store": False, "input": _MESSAGES},
        ResponsesWriter,
        b"response.completed",
        b'event: error\ndata: {"type":"error","code":"server_error","message":"busy"}\n\n',
    ),
}
