"""A scripted turn as the API writes it: server-sent events or one JSON message."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

from strict_anthropic import signing
from strict_anthropic.canonical import prefix_text
from strict_anthropic.script import (
    Drop,
    Flow,
    Ping,
    Raw,
    RedactedBlock,
    ServerToolBlock,
    Stall,
    Step,
    StreamError,
    TextBlock,
    ThinkingBlock,
    ToolBlock,
    Turn,
    fresh_id,
)

Act: TypeAlias = bytes | Stall | Drop
"""What the server does next: write bytes, wait, or cut the connection."""

_CHARS_PER_TOKEN = 4


class Writer:
    """Writes one turn in answer to one request."""

    def __init__(self, turn: Turn, body: dict[str, Any], dropped: list[Any] | None = None) -> None:
        self.turn = turn
        self.message_id = fresh_id("msg_")
        self._model = body.get("model", "")
        self._dropped = dropped
        self._prefix = prefix_text(body)
        self._previous = signing.last_thinking_id(body)
        self._input_tokens = (
            turn.input_tokens if turn.input_tokens is not None else len(self._prefix) // _CHARS_PER_TOKEN
        )
        self._output_chars = 0
        self._index = 0

    def stream(self) -> Iterator[Act]:
        """The turn as server-sent events with what happens between them."""
        yield self._event("message_start", {"message": {**self._message([], None), "usage": self._usage(1)}})
        yield self._event("ping", {})
        for step in self.turn.steps:
            for act in self._step(step):
                yield act
                if isinstance(act, Drop):
                    return
            if isinstance(step, StreamError):
                return
        delta = {"stop_reason": self._stop_reason(), "stop_sequence": None}
        yield self._event(
            "message_delta", {"delta": delta, "usage": {"output_tokens": self._output_tokens()}}
        )
        yield self._event("message_stop", {})

    def message(self) -> dict[str, Any]:
        """The turn as one JSON message; flow steps are skipped."""
        content: list[dict[str, Any]] = []
        for step in self.turn.steps:
            if not isinstance(step, Stall | Drop | StreamError | Raw | Ping):
                content.extend(self._blocks(step))
        return {**self._message(content, self._stop_reason()), "usage": self._usage(self._output_tokens())}

    def _message(self, content: list[dict[str, Any]], stop_reason: str | None) -> dict[str, Any]:
        message: dict[str, Any] = {
            "id": self.message_id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": None,
        }
        if self._dropped:
            message["input_transformations"] = self._dropped
        return message

    def _usage(self, output: int) -> dict[str, Any]:
        return {
            "input_tokens": self._input_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": output,
            "service_tier": "standard",
        }

    def _output_tokens(self) -> int:
        return self._output_chars // _CHARS_PER_TOKEN + 1

    def _stop_reason(self) -> str:
        calls = any(isinstance(step, ToolBlock) for step in self.turn.steps)
        return self.turn.stop_reason or ("tool_use" if calls else "end_turn")

    def _event(self, name: str, data: dict[str, Any]) -> bytes:
        body = json.dumps({"type": name, **data, **self.turn.extra}, ensure_ascii=False)
        eol = self.turn.eol
        return f"event: {name}{eol}data: {body}{eol}{eol}".encode()

    def _start(self, block: dict[str, Any]) -> bytes:
        return self._event("content_block_start", {"index": self._index, "content_block": block})

    def _delta(self, kind: str, field: str, value: str) -> bytes:
        return self._event(
            "content_block_delta", {"index": self._index, "delta": {"type": kind, field: value}}
        )

    def _stop(self) -> bytes:
        event = self._event("content_block_stop", {"index": self._index})
        self._index += 1
        return event

    def _sign(self, kind: str, shown: str) -> str:
        signature = signing.sign(kind, shown, self._prefix, self._previous)
        parts = signing.read(signature)
        assert parts is not None
        self._previous = parts.id
        return signature

    def _flow(self, step: Flow) -> Iterator[Act]:
        match step:
            case Stall() | Drop():
                yield step
            case Raw(data):
                yield data
            case Ping():
                yield self._event("ping", {})
            case StreamError(kind, message):
                yield self._event("error", {"error": {"type": kind, "message": message}})

    def _pieces(self, pieces: tuple[str | Flow, ...], kind: str, field: str) -> Iterator[Act]:
        for piece in pieces:
            if isinstance(piece, str):
                self._output_chars += len(piece)
                for at in range(0, len(piece), self.turn.chunk):
                    yield self._delta(kind, field, piece[at : at + self.turn.chunk])
            else:
                yield from self._flow(piece)

    def _step(self, step: Step) -> Iterator[Act]:
        match step:
            case TextBlock(pieces):
                yield self._start({"type": "text", "text": ""})
                yield from self._pieces(pieces, "text_delta", "text")
                yield self._stop()
            case ThinkingBlock(pieces, omitted):
                yield self._start({"type": "thinking", "thinking": "", "signature": ""})
                if not omitted:
                    yield from self._pieces(pieces, "thinking_delta", "thinking")
                shown = "" if omitted else _joined(pieces)
                yield self._delta("signature_delta", "signature", self._sign("thinking", shown))
                yield self._stop()
            case ToolBlock(name, arguments, id_, midway):
                yield self._start({"type": "tool_use", "id": id_, "name": name, "input": {}})
                yield self._delta("input_json_delta", "partial_json", "")
                source = json.dumps(arguments, ensure_ascii=False)
                half = len(source) // 2
                yield from self._pieces(
                    (source[:half], *midway, source[half:]), "input_json_delta", "partial_json"
                )
                yield self._stop()
            case RedactedBlock() | ServerToolBlock():
                for block in self._blocks(step):
                    yield self._start(block)
                    yield self._stop()
            case _:
                yield from self._flow(step)

    def _blocks(self, step: Step) -> list[dict[str, Any]]:
        match step:
            case TextBlock(pieces):
                self._output_chars += len(_joined(pieces))
                return [{"type": "text", "text": _joined(pieces)}]
            case ThinkingBlock(pieces, omitted):
                shown = "" if omitted else _joined(pieces)
                self._output_chars += len(shown)
                return [{"type": "thinking", "thinking": shown, "signature": self._sign("thinking", shown)}]
            case RedactedBlock():
                return [{"type": "redacted_thinking", "data": self._sign("redacted_thinking", "")}]
            case ToolBlock(name, arguments, id_):
                self._output_chars += len(json.dumps(arguments))
                return [{"type": "tool_use", "id": id_, "name": name, "input": dict(arguments)}]
            case ServerToolBlock(name, arguments, result, id_):
                call = {"type": "server_tool_use", "id": id_, "name": name, "input": dict(arguments)}
                answer = {"type": f"{name}_tool_result", "tool_use_id": id_, "content": result}
                return [call, answer]
            case _:
                raise TypeError(f"not a block: {step!r}")


def _joined(pieces: tuple[str | Flow, ...]) -> str:
    return "".join(piece for piece in pieces if isinstance(piece, str))
