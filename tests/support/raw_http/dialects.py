"""The same answers in every protocol, as the bytes of events."""

from __future__ import annotations

import json
import re
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

    name: str
    path: str
    headers: tuple[tuple[str, str], ...]
    request: dict[str, Any]
    writer: Callable[[Turn, dict[str, Any]], Any]
    terminal: bytes
    """What stands in the end of every whole answer."""
    error: bytes
    """An error as the API reports it inside a stream."""
    delta: re.Pattern[str]
    """Finds the text of each delta of prose."""

    @property
    def history(self) -> str:
        """The field of a request that holds the conversation."""
        return "input" if "input" in self.request else "messages"

    def body(self, **more: Any) -> bytes:
        """The request for a streamed answer, with these fields changed."""
        return json.dumps({**self.request, **more}).encode()

    def events(self, *texts: str) -> list[bytes]:
        """The events of an answer that says these texts, one delta each."""
        return self.answer(text(*texts))

    def answer(self, *steps: Any, **options: Any) -> list[bytes]:
        """The events of an answer with these blocks; `options` are fields of its `Turn`."""
        acts: Iterator[Any] = self.writer(turn(*steps, **options), self.request).stream()
        return [act for act in acts if isinstance(act, bytes)]

    def message(self, *texts: str) -> bytes:
        """The same answer as one document."""
        return json.dumps(self.writer(turn(text(*texts)), self.request).message()).encode()

    def turns(self, *said: tuple[str, str], first: str = "hi") -> bytes:
        """The request of a conversation so far: who said what after the user's first message."""
        said = (("user", first), *said)
        return self.body(**{self.history: [{"role": role, "content": text} for role, text in said]})

    def said(self, data: bytes) -> str:
        """The text of the deltas in the bytes of a stream, the last event perhaps cut off."""
        return "".join(json.loads(f'"{found}"') for found in self.delta.findall(data.decode()))


DIALECTS = {
    "anthropic": Dialect(
        "anthropic",
        "/v1/messages",
        (("content-type", "application/json"), ("x-api-key", "k"), ("anthropic-version", "2023-06-01")),
        {"model": "claude-opus-5-5", "max_tokens": 900, "stream": True, "messages": _MESSAGES},
        AnthropicWriter,
        b"message_stop",
        b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n',
        re.compile(r'"type": ?"text_delta", ?"text": ?"((?:[^"\\]|\\.)*)"'),
    ),
    "chat": Dialect(
        "chat",
        "/v1/chat/completions",
        (("content-type", "application/json"), ("authorization", "Bearer k")),
        {"model": "gpt-x", "stream": True, "messages": _MESSAGES},
        lambda said, body: ChatWriter(said, body, ChatDialect()),
        b"[DONE]",
        b'data: {"error":{"message":"busy","type":"server_error","code":"overloaded"}}\n\n',
        re.compile(r'"content": ?"((?:[^"\\]|\\.)*)"'),
    ),
    "responses": Dialect(
        "responses",
        "/v1/responses",
        (("content-type", "application/json"), ("authorization", "Bearer k")),
        {"model": "gpt-x", "stream": True, "store": False, "input": _MESSAGES},
        ResponsesWriter,
        b"response.completed",
        b'event: error\ndata: {"type":"error","code":"server_error","message":"busy"}\n\n',
        re.compile(r'response\.output_text\.delta"[^\n]*?"delta": ?"((?:[^"\\]|\\.)*)"'),
    ),
}
