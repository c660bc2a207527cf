"""Upstream's answer, streamed or complete, as protocol events.

Every server-sent event gives exactly one protocol event. What does not fit the protocol (no JSON, a delta
for no open block, a second start of an open block) is `Other`, so that it passes as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
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
from ttsr_proxy.protocols.request import ApiRequest
from ttsr_proxy.protocols.sse import SseDecoder, SseEvent

_KINDS: dict[str, BlockKind] = {"text": "text", "thinking": "thinking", "tool_use": "tool"}
"""Block types that rules look into; any other, known or not, is opaque."""


@dataclass(frozen=True, slots=True)
class _DeltaType:
    """A delta that adds to a text: where it carries the piece, and which text of which block grows."""

    source: str
    target: str
    kind: BlockKind
    channel: Channel


_GROWING = {
    "text_delta": _DeltaType("text", "text", "text", "text"),
    "thinking_delta": _DeltaType("thinking", "thinking", "thinking", "thinking"),
    "input_json_delta": _DeltaType("partial_json", "input", "tool", "arguments"),
}
_REPLACING: dict[str, BlockKind] = {"signature_delta": "thinking", "compaction_delta": "opaque"}
"""Deltas that carry whole fields of their block, and the kind of block that they belong to."""

PIECE_FIELDS: dict[Channel, str] = {delta.channel: delta.source for delta in _GROWING.values()}
"""For each matched channel, the field of a delta that carries its text."""


@dataclass(slots=True)
class _OpenBlock:
    index: int
    kind: BlockKind
    value: JsonObject
    pieces: dict[str, GrowingText] = field(default_factory=dict)
    citations: list[JsonValue] = field(default_factory=list)
    replaced: JsonObject = field(default_factory=dict)

    def complete(self) -> JsonObject:
        """The block as history carries it."""
        value = {**self.value, **self.replaced}
        for target, pieces in self.pieces.items():
            text = pieces.text
            if target != "input":
                start = self.value.get(target)
                value[target] = start + text if isinstance(start, str) else text
            elif text.strip():
                value["input"] = decode_object(text) or {}
        if self.citations:
            start = self.value.get("citations")
            value["citations"] = [*start, *self.citations] if isinstance(start, list) else self.citations
        return _sendable(value)


def _sendable(value: JsonObject) -> JsonObject:
    """The API takes only an object as a call's input, so a call that was cut off has an empty one."""
    if value.get("type") == "tool_use" and not isinstance(value.get("input"), dict):
        return {**value, "input": {}}
    return value


class AnthropicReader:
    """Reads one attempt's event stream. Never raises on content."""

    def __init__(self) -> None:
        self._decoder = SseDecoder()
        self._open: dict[int, _OpenBlock] = {}
        self._next_index = 0

    def feed(self, data: bytes) -> list[ProtocolEvent]:
        """The events that `data` completes."""
        return [self._read(event) for event in self._decoder.feed(data)]

    def finish(self) -> list[ProtocolEvent]:
        """Upstream closed. What it cut off comes as an `Other`, after which nothing may be written."""
        return [self._read(event) for event in self._decoder.finish()]

    def _read(self, event: SseEvent) -> ProtocolEvent:
        if not event.has_data:
            return Other(event.raw)
        payload = decode_object(event.data)
        if payload is None:
            if event.event == "error":
                return StreamFailed(event.raw, {"type": "api_error", "message": event.data})
            return Other(event.raw)
        # Some clients go by the JSON alone and never look at the event line, so the JSON decides.
        name = payload.get("type")
        read = _READERS.get(name if isinstance(name, str) else event.event)
        return (read(self, event.raw, payload) if read else None) or Other(event.raw)

    def _message_start(self, raw: bytes, payload: JsonObject) -> ProtocolEvent | None:
        message = payload.get("message")
        return _response_started(raw, message) if isinstance(message, dict) else None

    def _block_start(self, raw: bytes, payload: JsonObject) -> ProtocolEvent | None:
        at, value = payload.get("index"), payload.get("content_block")
        if type(at) is not int or not isinstance(value, dict) or at in self._open:
            return None
        # An index that upstream uses again after its block ended is a new block all the same.
        block = _OpenBlock(max(at, self._next_index), _kind(value), value)
        self._next_index = block.index + 1
        self._open[at] = block
        return _block_started(raw, block.index, block.kind, value)

    def _block_delta(self, raw: bytes, payload: JsonObject) -> ProtocolEvent | None:
        at, delta = payload.get("index"), payload.get("delta")
        block = self._open.get(at) if type(at) is int else None
        if block is None or not isinstance(delta, dict):
            return None
        name = delta.get("type")
        growing = _GROWING.get(name) if isinstance(name, str) else None
        if growing is not None and block.kind in (growing.kind, "opaque"):
            piece = delta.get(growing.source)
            if not isinstance(piece, str):
                return None
            if growing.target not in block.pieces:
                block.pieces[growing.target] = GrowingText()
            block.pieces[growing.target].add(piece)
            if block.kind == growing.kind:
                return BlockDelta(raw, block.index, growing.channel, piece)
        elif name == "citations_delta" and block.kind == "text":
            block.citations.append(delta.get("citation"))
        elif isinstance(name, str) and _REPLACING.get(name) == block.kind:
            block.replaced.update({key: part for key, part in delta.items() if key != "type"})
        return BlockDelta(raw, block.index, "other", "")

    def _block_stop(self, raw: bytes, payload: JsonObject) -> ProtocolEvent | None:
        at = payload.get("index")
        block = self._open.pop(at, None) if type(at) is int else None
        return None if block is None else BlockEnded(raw, block.index, block.complete())

    def _message_delta(self, raw: bytes, payload: JsonObject) -> ProtocolEvent | None:
        delta = payload.get("delta")
        reason = delta.get("stop_reason") if isinstance(delta, dict) else None
        # Without a reason it is a sign of life in the middle of the answer, not its ending.
        if not isinstance(reason, str):
            return None
        return ResponseEnding(raw, reason, _usage(payload.get("usage")))

    def _message_stop(self, raw: bytes, payload: JsonObject) -> ProtocolEvent | None:
        return ResponseEnded(raw)

    def _error(self, raw: bytes, payload: JsonObject) -> ProtocolEvent | None:
        error = payload.get("error")
        return StreamFailed(raw, error if isinstance(error, dict) else payload)


