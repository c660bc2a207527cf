"""Upstream's answer, streamed or complete, as protocol events. One output item is one block.

An event that only repeats what its deltas said (`response.output_text.done` and the like) is a delta without
text. What it says beyond them is text all the same: some servers send no deltas, and clients take the last
word. So text may come with such an event, or with none of its own (`raw` empty) when an item is completed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from ttsr_proxy.growing import GrowingText
from ttsr_proxy.jsontext import JsonObject, JsonValue, decode_object, encode
from ttsr_proxy.protocols.events import (
    BlockDelta,
    BlockEnded,
    BlockKind,
    BlockStarted,
    Channel,
    Other,
    ProtocolEvent,
    ResponseEnded,
    ResponseEnding,
    ResponseStarted,
    StreamFailed,
    Usage,
)
from ttsr_proxy.protocols.openai_responses.instructions import as_asked
from ttsr_proxy.protocols.openai_responses.items import (
    SEPARATOR,
    Slot,
    assembled,
    block_started,
    has_slot,
    kind_of,
    part_text,
    text_of,
    texts,
    without_texts,
)
from ttsr_proxy.protocols.request import ApiRequest
from ttsr_proxy.protocols.sse import SseDecoder, SseEvent

_CHANNELS: dict[BlockKind, Channel] = {"text": "text", "thinking": "thinking", "tool": "arguments"}

_OPENINGS = ("response.created", "response.queued", "response.in_progress")
_ENDINGS = ("response.completed", "response.incomplete")


@dataclass(frozen=True, slots=True)
class _TextEvent:
    """An event that carries text of an item."""

    field: str
    """The item's field that the text belongs to."""
    source: str
    """Where in the event it stands; a `part` is an object."""
    index: str | None
    """The event's field with the position of the part; None where there are no parts."""
    whole: bool
    """It repeats the text from its beginning."""
    item: str
    """The type of item that it belongs to, should the item never have been announced."""


_TEXT_EVENTS = {
    "response.output_text.delta": _TextEvent("content", "delta", "content_index", False, "message"),
    "response.output_text.done": _TextEvent("content", "text", "content_index", True, "message"),
    "response.refusal.delta": _TextEvent("content", "delta", "content_index", False, "message"),
    "response.refusal.done": _TextEvent("content", "refusal", "content_index", True, "message"),
    "response.content_part.added": _TextEvent("content", "part", "content_index", True, "message"),
    "response.content_part.done": _TextEvent("content", "part", "content_index", True, "message"),
    "response.reasoning_text.delta": _TextEvent("content", "delta", "content_index", False, "reasoning"),
    "response.reasoning_text.done": _TextEvent("content", "text", "content_index", True, "reasoning"),
    "response.reasoning_summary_part.added": _TextEvent(
        "summary", "part", "summary_index", True, "reasoning"
    ),
    "response.reasoning_summary_part.done": _TextEvent("summary", "part", "summary_index", True, "reasoning"),
    "response.reasoning_summary_text.delta": _TextEvent(
        "summary", "delta", "summary_index", False, "reasoning"
    ),
    "response.reasoning_summary_text.done": _TextEvent("summary", "text", "summary_index", True, "reasoning"),
    "response.function_call_arguments.delta": _TextEvent("arguments", "delta", None, False, "function_call"),
    "response.function_call_arguments.done": _TextEvent(
        "arguments", "arguments", None, True, "function_call"
    ),
    "response.custom_tool_call_input.delta": _TextEvent("input", "delta", None, False, "custom_tool_call"),
    "response.custom_tool_call_input.done": _TextEvent("input", "input", None, True, "custom_tool_call"),
}


@dataclass(slots=True)
class _OpenItem:
    index: int
    value: JsonObject
    pieces: dict[Slot, GrowingText] = field(default_factory=dict)

    @property
    def kind(self) -> BlockKind:
        return kind_of(self.value)

    def grow(self, slot: Slot, piece: str) -> str:
        """More of one text; what that adds to the block."""
        if not piece:
            return ""
        separator = SEPARATOR if self.pieces and slot not in self.pieces and self.kind != "tool" else ""
        if slot not in self.pieces:
            self.pieces[slot] = GrowingText()
        self.pieces[slot].add(piece)
        return separator + piece

    def complete(self, slot: Slot, whole: str) -> str:
        """The whole of one text; what that adds to the block, which is nothing if its deltas said it all."""
        had = self.pieces[slot].text if slot in self.pieces else ""
        if had == whole:
            return ""
        if whole.startswith(had):
            return self.grow(slot, whole[len(had) :])
        self.pieces[slot] = GrowingText()
        return self.grow(slot, whole)

    def assembled(self) -> JsonObject:
        return assembled(self.value, [(slot, pieces.text) for slot, pieces in sorted(self.pieces.items())])


