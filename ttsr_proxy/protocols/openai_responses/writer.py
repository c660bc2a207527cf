"""The bytes of the one response that the client receives.

A first attempt passes as it came. From the first splice on, sequence numbers are counted on, and the terminal
event carries the client's response id and every item that the client was given: the official SDK's final
response is that event's, and it refuses a second id, a second item of an index, and items that the end
does not know. A message that was cut is closed as if it were complete. Other items that were cut stay open:
all clients drop those.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ttsr_proxy.jsontext import JsonObject, JsonValue, decode_object
from ttsr_proxy.jsontext import encode as encode_json
from ttsr_proxy.protocols import sse
from ttsr_proxy.protocols.events import (
    BlockDelta,
    BlockEnded,
    BlockKind,
    BlockStarted,
    Other,
    ResponseEnded,
    ResponseEnding,
    ResponseStarted,
)
from ttsr_proxy.protocols.openai_responses.instructions import as_asked
from ttsr_proxy.protocols.openai_responses.items import (
    SEPARATOR,
    assembled,
    item_type,
    kind_of,
    part_text,
    text_of,
    without_texts,
)
from ttsr_proxy.protocols.request import ApiRequest

_SEQUENCE = re.compile(rb'(?<!\\)"sequence_number"\s*:\s*(\d+)')

_LIFECYCLE = ("response.created", "response.queued", "response.in_progress")


@dataclass(slots=True)
class _Part:
    """A content part of a message as the client has it."""

    value: JsonObject
    pieces: list[str] = field(default_factory=list)
    text_done: bool = False
    done: bool = False

    @property
    def is_refusal(self) -> bool:
        return self.value.get("type") == "refusal"

    def complete(self) -> JsonObject:
        return {**self.value, "refusal" if self.is_refusal else "text": "".join(self.pieces)}


@dataclass(slots=True)
class _Item:
    """An item that the client was given. `sent` are its events, kept until it is complete."""

    value: JsonObject
    sent: list[bytes] = field(default_factory=list)
    final: JsonObject | None = None


class ResponsesWriter:
    """Writes one client response."""

    def __init__(self, request: ApiRequest, prompt: str = "") -> None:
        self._request = request
        self._prompt = prompt
        self._response: JsonObject = {}
        """The response as its opening event described it."""
        self._sequence = -1
        self._counting = False
        """An event of the proxy's own has a number, so that those behind it need others than upstream's."""
        self._spliced = False
        self._items: dict[int, _Item] = {}
        self._usage_changes: Mapping[str, int] = {}

    def start(self, event: ResponseStarted) -> bytes:
        """The first attempt's opening event, as it came."""
        response = _open_event(event.raw)[1].get("response")
        if not isinstance(response, dict):
            return self._forward(event.raw)
        self._response = self._as_asked(response)
        return self._forward(event.raw, None if self._response is response else {"response": self._response})

    def reindex(self, event: BlockStarted | BlockDelta | BlockEnded, index: int) -> bytes:
        """The event at `index`; its original bytes if nothing has to change."""
        changes = {"output_index": index} if event.index != index else None
        data = self._forward(event.raw, changes)
        match event:
            case BlockStarted():
                self._items[index] = _Item(event.value, [data])
            case BlockDelta():
                self._items[index].sent.append(data)
            case BlockEnded():
                self._items[index].final = event.value
                self._items[index].sent.clear()
        return data

    def delta(self, kind: Literal["text", "thinking"], index: int, text: str) -> bytes:
        """More text for an open message; reasoning takes none."""
        return self._add_text(index, text) if kind == "text" else b""

    def part_of(self, event: BlockDelta, index: int, text: str) -> bytes:
        """The event with only `text` of its own text."""
        if text == event.text:
            return self.reindex(event, index)
        payload = _open_event(event.raw)[1]
        whole = payload.get("delta")
        if not isinstance(whole, str):
            return self._add_text(index, text.removeprefix(SEPARATOR))
        piece = text[len(event.text) - len(whole) :]
        if not piece:
            return b""
        changes: JsonObject = {"output_index": index, "delta": piece}
        if payload.get("logprobs"):
            changes["logprobs"] = []
        data = self._forward(event.raw, changes)
        self._items[index].sent.append(data)
        return data

    def break_off(self) -> bytes:
        """Nothing: events are written as they come. What follows is no longer upstream's own sequence."""
        self._spliced = True
        return b""

    def leave_out(self) -> bytes:
        """Nothing: the events of an item are its own, and sequence numbers are counted on without them."""
        self._spliced = True
        return b""

    def stop_block(self, index: int) -> bytes:
        """The end of a message that was cut; nothing for any other item."""
        self._spliced = True
        item = self._items[index]
        if kind_of(item.value) != "text":
            item.final = _unfinished(item)
            return b""
        parts = _parts(item)
        out = b""
        for at, part in parts.items():
            if not part.done:
                out += self._close_part(index, item, at, part)
        content = [part.complete() for part in parts.values()]
        item.final = {**item.value, "status": "completed", "content": content}
        item.sent.clear()
        return out + self._event("response.output_item.done", {"output_index": index, "item": item.final})

    def marker(self, index: int, signature: str) -> bytes:
        """Nothing: reasoning that was cut is left open, and clients drop it."""
        return b""

    def ending(
        self,
        event: ResponseEnding,
        *,
        stop_reason: str | None = None,
        usage_changes: Mapping[str, int] | None = None,
    ) -> bytes:
        """Nothing yet: usage and reason are in the terminal event."""
        self._usage_changes = usage_changes or {}
        return event.raw

    def end(self, event: ResponseEnded) -> bytes:
        """The terminal event, with everything that the client was given."""
        name, payload = _open_event(event.raw)
        response = payload.get("response")
        if not isinstance(response, dict) or not self._is_changed(response):
            return self._forward(event.raw)
        response = self._as_asked(response)
        usage = response.get("usage")
        changed: JsonObject = {**response, "output": self._output()}
        changed.update({key: self._response[key] for key in ("id", "created_at") if key in self._response})
        if self._usage_changes:
            changed["usage"] = _usage({**(usage if isinstance(usage, dict) else {}), **self._usage_changes})
        return self._event(name, {**payload, "response": changed})

    def other(self, event: Other) -> bytes:
        """The event as it came.

        What a retry says of its own beginning is left out, and what does not fit into this response.
        """
        if self._spliced and b"data" in event.raw:
            payload = _open_event(event.raw)[1]
            if not payload or "output_index" in payload or "item_id" in payload:
                return b""
        if b"response." in event.raw:
            name, payload = _open_event(event.raw)
            response = payload.get("response")
            if name in _LIFECYCLE and isinstance(response, dict):
                if self._is_foreign(response):
                    self._spliced = True
                    return b""
                asked = self._as_asked(response)
                return self._forward(event.raw, None if asked is response else {"response": asked})
        return self._forward(event.raw)

    def finish(self, stop_reason: str, usage: Mapping[str, int]) -> bytes:
        """`response.completed`. Without input figures no usage is given: clients keep what they know."""
        told = _usage(dict(usage)) if "input_tokens" in usage else None
        response = {
            **self._response,
            "status": "completed",
            "output": self._output(),
            "usage": told,
        }
        return self._event("response.completed", {"response": response})

    def keepalive(self, open_block: tuple[int, BlockKind] | None, active: bool) -> bytes:
        """A comment; for `active`, events that clients which ignore comments count as activity."""
        if not active:
            return b": keep-alive\n\n"
        out = self._event("response.in_progress", {"response": self._response})
        if open_block is not None and open_block[1] == "text":
            out += self._add_text(open_block[0], "")
        return out

    def error(self, error: JsonObject) -> bytes:
        """`response.failed`; clients ignore a bare `error` event."""
        told = {"code": _code(error), "message": text_of(error, "message")}
        response = {**self._response, "status": "failed", "output": self._output(), "error": told}
        return self._event("response.failed", {"response": response})

    # Sequence numbers.

    def _forward(self, raw: bytes, changes: JsonObject | None = None) -> bytes:
        """Upstream's event, with changes and the next sequence number where that is not its own."""
        found = _SEQUENCE.search(raw)
        number = int(found[1]) if found else None
        if changes is None:
            if number is None:
                return raw
            if not self._counting and not self._spliced:
                self._sequence = max(self._sequence, number)
                return raw
            if number == self._sequence + 1:
                self._sequence = number
                return raw
        if not raw:
            return raw
        name, payload = _open_event(raw)
        payload = {**payload, **(changes or {})}
        if number is None:
            return sse.encode(name, encode_json(payload))
        payload.pop("sequence_number", None)
        return self._event(name, payload)

    def _event(self, name: str, payload: JsonObject) -> bytes:
        self._sequence += 1
        self._counting = True
        return sse.encode(name, encode_json({**payload, "type": name, "sequence_number": self._sequence}))

    # What the client has.

    def _add_text(self, index: int, text: str) -> bytes:
        """A text delta for the last part of a message, which is opened if need be."""
        item = self._items[index]
        out: list[bytes] = []
        if not any(item.sent):
            added = {**without_texts(item.value), "status": "in_progress"}
            out.append(self._event("response.output_item.added", {"output_index": index, "item": added}))
        parts = _parts(item)
        at = next((at for at, part in parts.items() if not part.text_done), None)
        if at is None:
            if not text:
                return b""
            at = max(parts, default=-1) + 1
            where = {"item_id": item.value.get("id"), "output_index": index, "content_index": at}
            part = {"type": "output_text", "text": "", "annotations": []}
            out.append(self._event("response.content_part.added", {**where, "part": part}))
        kind = "refusal" if at in parts and parts[at].is_refusal else "output_text"
        where = {"item_id": item.value.get("id"), "output_index": index, "content_index": at}
        payload: JsonObject = {**where, "delta": text}
        if kind == "output_text":
            payload["logprobs"] = []
        out.append(self._event(f"response.{kind}.delta", payload))
        item.sent.extend(out)
        return b"".join(out)

    def _close_part(self, index: int, item: _Item, at: int, part: _Part) -> bytes:
        where: JsonObject = {"item_id": item.value.get("id"), "output_index": index, "content_index": at}
        value, out = part.complete(), b""
        if not part.text_done and part.is_refusal:
            out = self._event("response.refusal.done", {**where, "refusal": part_text(value)})
        elif not part.text_done:
            out = self._event(
                "response.output_text.done", {**where, "text": part_text(value), "logprobs": []}
            )
        return out + self._event("response.content_part.done", {**where, "part": value})

    def _output(self) -> list[JsonObject]:
        return [item.value if item.final is None else item.final for _, item in sorted(self._items.items())]

    def _is_changed(self, response: JsonObject) -> bool:
        changed = self._spliced or bool(self._usage_changes) or self._is_foreign(response)
        return changed or self._as_asked(response) is not response

    def _as_asked(self, response: JsonObject) -> JsonObject:
        return as_asked(response, self._request, self._prompt)

    def _is_foreign(self, response: JsonObject) -> bool:
        return response.get("id") != self._response.get("id")


