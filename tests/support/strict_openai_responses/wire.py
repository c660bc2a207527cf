"""A scripted turn as the API writes it: server-sent events or one JSON response."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from strict_anthropic.script import (
    Drop,
    Ping,
    Raw,
    ServerToolBlock,
    Stall,
    StreamError,
    TextBlock,
    ThinkingBlock,
    ToolBlock,
    Turn,
    fresh_id,
)
from strict_anthropic.wire import Act

from strict_openai_responses.script import CustomBlock, ReasoningBlock, RefusalBlock, ShellBlock

Item = dict[str, Any]

_CHARS_PER_TOKEN = 4
ENCRYPTED = "gAAAA-strict-"


def encrypted(item_id: str) -> str:
    """The encrypted content of a reasoning item."""
    return f"{ENCRYPTED}{item_id}"


class Writer:
    """Writes one turn in answer to one request.

    `output` are the items that it has finished; `finished` is called before the terminal event.
    """

    def __init__(
        self, turn: Turn, body: dict[str, Any], finished: Callable[[Writer], None] | None = None
    ) -> None:
        self.turn = turn
        self._finished = finished
        self.response_id = fresh_id("resp_")
        self.output: list[Item] = []
        self._body = body
        self._sequence = 0
        self._chars = 0
        stateless = body.get("store") is False
        self._encrypts = stateless or "reasoning.encrypted_content" in (body.get("include") or [])
        self._input_tokens = (
            turn.input_tokens if turn.input_tokens is not None else len(json.dumps(body)) // _CHARS_PER_TOKEN
        )

    def stream(self) -> Iterator[Act]:
        """The turn as server-sent events with what happens between them."""
        yield self._event("response.created", response=self._response("in_progress", [], None))
        yield self._event("response.in_progress", response=self._response("in_progress", [], None))
        for step in self.turn.steps:
            for act in self._step(step):
                yield act
                if isinstance(act, Drop):
                    return
            if isinstance(step, StreamError):
                return
        status = "incomplete" if self.turn.stop_reason else "completed"
        yield self._event(f"response.{status}", response=self.message())

    def message(self) -> dict[str, Any]:
        """The turn as one JSON document."""
        if not self.output:
            for step in self.turn.steps:
                self.output.extend(self._items(step))
        if self._finished is not None:
            self._finished(self)
        status = "incomplete" if self.turn.stop_reason else "completed"
        return self._response(status, self.output, self._usage())

    def _response(self, status: str, output: list[Item], usage: Any) -> dict[str, Any]:
        reason = {"reason": self.turn.stop_reason} if status == "incomplete" else None
        return {
            "id": self.response_id,
            "object": "response",
            "created_at": 1_780_000_000,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": reason,
            "instructions": self._body.get("instructions"),
            "max_output_tokens": self._body.get("max_output_tokens"),
            "model": self._body.get("model"),
            "output": list(output),
            "parallel_tool_calls": True,
            "previous_response_id": self._body.get("previous_response_id"),
            "store": self._body.get("store", True),
            "temperature": 1.0,
            "text": {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "usage": usage,
            "metadata": {},
        }

    def _usage(self) -> dict[str, Any]:
        output = self._chars // _CHARS_PER_TOKEN + 1
        return {
            "input_tokens": self._input_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": self._input_tokens + output,
        }

    def _event(self, name: str, /, **data: Any) -> bytes:
        payload = {"type": name, "sequence_number": self._sequence, **data, **self.turn.extra}
        self._sequence += 1
        eol = self.turn.eol
        return f"event: {name}{eol}data: {json.dumps(payload, ensure_ascii=False)}{eol}{eol}".encode()

    def _step(self, step: Any) -> Iterator[Act]:
        match step:
            case Stall() | Drop():
                yield step
            case Raw(data):
                yield data
            case Ping():
                yield self._event("keepalive")
            case StreamError(kind, message):
                failed = {**self._response("failed", [], None), "error": {"code": kind, "message": message}}
                yield self._event("response.failed", response=failed)
            case _:
                for item in self._items(step):
                    yield from self._item(step, item)
                    self.output.append(item)

    def _item(self, step: Any, item: Item) -> Iterator[Act]:
        at = len(self.output)
        where = {"item_id": item["id"], "output_index": at}
        opening = {**item, "status": "in_progress"} if "status" in item else dict(item)
        for field, empty in (("content", []), ("summary", []), ("arguments", ""), ("input", "")):
            if field in opening:
                opening[field] = empty
        opening.pop("encrypted_content", None)
        yield self._event("response.output_item.added", output_index=at, item=opening)
        match step:
            case TextBlock(pieces):
                part = item["content"][0]
                where = {**where, "content_index": 0}
                yield self._event("response.content_part.added", **where, part={**part, "text": ""})
                yield from self._deltas("response.output_text.delta", pieces, where, logprobs=[])
                yield self._event("response.output_text.done", **where, text=part["text"], logprobs=[])
                yield self._event("response.content_part.done", **where, part=part)
            case RefusalBlock(text):
                part = item["content"][0]
                where = {**where, "content_index": 0}
                yield self._event("response.content_part.added", **where, part={**part, "refusal": ""})
                yield from self._deltas("response.refusal.delta", (text,), where)
                yield self._event("response.refusal.done", **where, refusal=text)
                yield self._event("response.content_part.done", **where, part=part)
            case ThinkingBlock(pieces, omitted) if not omitted:
                yield from self._summary(0, pieces, where)
            case ReasoningBlock(parts, raw):
                for number, text in enumerate(parts):
                    if raw:
                        place = {**where, "content_index": number}
                        yield from self._deltas("response.reasoning_text.delta", (text,), place)
                        yield self._event("response.reasoning_text.done", **place, text=text)
                    else:
                        yield from self._summary(number, (text,), where)
            case ToolBlock(_, _, _, midway):
                text = item["arguments"]
                half = len(text) // 2
                pieces = (text[:half], *midway, text[half:])
                yield from self._deltas("response.function_call_arguments.delta", pieces, where)
                yield self._event(
                    "response.function_call_arguments.done", **where, name=item["name"], arguments=text
                )
            case CustomBlock(_, pieces, _):
                yield from self._deltas("response.custom_tool_call_input.delta", pieces, where)
                yield self._event("response.custom_tool_call_input.done", **where, input=item["input"])
            case ServerToolBlock():
                for phase in ("in_progress", "searching", "completed"):
                    yield self._event(f"response.web_search_call.{phase}", **where)
            case _:
                pass
        yield self._event("response.output_item.done", output_index=at, item=item)

    def _summary(self, number: int, pieces: Any, where: dict[str, Any]) -> Iterator[Act]:
        where = {**where, "summary_index": number}
        text = _joined(pieces)
        name = "response.reasoning_summary_"
        yield self._event(f"{name}part.added", **where, part={"type": "summary_text", "text": ""})
        yield from self._deltas(f"{name}text.delta", pieces, where)
        yield self._event(f"{name}text.done", **where, text=text)
        yield self._event(f"{name}part.done", **where, part={"type": "summary_text", "text": text})

    def _deltas(self, name: str, pieces: Any, where: dict[str, Any], /, **more: Any) -> Iterator[Act]:
        for piece in pieces:
            if not isinstance(piece, str):
                yield from self._step(piece)
                continue
            for at in range(0, len(piece), self.turn.chunk):
                text = piece[at : at + self.turn.chunk]
                yield self._event(name, **where, delta=text, **more, obfuscation="x")

    def _items(self, step: Any) -> list[Item]:
        items = self._made(step)
        self._chars += sum(len(json.dumps(item)) for item in items)
        return items

    def _made(self, step: Any) -> list[Item]:
        match step:
            case TextBlock(pieces):
                part = {"type": "output_text", "text": _joined(pieces), "annotations": [], "logprobs": []}
                return [_message(part)]
            case RefusalBlock(text):
                return [_message({"type": "refusal", "refusal": text})]
            case ThinkingBlock(pieces, omitted):
                return [self._reasoning(() if omitted else (_joined(pieces),), raw=False)]
            case ReasoningBlock(parts, raw):
                return [self._reasoning(parts, raw=raw)]
            case ToolBlock(name, arguments, call_id):
                return [
                    {
                        "id": fresh_id("fc_"),
                        "type": "function_call",
                        "status": "completed",
                        "call_id": call_id,
                        "name": name,
                        "arguments": json.dumps(arguments, ensure_ascii=False),
                    }
                ]
            case CustomBlock(name, pieces, call_id):
                return [
                    {
                        "id": fresh_id("ctc_"),
                        "type": "custom_tool_call",
                        "status": "completed",
                        "call_id": call_id,
                        "name": name,
                        "input": _joined(pieces),
                    }
                ]
            case ShellBlock(command, call_id):
                return [
                    {
                        "id": fresh_id("sh_"),
                        "type": "shell_call",
                        "status": "completed",
                        "call_id": call_id,
                        "action": {"commands": [command], "timeout_ms": None, "max_output_length": None},
                    }
                ]
            case ServerToolBlock(_, arguments, _):
                action = {"type": "search", **arguments}
                return [
                    {
                        "id": fresh_id("ws_"),
                        "type": "web_search_call",
                        "status": "completed",
                        "action": action,
                    }
                ]
            case _:
                return []

    def _reasoning(self, parts: tuple[str, ...], *, raw: bool) -> Item:
        item_id = fresh_id("rs_")
        summary = [] if raw else [{"type": "summary_text", "text": text} for text in parts]
        item: Item = {"id": item_id, "type": "reasoning", "summary": summary}
        if raw:
            item["content"] = [{"type": "reasoning_text", "text": text} for text in parts]
        if self._encrypts:
            item["encrypted_content"] = encrypted(item_id)
        return item


def _message(part: dict[str, Any]) -> Item:
    return {
        "id": fresh_id("msg_"),
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [part],
    }


def _joined(pieces: Any) -> str:
    return "".join(piece for piece in pieces if isinstance(piece, str))