class ResponsesReader:
    """Reads one attempt's event stream. Never raises on content."""

    def __init__(self) -> None:
        self._decoder = SseDecoder()
        self._open: dict[int, _OpenItem] = {}
        """Open items by upstream's own output index."""
        self._next_index = 0
        self._begun = 0
        self._started = False

    def feed(self, data: bytes) -> list[ProtocolEvent]:
        """The events that `data` completes."""
        return [event for source in self._decoder.feed(data) for event in self._read(source)]

    def finish(self) -> list[ProtocolEvent]:
        """Upstream closed. What it cut off comes as an `Other`, after which nothing may be written."""
        return [event for source in self._decoder.finish() for event in self._read(source)]

    def _read(self, source: SseEvent) -> list[ProtocolEvent]:
        payload = decode_object(source.data) if source.has_data else None
        if payload is None:
            return [Other(source.raw)]
        kind = payload.get("type")
        name = kind if isinstance(kind, str) else source.event
        return self._interpret(name, source.raw, payload) or [Other(source.raw)]

    def _interpret(self, name: str, raw: bytes, payload: JsonObject) -> list[ProtocolEvent]:
        if name in _TEXT_EVENTS:
            return self._text(_TEXT_EVENTS[name], raw, payload)
        if name == "response.output_item.added":
            return self._item_added(raw, payload)
        if name == "response.output_item.done":
            return self._item_done(raw, payload)
        if name in _OPENINGS:
            return self._opened(raw, payload)
        if name in _ENDINGS:
            return self._ended(raw, payload)
        if name == "response.failed":
            error = _object(payload.get("response")).get("error")
            return [
                StreamFailed(raw, error if isinstance(error, dict) else {"message": "the response failed"})
            ]
        if name == "error":
            error = payload.get("error")
            return [StreamFailed(raw, error if isinstance(error, dict) else payload)]
        item = self._item_of(payload)
        return [] if item is None else [BlockDelta(raw, item.index, "other", "")]

    def _opened(self, raw: bytes, payload: JsonObject) -> list[ProtocolEvent]:
        response = payload.get("response")
        if self._started or not isinstance(response, dict):
            return []
        self._started = True
        return [_response_started(raw, response)]

    def _item_added(self, raw: bytes, payload: JsonObject) -> list[ProtocolEvent]:
        at, value = payload.get("output_index"), payload.get("item")
        if not isinstance(value, dict):
            return []
        at = at if type(at) is int else self._next_index
        if at in self._open:
            return []
        return [self._begin(raw, at, value)]

    def _begin(self, raw: bytes, at: int, value: JsonObject) -> BlockStarted:
        # An index that upstream uses again after its item ended is a new block all the same.
        item = _OpenItem(max(at, self._next_index), value)
        self._next_index = item.index + 1
        self._begun += 1
        self._open[at] = item
        for slot, text in texts(value, complete=False):
            item.grow(slot, text)
        return block_started(raw, item.index, value)

    def _text(self, kind: _TextEvent, raw: bytes, payload: JsonObject) -> list[ProtocolEvent]:
        source = payload.get(kind.source)
        text = part_text(source) if kind.source == "part" else source if isinstance(source, str) else ""
        events: list[ProtocolEvent] = []
        item = self._item_of(payload)
        if item is None:
            at = payload.get("output_index")
            if not text or type(at) is not int:
                return []
            value = without_texts(
                {"id": payload.get("item_id"), "type": kind.item, **_UNANNOUNCED[kind.item]}
            )
            events.append(self._begin(b"", at, value))
            item = self._open[at]
        if not has_slot(item.value, kind.field):
            return [*events, BlockDelta(raw, item.index, "other", "")]
        at = payload.get(kind.index) if kind.index else 0
        slot = (kind.field, at if type(at) is int else 0)
        # A part is announced empty before its deltas: that says nothing about its whole.
        added = item.complete(slot, text) if kind.whole and text else item.grow(slot, text)
        return [*events, BlockDelta(raw, item.index, _CHANNELS[item.kind], added)]

    def _item_done(self, raw: bytes, payload: JsonObject) -> list[ProtocolEvent]:
        value = payload.get("item")
        if not isinstance(value, dict):
            return []
        item = self._item_of(payload)
        events: list[ProtocolEvent] = []
        if item is None:
            at = payload.get("output_index")
            at = at if type(at) is int else self._next_index
            events.append(self._begin(b"", at, without_texts(value)))
            item = self._open[at]
        return [*events, *self._close(item, raw, value)]

    def _close(self, item: _OpenItem, raw: bytes, value: JsonObject) -> Iterator[ProtocolEvent]:
        for slot, text in texts(value, complete=True):
            added = item.complete(slot, text) if text else ""
            # What was announced as nothing that rules look into stays that, whatever it ends as.
            if added and item.kind in _CHANNELS:
                yield BlockDelta(b"", item.index, _CHANNELS[item.kind], added)
        self._open = {at: other for at, other in self._open.items() if other is not item}
        yield BlockEnded(raw, item.index, value)

    def _ended(self, raw: bytes, payload: JsonObject) -> list[ProtocolEvent]:
        response = payload.get("response")
        if not isinstance(response, dict):
            return []
        output = [item for item in _list(response.get("output")) if isinstance(item, dict)]
        events: list[ProtocolEvent] = []
        for item in list(self._open.values()):
            last = next((one for one in output if _same(one, item.value)), None)
            events += self._close(item, b"", last or item.assembled())
        # What was never streamed is read by those clients that go by the final response alone.
        for value in output[self._begun :]:
            at = self._next_index
            events.append(self._begin(b"", at, without_texts(value)))
            events += self._close(self._open[at], b"", value)
        return [*events, _ending(response), ResponseEnded(raw)]

    def _item_of(self, payload: JsonObject) -> _OpenItem | None:
        at = payload.get("output_index")
        if type(at) is int:
            return self._open.get(at)
        name = payload.get("item_id")
        found = (item for item in self._open.values() if item.value.get("id") == name)
        return next(found, None) if isinstance(name, str) else None


