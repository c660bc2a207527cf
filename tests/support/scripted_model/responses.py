"""The script in OpenAI Responses, and what the API refuses of an input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scripted_model.plan import Model
from scripted_model.steps import Say, Think
from scripted_model.tools import Invocation, invocation
from scripted_model.wire import fresh_id, pieces, sse

_CALLS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
_FOLLOWS_REASONING = {"message", "function_call", "custom_tool_call", "reasoning", "web_search_call"}
_USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 120,
}


def refusal(body: dict[str, Any]) -> str | None:
    """Why the API would refuse the request, or None."""
    items = body.get("input")
    if isinstance(items, str):
        return None
    if not isinstance(items, list) or not items:
        return "'input' is required"
    open_calls: dict[str, str] = {}
    for index, item in enumerate(items):
        kind = item.get("type") or ("message" if "role" in item else None)
        where = f"input[{index}]"
        if kind is None:
            return f"{where}: an item needs a type"
        if kind in _CALLS:
            open_calls[item["call_id"]] = _CALLS[kind]
        elif kind in _CALLS.values():
            if open_calls.pop(item["call_id"], None) != kind:
                return f"{where}: No tool call found for {kind} with call_id {item['call_id']}."
        elif kind == "reasoning":
            following = items[index + 1] if index + 1 < len(items) else {}
            then = following.get("type") or ("message" if following.get("role") == "assistant" else None)
            if then not in _FOLLOWS_REASONING or following.get("role", "assistant") != "assistant":
                return f"{where}: 'reasoning' was provided without its required following item."
            if not item.get("encrypted_content"):
                return f"{where}: Items are not persisted when `store` is set to false."
        elif kind == "message" and not item.get("content"):
            return f"{where}.content: must not be empty"
    if open_calls:
        return f"No tool output found for function call {min(open_calls)}."
    return None


class _Response:
    """Builds the events of one response."""

    def __init__(self, body: dict[str, Any]) -> None:
        self._id = fresh_id("resp_")
        self._model = body["model"]
        self._sequence = 0
        self._done: list[dict[str, Any]] = []

    def object(self, status: str) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": "response",
            "created_at": 1_790_000_000,
            "status": status,
            "model": self._model,
            "output": self._done,
            "error": None,
            "incomplete_details": None,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": _USAGE if status == "completed" else None,
        }

    def event(self, kind: str, **fields: Any) -> bytes:
        data = {"type": kind, "sequence_number": self._sequence, **fields}
        self._sequence += 1
        return sse(kind, data)

    def opening(self) -> Iterator[bytes]:
        yield self.event("response.created", response=self.object("in_progress"))
        yield self.event("response.in_progress", response=self.object("in_progress"))

    def message(self, text: str) -> Iterator[bytes]:
        item = {"id": fresh_id("msg_"), "type": "message", "role": "assistant"}
        at = {"item_id": item["id"], "output_index": len(self._done), "content_index": 0}
        part: dict[str, Any] = {"type": "output_text", "annotations": [], "logprobs": []}
        yield self._added({**item, "status": "in_progress", "content": []})
        yield self.event("response.content_part.added", **at, part={**part, "text": ""})
        for piece in pieces(text):
            yield self.event("response.output_text.delta", **at, delta=piece, logprobs=[])
        yield self.event("response.output_text.done", **at, text=text, logprobs=[])
        yield self.event("response.content_part.done", **at, part={**part, "text": text})
        yield self._finished({**item, "status": "completed", "content": [{**part, "text": text}]})

    def reasoning(self, text: str) -> Iterator[bytes]:
        item: dict[str, Any] = {"id": fresh_id("rs_"), "type": "reasoning", "summary": []}
        at = {"item_id": item["id"], "output_index": len(self._done), "summary_index": 0}
        part = {"type": "summary_text"}
        yield self._added(item)
        yield self.event("response.reasoning_summary_part.added", **at, part={**part, "text": ""})
        for piece in pieces(text):
            yield self.event("response.reasoning_summary_text.delta", **at, delta=piece)
        yield self.event("response.reasoning_summary_text.done", **at, text=text)
        yield self.event("response.reasoning_summary_part.done", **at, part={**part, "text": text})
        done = {**item, "summary": [{**part, "text": text}], "encrypted_content": fresh_id("enc")}
        yield self._finished(done)

    def call(self, call: Invocation) -> Iterator[bytes]:
        custom = call.tool.kind == "custom"
        kind, field = ("custom_tool_call", "input") if custom else ("function_call", "arguments")
        item = {"id": fresh_id("ctc_" if custom else "fc_"), "type": kind, "call_id": fresh_id("call_")}
        item["name"] = call.tool.name
        if call.tool.namespace and not custom:
            item["namespace"] = call.tool.namespace
        at = {"item_id": item["id"], "output_index": len(self._done)}
        event = f"response.{'custom_tool_call_input' if custom else 'function_call_arguments'}"
        yield self._added({**item, "status": "in_progress", field: ""})
        for piece in pieces(call.written):
            yield self.event(f"{event}.delta", **at, delta=piece)
        yield self.event(f"{event}.done", **at, **{field: call.written})
        yield self._finished({**item, "status": "completed", field: call.written})

    def end(self) -> bytes:
        return self.event("response.completed", response=self.object("completed"))

    def _added(self, item: dict[str, Any]) -> bytes:
        return self.event("response.output_item.added", output_index=len(self._done), item=item)

    def _finished(self, item: dict[str, Any]) -> bytes:
        index = len(self._done)
        self._done.append(item)
        return self.event("response.output_item.done", output_index=index, item=item)


def answer(body: dict[str, Any], model: Model) -> Iterator[bytes]:
    """The stream of events, as bytes of one event each."""
    asked, parts = model.parts(body)
    response = _Response(body)
    yield from response.opening()
    for part in parts:
        if isinstance(part, Say):
            yield from response.message(part.text)
        elif isinstance(part, Think):
            yield from response.reasoning(part.text)
        else:
            yield from response.call(invocation(part, asked, model.project))
    yield response.end()


def whole(body: dict[str, Any], model: Model) -> dict[str, Any]:
    """The answer to a request that is not streamed."""
    asked, parts = model.parts(body)
    response = _Response(body)
    for part in parts:
        match part:
            case Say(text):
                made = response.message(text)
            case Think(text):
                made = response.reasoning(text)
            case _:
                made = response.call(invocation(part, asked, model.project))
        for _ in made:
            pass
    return response.object("completed")