def _parts(item: _Item) -> dict[int, _Part]:
    """The content parts of a message, read from the events that the client was sent."""
    content = item.value.get("content")
    parts: dict[int, _Part] = {}
    for at, value in enumerate(content if isinstance(content, list) else ()):
        if isinstance(value, dict):
            parts[at] = _Part(value, [part_text(value)])
    for raw in item.sent:
        name, payload = _open_event(raw)
        index: JsonValue = payload.get("content_index")
        if type(index) is not int:
            continue
        if name == "response.content_part.added" or index not in parts:
            value = payload.get("part")
            kind = "refusal" if name.startswith("response.refusal") else "output_text"
            value = value if isinstance(value, dict) else {"type": kind, "annotations": []}
            parts[index] = _Part(value, [part_text(value)])
        _apply(parts[index], name, payload)
    return parts


def _apply(part: _Part, name: str, payload: JsonObject) -> None:
    if name in ("response.output_text.delta", "response.refusal.delta"):
        part.pieces.append(text_of(payload, "delta"))
    elif name in ("response.output_text.done", "response.refusal.done"):
        part.pieces[:] = [part_text({"text": payload.get("text"), "refusal": payload.get("refusal")})]
        part.text_done = True
    elif name == "response.output_text.annotation.added":
        part.value = {
            **part.value,
            "annotations": [*part.value.get("annotations", ()), payload.get("annotation")],
        }
    elif name == "response.content_part.done":
        value: JsonValue = payload.get("part")
        if isinstance(value, dict):
            part.value, part.pieces[:] = value, [part_text(value)]
        part.text_done = part.done = True


