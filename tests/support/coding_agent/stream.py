"""Reads a Messages stream as strictly as the strictest client does."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

_DELTAS = {
    "text": {"text_delta": "text", "citations_delta": ""},
    "thinking": {"thinking_delta": "thinking", "signature_delta": "signature"},
    "tool_use": {"input_json_delta": "partial_json"},
    "server_tool_use": {"input_json_delta": "partial_json"},
}
_EVENTS = {
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "ping",
    "error",
}


class IllegalStream(AssertionError):
    """The stream breaks a rule that some client relies on."""


@dataclass(slots=True)
class Answer:
    """A response as the client has it."""

    status: int
    headers: dict[str, str]
    raw: bytes
    events: list[dict[str, Any]] = field(default_factory=list)
    message: dict[str, Any] = field(default_factory=dict)
    blocks: list[dict[str, Any]] = field(default_factory=list)
    stop_reason: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    error: dict[str, Any] | None = None
    """The error of an error response or of an `error` event."""
    complete: bool = False
    """The terminal event came."""

    @property
    def text(self) -> str:
        """All text blocks, joined."""
        return "".join(block["text"] for block in self.blocks if block["type"] == "text")

    @property
    def texts(self) -> list[str]:
        return [block["text"] for block in self.blocks if block["type"] == "text"]

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [block for block in self.blocks if block["type"] == "tool_use"]

    @property
    def kinds(self) -> list[str]:
        return [block["type"] for block in self.blocks]


class StreamReader:
    """Assembles an `Answer` from the bytes of a stream; raises IllegalStream at the first illegal event."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self._rest = b""
        self._open: int | None = None
        self._json = ""
        self._ended = False

    def feed(self, data: bytes) -> None:
        self.answer.raw += data
        self._rest += data.replace(b"\r\n", b"\n")
        while b"\n\n" in self._rest:
            event, self._rest = self._rest.split(b"\n\n", 1)
            self._sse(event.decode())

    def close(self) -> Answer:
        """The answer; for a stream that ended without its terminal event `complete` is false."""
        if self._rest.strip():
            raise IllegalStream(f"bytes after the last event: {self._rest!r}")
        return self.answer

    def _sse(self, source: str) -> None:
        name, data = None, []
        for line in source.split("\n"):
            if line.startswith("event:"):
                name = line[6:].strip()
            elif line.startswith("data:"):
                data.append(line[5:].strip())
        if not data:
            return
        event = json.loads("\n".join(data))
        if name != event["type"]:
            raise IllegalStream(f"event line says {name!r}, data says {event['type']!r}")
        self._event(event)

    def _event(self, event: dict[str, Any]) -> None:
        kind, answer = event["type"], self.answer
        if kind not in _EVENTS:
            raise IllegalStream(f"unknown event type {kind!r}")
        if answer.complete:
            raise IllegalStream(f"{kind} after message_stop")
        answer.events.append(event)
        if kind == "ping":
            return
        if kind == "error":
            answer.error = event["error"]
            return
        if (kind == "message_start") == bool(answer.message):
            raise IllegalStream(f"{kind} {'twice' if answer.message else 'before message_start'}")
        getattr(self, "_" + kind)(event)

    def _message_start(self, event: dict[str, Any]) -> None:
        self.answer.message = event["message"]
        self.answer.usage = dict(event["message"]["usage"])
        if event["message"]["content"]:
            raise IllegalStream("message_start carries content")

    def _content_block_start(self, event: dict[str, Any]) -> None:
        if self._open is not None:
            raise IllegalStream("a block starts while another is open")
        if event["index"] != len(self.answer.blocks):
            raise IllegalStream(f"index {event['index']} after {len(self.answer.blocks)} blocks")
        if self._ended:
            raise IllegalStream("a block after the stop reason")
        self._open, self._json = event["index"], ""
        self.answer.blocks.append(dict(event["content_block"]))

    def _content_block_delta(self, event: dict[str, Any]) -> None:
        if event["index"] != self._open:
            raise IllegalStream(f"delta for block {event['index']} while {self._open} is open")
        block, delta = self.answer.blocks[-1], event["delta"]
        fields = _DELTAS.get(block["type"], {})
        if delta["type"] not in fields:
            raise IllegalStream(f"{delta['type']} in a {block['type']} block")
        name = fields[delta["type"]]
        if name == "partial_json":
            self._json += delta["partial_json"]
        elif name == "signature":
            block["signature"] = delta["signature"]
        elif name:
            block[name] += delta[name]

    def _content_block_stop(self, event: dict[str, Any]) -> None:
        if event["index"] != self._open:
            raise IllegalStream(f"stop of block {event['index']} while {self._open} is open")
        self._open = None
        block = self.answer.blocks[-1]
        if block["type"] == "tool_use":
            block["input"] = json.loads(self._json) if self._json else {}
        if block["type"] == "text" and not block["text"].strip():
            raise IllegalStream("a text block without text")
        if block["type"] == "thinking" and not block["signature"]:
            raise IllegalStream("thinking without a signature")

    def _message_delta(self, event: dict[str, Any]) -> None:
        self.answer.usage.update(event["usage"])
        if event["delta"]["stop_reason"] is not None:
            if self._open is not None:
                raise IllegalStream("a stop reason while a block is open")
            if self._ended:
                raise IllegalStream("two stop reasons")
            self._ended = True
            self.answer.stop_reason = event["delta"]["stop_reason"]

    def _message_stop(self, event: dict[str, Any]) -> None:
        if not self._ended:
            raise IllegalStream("message_stop without a stop reason")
        if (self.answer.stop_reason == "tool_use") != bool(self.answer.calls):
            raise IllegalStream(f"stop reason {self.answer.stop_reason!r} with blocks {self.answer.kinds}")
        self.answer.complete = True


def read_message(answer: Answer) -> Answer:
    """Fill in an answer that is one JSON document: a message or an error."""
    document = json.loads(answer.raw) if answer.raw else {}
    if document.get("type") == "message":
        answer.message = document
        answer.blocks = list(document["content"])
        answer.stop_reason = document["stop_reason"]
        answer.usage = document["usage"]
        answer.complete = True
    else:
        answer.error = document.get("error")
    return answer
