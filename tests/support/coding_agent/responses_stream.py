"""Reads a Responses stream as strictly as the strictest client does."""

from __future__ import annotations

import json
from typing import Any

from coding_agent.stream import Answer, IllegalStream

_TEXTS = {
    "response.output_text": ("content", "content_index", "text"),
    "response.refusal": ("content", "content_index", "refusal"),
    "response.reasoning_text": ("content", "content_index", "text"),
    "response.reasoning_summary_text": ("summary", "summary_index", "text"),
    "response.function_call_arguments": ("arguments", None, "arguments"),
    "response.custom_tool_call_input": ("input", None, "input"),
}
_LIFECYCLE = ("response.in_progress", "response.completed", "response.incomplete", "response.failed")


class ResponsesStreamReader:
    """Assembles an `Answer` from the bytes of a stream; raises IllegalStream at the first illegal event.

    The answer's `message` is the final response, its `blocks` are the items in the words of `Answer`.
    """

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self._rest = b""
        self._sequence = -1
        self._id = ""
        self._open: dict[int, dict[str, Any]] = {}
        self._texts: dict[tuple[int, str, int], str] = {}
        self._done: dict[int, dict[str, Any]] = {}
        self._next = 0

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
        if not self.answer.blocks:
            self.answer.blocks = [_block(item) for _, item in sorted(self._done.items())]
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
        if event["sequence_number"] != self._sequence + 1:
            raise IllegalStream(f"number {event['sequence_number']} after {self._sequence}")
        self._sequence += 1
        self._event(event)

    def _event(self, event: dict[str, Any]) -> None:
        kind, answer = event["type"], self.answer
        if answer.complete:
            raise IllegalStream(f"{kind} after the end")
        answer.events.append(event)
        if kind == "error":
            raise IllegalStream("a bare error, which agents ignore")
        if (kind == "response.created") == bool(self._id):
            raise IllegalStream(f"{kind} {'twice' if self._id else 'before response.created'}")
        if kind == "response.created":
            self._id = event["response"]["id"]
        elif kind in _LIFECYCLE:
            self._lifecycle(kind, event["response"])
        elif kind == "response.output_item.added":
            self._added(event["output_index"], event["item"])
        elif kind == "response.output_item.done":
            self._item_done(event["output_index"], event["item"])
        elif "output_index" in event:
            self._within(kind, event)

    def _lifecycle(self, kind: str, response: dict[str, Any]) -> None:
        if response["id"] != self._id:
            raise IllegalStream("the response has another id")
        if kind == "response.in_progress":
            return
        if kind == "response.failed":
            self.answer.error = response["error"]
            self.answer.message = response
            return
        expected = {**self._done, **self._open}
        if any(item["type"] != "reasoning" for item in self._open.values()):
            raise IllegalStream("the end of the response leaves items open")
        if [item["id"] for item in response["output"]] != [
            item["id"] for _, item in sorted(expected.items())
        ]:
            raise IllegalStream("the final output is not what was streamed")
        for at, item in self._done.items():
            if response["output"][at] != item:
                raise IllegalStream(f"item {at} is another one at the end")
        self.answer.message = response
        self.answer.blocks = [_block(item) for _, item in sorted(self._done.items())]
        self.answer.usage = response["usage"] or {}
        self.answer.stop_reason = response["status"]
        self.answer.complete = True

    def _added(self, at: int, item: dict[str, Any]) -> None:
        if at != self._next:
            raise IllegalStream(f"output index {at} after {self._next} items")
        if any(other["id"] == item["id"] for other in (*self._open.values(), *self._done.values())):
            raise IllegalStream(f"a second item {item['id']}")
        self._next += 1
        self._open[at] = item

    def _within(self, kind: str, event: dict[str, Any]) -> None:
        at = event["output_index"]
        item = self._open.get(at)
        if item is None or item["id"] != event["item_id"]:
            raise IllegalStream(f"{kind} for an item that is not open")
        base, _, last = kind.rpartition(".")
        if base not in _TEXTS:
            return
        field, index, whole = _TEXTS[base]
        slot = (at, field, event[index] if index else 0)
        if last == "delta":
            self._texts[slot] = self._texts.get(slot, "") + event["delta"]
        elif self._texts.get(slot, "") != event[whole]:
            raise IllegalStream(f"{kind} does not repeat its deltas")

    def _item_done(self, at: int, item: dict[str, Any]) -> None:
        opened = self._open.pop(at, None)
        if opened is None or opened["id"] != item["id"]:
            raise IllegalStream("an item is done that was not open")
        for (index, field, part), text in self._texts.items():
            if index == at:
                value = item[field]
                said = value if isinstance(value, str) else _said(value[part])
                if said != text:
                    raise IllegalStream(f"item {at} is not what its deltas said")
        if item["type"] == "message" and not "".join(map(_said, item["content"])).strip():
            raise IllegalStream("a message without text")
        self._done[at] = item


def read_response(answer: Answer) -> Answer:
    """Fill in an answer that is one JSON document: a response or an error."""
    document = json.loads(answer.raw) if answer.raw else {}
    if document.get("object") == "response":
        answer.message = document
        answer.blocks = [_block(item) for item in document["output"]]
        answer.stop_reason = document["status"]
        answer.usage = document["usage"] or {}
        answer.complete = True
    else:
        answer.error = document.get("error")
    return answer


def _said(part: dict[str, Any]) -> str:
    return str(part.get("text") or part.get("refusal") or "")


def _block(item: dict[str, Any]) -> dict[str, Any]:
    match item["type"]:
        case "message":
            return {"type": "text", "text": "".join(map(_said, item["content"]))}
        case "reasoning":
            return {"type": "thinking", "thinking": "".join(map(_said, item["summary"]))}
        case "function_call" | "custom_tool_call" | "shell_call":
            return {**item, "type": "tool_use"}
        case _:
            return item