def _unfinished(item: _Item) -> JsonObject:
    """An item that was cut, for the final response, with what came of its summary."""
    summary = "".join(
        text_of(payload, "delta")
        for name, payload in map(_open_event, item.sent)
        if name == "response.reasoning_summary_text.delta"
    )
    item.sent.clear()
    value = assembled(item.value, [(("summary", 0), summary)] if summary else [])
    return {**value, "status": "incomplete"} if item_type(value) == "reasoning" else value


def _usage(usage: JsonObject) -> JsonObject:
    """A usage object with all fields that SDKs read without asking, and a total that is the sum."""
    figures = (usage.get("input_tokens"), usage.get("output_tokens"))
    return {
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
        **usage,
        "total_tokens": sum(figure for figure in figures if isinstance(figure, int)),
    }


def _code(error: JsonObject) -> str:
    """The code of a failed response. `invalid_prompt` is one that clients do not send again."""
    code = error.get("code")
    if isinstance(code, str) and code:
        return code
    match error.get("type"):
        case "invalid_request_error":
            return "invalid_prompt"
        case "rate_limit_error":
            return "rate_limit_exceeded"
        case _:
            return "server_error"


def _open_event(raw: bytes) -> tuple[str, JsonObject]:
    """The name and JSON of an event; an empty object for what is none."""
    event = sse.parse(raw.removeprefix(b"\xef\xbb\xbf"))
    payload = (decode_object(event.data) if event.has_data else None) or {}
    kind = payload.get("type")
    return kind if isinstance(kind, str) else event.event, payload
