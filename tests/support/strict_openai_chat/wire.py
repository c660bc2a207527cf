"""A scripted turn as servers of Chat Completions write it: server-sent events or one JSON document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from strict_anthropic.script import (
    Drop,
    Flow,
    Ping,
    Raw,
    Stall,
    Step,
    StreamError,
    TextBlock,
    ThinkingBlock,
    ToolBlock,
    Turn,
    fresh_id,
)
from strict_anthropic.wire import Act

_CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a server differs from OpenAI's own."""

    role_everywhere: bool = False
    """Every chunk names the role, and none is for the role alone."""
    whole_calls: bool = False
    """A tool call is one piece."""
    stop_in_last: bool = False
    """The reason to stop stands in the last chunk that says something."""
    count_calls: bool = True
    """Without it every call has the index 0."""
    ids: bool = True
    prompt_filter: bool = False
    """A first chunk without choices, as Azure sends it."""
    reasoning: str = "reasoning_content"
    takes_reasoning: bool = False
    """Reasoning may come back in the history."""
    done: bool = True
    older_calls: bool = False
    """`function_call` instead of `tool_calls`."""


OPENAI = Dialect()


class Writer:
    """Writes one turn in answer to one request."""

    def __init__(self, turn: Turn, body: dict[str, Any], dialect: Dialect) -> None:
        self.turn = turn
        self.dialect = dialect
        self._body = body
        self._id = fresh_id("chatcmpl-")
        self._calls = 0
        self._output_chars = 0

    def stream(self) -> Iterator[Act]:
        """The turn as server-sent events with what happens between them."""
        dialect = self.dialect
        if dialect.prompt_filter:
            first = {"id": "", "object": "", "created": 0, "model": "", "choices": []}
            yield self._event({**first, "prompt_filter_results": [{"prompt_index": 0}]})
        if not dialect.role_everywhere:
            yield self._chunk({"role": "assistant", "content": "", "refusal": None})
        held: dict[str, Any] | None = None
        for act in self._acts():
            if isinstance(act, dict):
                if held is not None:
                    yield self._chunk(held)
                held = act
                if not dialect.stop_in_last:
                    yield self._chunk(held)
                    held = None
                continue
            if held is not None:
                yield self._chunk(held)
                held = None
            yield act
            if isinstance(act, Drop):
                return
        if any(isinstance(step, StreamError) for step in self.turn.steps):
            return
        yield self._chunk(held or {}, self._reason())
        if (self._body.get("stream_options") or {}).get("include_usage"):
            yield self._event({**self._head(), "choices": [], "usage": self._usage()})
        if dialect.done:
            yield f"data: [DONE]{self.turn.eol * 2}".encode()

    def message(self) -> dict[str, Any]:
        """The turn as one JSON document; flow steps are skipped."""
        choices = []
        for index in range(self._body.get("n") or 1):
            self._calls = 0
            message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
            for delta in self._acts():
                if isinstance(delta, dict):
                    _add(message, delta)
            choices.append(
                {"index": index, "message": message, "logprobs": None, "finish_reason": self._reason()}
            )
        return {**self._head(), "object": "chat.completion", "choices": choices, "usage": self._usage()}

    def _acts(self) -> Iterator[Act | dict[str, Any]]:
        """Deltas, and what happens between them."""
        for step in self.turn.steps:
            yield from self._step(step)
            if isinstance(step, StreamError):
                return

    def _step(self, step: Step) -> Iterator[Act | dict[str, Any]]:
        match step:
            case TextBlock(pieces):
                yield from self._pieces(pieces, "content")
            case ThinkingBlock(pieces):
                yield from self._pieces(pieces, self.dialect.reasoning)
            case ToolBlock():
                yield from self._call(step)
            case Stall() | Drop() | Raw() | Ping() | StreamError():
                yield from self._flow(step)
            case _:
                raise TypeError(f"not of this API: {step!r}")

    def _pieces(self, pieces: tuple[str | Flow, ...], field: str) -> Iterator[Act | dict[str, Any]]:
        for piece in pieces:
            if isinstance(piece, str):
                self._output_chars += len(piece)
                for at in range(0, len(piece), self.turn.chunk):
                    yield {field: piece[at : at + self.turn.chunk]}
            else:
                yield from self._flow(piece)

    def _call(self, step: ToolBlock) -> Iterator[Act | dict[str, Any]]:
        dialect = self.dialect
        source = json.dumps(step.input, ensure_ascii=False)
        self._output_chars += len(source)
        if dialect.older_calls:
            yield {"function_call": {"name": step.name, "arguments": ""}}
            yield {"function_call": {"arguments": source}}
            return
        index = self._calls if dialect.count_calls else 0
        self._calls += 1
        start = {"index": index, **({"id": step.id} if dialect.ids else {}), "type": "function"}
        if dialect.whole_calls:
            yield {"tool_calls": [{**start, "function": {"name": step.name, "arguments": source}}]}
            return
        yield {"tool_calls": [{**start, "function": {"name": step.name, "arguments": ""}}]}
        half = len(source) // 2
        for part in (source[:half], *step.midway, source[half:]):
            if not isinstance(part, str):
                yield from self._flow(part)
                continue
            for at in range(0, len(part), self.turn.chunk):
                piece = part[at : at + self.turn.chunk]
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

    def _flow(self, step: Flow) -> Iterator[Act]:
        match step:
            case Stall() | Drop():
                yield step
            case Raw(data):
                yield data
            case Ping():
                yield b": OPENROUTER PROCESSING\n\n"
            case StreamError(kind, message):
                yield self._event({"error": {"message": message, "type": kind, "param": None, "code": None}})

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        if self.dialect.role_everywhere:
            delta = {"role": "assistant", "content": "", **delta}
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self._event({**self._head(), "choices": [choice], **self.turn.extra})

    def _event(self, payload: dict[str, Any]) -> bytes:
        return f"data: {json.dumps(payload, ensure_ascii=False)}{self.turn.eol * 2}".encode()

    def _head(self) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": 1764547200 + int(self._id[9:17]),
            "model": self._body.get("model", ""),
            "system_fingerprint": "fp_" + self._id[9:17],
        }

    def _reason(self) -> str:
        calls = any(isinstance(step, ToolBlock) for step in self.turn.steps)
        name = "function_call" if self.dialect.older_calls else "tool_calls"
        return self.turn.stop_reason or (name if calls else "stop")

    def _usage(self) -> dict[str, Any]:
        prompt = self.turn.input_tokens
        if prompt is None:
            prompt = len(json.dumps(self._body.get("messages"))) // _CHARS_PER_TOKEN
        completion = self._output_chars // _CHARS_PER_TOKEN + 1
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _add(message: dict[str, Any], delta: dict[str, Any]) -> None:
    for name, value in delta.items():
        if isinstance(value, str):
            message[name] = (message.get(name) or "") + value
        elif name == "function_call":
            call = message.setdefault(name, {"name": "", "arguments": ""})
            call["name"] += value.get("name", "")
            call["arguments"] += value["arguments"]
        else:
            (piece,) = value
            calls = message.setdefault("tool_calls", [])
            if "type" in piece:
                calls.append({key: part for key, part in piece.items() if key != "index"})
            else:
                calls[-1]["function"]["arguments"] += piece["function"]["arguments"]