_READERS: dict[str, Callable[[AnthropicReader, bytes, JsonObject], ProtocolEvent | None]] = {
    "message_start": AnthropicReader._message_start,
    "content_block_start": AnthropicReader._block_start,
    "content_block_delta": AnthropicReader._block_delta,
    "content_block_stop": AnthropicReader._block_stop,
    "message_delta": AnthropicReader._message_delta,
    "message_stop": AnthropicReader._message_stop,
    "error": AnthropicReader._error,
}


def read_message(body: bytes) -> tuple[ProtocolEvent, ...] | None:
    """A complete message as the events of its stream, with empty `raw`; None if `body` is no message."""
    message = decode_object(body)
    if message is None or not isinstance(message.get("content"), list):
        return None
    if message.get("type") != "message" and message.get("role") != "assistant":
        return None
    return tuple(_message_events(message))


def initial_text(event: BlockStarted) -> str:
    """The text, thinking or argument JSON that a block's opening event carries; mostly none."""
    if event.kind == "tool":
        value = event.value.get("input")
        return encode(value).decode() if isinstance(value, dict) and value else ""
    text = event.value.get(event.kind)
    return text if isinstance(text, str) else ""


def _message_events(message: JsonObject) -> Iterator[ProtocolEvent]:
    yield _response_started(b"", message)
    blocks = [block for block in message["content"] if isinstance(block, dict)]
    for index, block in enumerate(blocks):
        kind = _kind(block)
        yield from _block_events(index, kind, block)
    reason = message.get("stop_reason")
    yield ResponseEnding(b"", reason if isinstance(reason, str) else None, _usage(message.get("usage")))
    yield ResponseEnded(b"")


def _block_events(index: int, kind: BlockKind, block: JsonObject) -> Iterator[ProtocolEvent]:
    whole = _block_started(b"", index, kind, block)
    content = initial_text(whole)
    empty: JsonObject = {"input": {}} if kind == "tool" else {kind: ""}
    yield _block_started(b"", index, kind, {**block, **empty} if content else block)
    if content:
        yield BlockDelta(b"", index, _CHANNELS[kind], content)
    yield BlockEnded(b"", index, _sendable(block))


_CHANNELS: dict[BlockKind, Channel] = {delta.kind: delta.channel for delta in _GROWING.values()}


def _kind(block: JsonObject) -> BlockKind:
    block_type = block.get("type")
    return _KINDS.get(block_type, "opaque") if isinstance(block_type, str) else "opaque"


def _response_started(raw: bytes, message: JsonObject) -> ResponseStarted:
    return ResponseStarted(raw, _text(message, "id"), _text(message, "model"), _usage(message.get("usage")))


def _block_started(raw: bytes, index: int, kind: BlockKind, value: JsonObject) -> BlockStarted:
    is_tool = kind == "tool"
    return BlockStarted(
        raw,
        index,
        kind,
        tool=_text(value, "name") if is_tool else None,
        call_id=_text(value, "id") or None if is_tool else None,
        value=value,
    )


def _text(value: JsonObject, key: str) -> str:
    text = value.get(key)
    return text if isinstance(text, str) else ""


def _usage(usage: JsonValue) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    return Usage(_count(usage.get("input_tokens")), _count(usage.get("output_tokens")), usage)


def _count(value: JsonValue) -> int | None:
    return value if type(value) is int else None


def without_hidden(body: bytes, request: ApiRequest, *, call_ids: Collection[str], prompt: str) -> bytes:
    """A complete answer without these calls. It does not repeat the prompt."""
    if not call_ids:
        return body
    message = decode_object(body) or {}
    content = message.get("content")
    kept = (
        [block for block in content if block.get("id") not in call_ids] if isinstance(content, list) else []
    )
    return encode({**message, "content": kept})
