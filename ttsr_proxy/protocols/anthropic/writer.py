"""The bytes of the one response that the client receives.

Every event made here has an event line and a data line: a client without one of them drops the stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ttsr_proxy.jsontext import JsonObject, decode_object
from ttsr_proxy.jsontext import encode as encode_json
from ttsr_proxy.protocols import sse
from ttsr_proxy.protocols.anthropic.errors import error_envelope
from ttsr_proxy.protocols.anthropic.response import PIECE_FIELDS
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

_OF_MESSAGE = frozenset(("message_start", "content_block_start", "content_block_delta", "content_block_stop"))
"""Events that belong to their own message, by its indexes."""


class AnthropicWriter:
    """A message has no ids or sequence numbers after its opening event."""

    def __init__(self) -> None:
        self._spliced = False

    def start(self, event: ResponseStarted) -> bytes:
        """The first attempt's `message_start`, as it came."""
        return event.raw

    def break_off(self) -> bytes:
        """Nothing: every event is written whole."""
        self._spliced = True
        return b""

    def leave_out(self) -> bytes:
        """Nothing: events name their blocks by indexes alone."""
        return b""

    def reindex(self, event: BlockStarted | BlockDelta | BlockEnded, index: int) -> bytes:
        """The event at `index`; its original bytes if that is its own index."""
        if event.index == index:
            return event.raw
        name, payload = _open_event(event.raw)
        return _event(name, {**payload, "index": index})

    def delta(self, kind: Literal["text", "thinking"], index: int, text: str) -> bytes:
        """A `content_block_delta` with more text or thinking."""
        return _delta(index, {"type": f"{kind}_delta", kind: text})

    def part_of(self, event: BlockDelta, index: int, text: str) -> bytes:
        """The delta with only `text` of its own text; everything else in it stays."""
        if text == event.text:
            return self.reindex(event, index)
        name, payload = _open_event(event.raw)
        delta = {**payload["delta"], PIECE_FIELDS[event.channel]: text}
        return _event(name, {**payload, "index": index, "delta": delta})

    def stop_block(self, index: int) -> bytes:
        """A `content_block_stop`."""
        return _event("content_block_stop", {"type": "content_block_stop", "index": index})

    def marker(self, index: int, signature: str) -> bytes:
        """A `signature_delta` for thinking that was cut off; every client sends it back verbatim."""
        return _delta(index, {"type": "signature_delta", "signature": signature})

    def ending(
        self,
        event: ResponseEnding,
        *,
        stop_reason: str | None = None,
        usage_changes: Mapping[str, int] | None = None,
    ) -> bytes:
        """The attempt's `message_delta`, changed where given; its original bytes if nothing changes."""
        changes = {
            key: count for key, count in (usage_changes or {}).items() if event.usage.fields.get(key) != count
        }
        new_reason = stop_reason is not None and stop_reason != event.stop_reason
        if not changes and not new_reason:
            return event.raw
        name, payload = _open_event(event.raw)
        changed = {**payload, "usage": {**event.usage.fields, **changes}}
        if new_reason:
            explanations = dict.fromkeys(payload["delta"].keys() & {"stop_details"})
            changed["delta"] = {
                **payload["delta"],
                **explanations,
                "stop_reason": stop_reason,
                "stop_sequence": None,
            }
        return _event(name, changed)

    def end(self, event: ResponseEnded) -> bytes:
        """The `message_stop`, as it came."""
        return event.raw

    def other(self, event: Other) -> bytes:
        """The event, as it came; of a later attempt nothing that would not fit into this message."""
        if self._spliced and b"data" in event.raw:
            name, payload = _open_event(event.raw)
            if not payload or name in _OF_MESSAGE:
                return b""
        return event.raw

    def finish(self, stop_reason: str, usage: Mapping[str, int]) -> bytes:
        """`message_delta` and `message_stop`."""
        return _message_delta(stop_reason, usage) + _event("message_stop", {"type": "message_stop"})

    def keepalive(self, open_block: tuple[int, BlockKind] | None, active: bool) -> bytes:
        """A `ping`; for `active`, also an event that clients which ignore pings count as activity."""
        ping = _event("ping", {"type": "ping"})
        if not active:
            return ping
        if open_block is not None:
            index, kind = open_block
            if kind == "text" or kind == "thinking":
                return ping + self.delta(kind, index, "")
        return ping + _message_delta(None, {})

    def error(self, error: JsonObject) -> bytes:
        """An `error` event."""
        return _event("error", error_envelope(error))


def _open_event(raw: bytes) -> tuple[str, JsonObject]:
    """The name and JSON of an event that the reader understood."""
    event = sse.parse(raw.removeprefix(b"\xef\xbb\xbf"))
    payload = decode_object(event.data) or {}
    return event.event or str(payload.get("type", "")), payload


def _event(name: str, payload: JsonObject) -> bytes:
    return sse.encode(name, encode_json(payload))


def _delta(index: int, delta: JsonObject) -> bytes:
    return _event("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta})


def _message_delta(stop_reason: str | None, usage: Mapping[str, int]) -> bytes:
    # SDKs read `output_tokens` without asking whether it is there.
    payload = {
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason, "stop_sequence": None},
        "usage": {"output_tokens": 0, **usage},
    }
    return _event("message_delta", payload)