_UNANNOUNCED: dict[str, JsonObject] = {
    "message": {"role": "assistant", "status": "in_progress", "content": []},
    "reasoning": {"summary": []},
    "function_call": {"name": "", "call_id": "", "arguments": ""},
    "custom_tool_call": {"name": "", "call_id": "", "input": ""},
}
"""What is known of an item of which only text came."""


def read_message(body: bytes) -> tuple[ProtocolEvent, ...] | None:
    """A complete response as the events of its stream, with empty `raw`; None if `body` is none.

    A response that failed, or that is still to be made (`background`), has no output to look into.
    """
    response = decode_object(body)
    if response is None or not isinstance(response.get("output"), list):
        return None
    if response.get("status", "completed") not in ("completed", "incomplete"):
        return None
    reader = ResponsesReader()
    events = reader._ended(b"", {"response": response})
    return (_response_started(b"", response), *events)


def initial_text(event: BlockStarted) -> str:
    """The text, thinking or tool input that an item carries when it opens; mostly none."""
    item = _OpenItem(event.index, event.value)
    return "".join(item.grow(slot, text) for slot, text in texts(event.value, complete=False))


def _same(one: JsonObject, other: JsonObject) -> bool:
    return one.get("id") is not None and one.get("id") == other.get("id")


def _response_started(raw: bytes, response: JsonObject) -> ResponseStarted:
    usage = _usage(response.get("usage"))
    return ResponseStarted(raw, text_of(response, "id"), text_of(response, "model"), usage)


def _ending(response: JsonObject) -> ResponseEnding:
    reason = _object(response.get("incomplete_details")).get("reason")
    status = response.get("status")
    told = reason if isinstance(reason, str) else status if isinstance(status, str) else None
    return ResponseEnding(b"", told, _usage(response.get("usage")))


def _usage(usage: JsonValue) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    return Usage(_count(usage.get("input_tokens")), _count(usage.get("output_tokens")), usage)


def _count(value: JsonValue) -> int | None:
    return value if type(value) is int else None


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def without_hidden(body: bytes, request: ApiRequest, *, call_ids: Collection[str], prompt: str) -> bytes:
    """A complete answer without these calls, and with the client's own instructions."""
    response = decode_object(body) or {}
    asked = as_asked(response, request, prompt)
    if not call_ids and asked is response:
        return body
    kept = [item for item in _list(response.get("output")) if _object(item).get("call_id") not in call_ids]
    return encode({**asked, "output": kept})
