"""Upstream's answer, streamed or complete, as protocol events.

The stream has no blocks; they are read into it. Prose of one kind is a block until something else follows,
a tool call is one until the next call begins or the answer ends. What says nothing of this (empty deltas,
usage of chunks in between, filter results, comments) is `Other`, so that it passes as it came.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from msgspec import structs

from ttsr_proxy.jsontext import JsonObject, JsonValue, decode_object, encode
from ttsr_proxy.protocols.events import (
    BlockEnded,
    BlockStarted,
    Channel,
    Other,
    ProtocolEvent,
    ResponseEnded,
    StreamFailed,
    Usage,
)
from ttsr_proxy.protocols.openai.errors import error_in
from ttsr_proxy.protocols.openai_chat.calls import CallPiece, OpenCall, call_pieces, in_delta, with_arguments
from ttsr_proxy.protocols.openai_chat.parts import (
    Chunk,
    ChunkBlockStarted,
    ChunkDelta,
    ChunkEnding,
    ChunkStarted,
)
from ttsr_proxy.protocols.openai_chat.prose import FIELDS, Piece, pieces, text_part
from ttsr_proxy.protocols.request import ApiRequest
from ttsr_proxy.protocols.sse import SseDecoder, SseEvent

DONE = "[DONE]"

_KNOWN = FIELDS | {"role", "tool_calls", "function_call"}

_PartEvent: TypeAlias = ChunkStarted | ChunkBlockStarted | ChunkDelta | ChunkEnding


@dataclass(slots=True, eq=False)
class _OpenProse:
    block: int
    kind: str
    refusal: bool
    listed: bool
    """The prose came as parts of a list."""
    pieces: list[Piece] = field(default_factory=list)

    def takes(self, piece: Piece) -> bool:
        return piece.kind == self.kind and piece.refusal == self.refusal

    @property
    def value(self) -> JsonObject:
        """The block as history carries it."""
        text = "".join(piece.text for piece in self.pieces)
        if self.kind == "thinking":
            if self.listed:
                return {"type": "thinking", "thinking": [text_part(text)]}
            return {"type": "reasoning", **_joined(self.pieces)}
        return {"type": "refusal", "refusal": text} if self.refusal else text_part(text)


def _joined(said: list[Piece]) -> JsonObject:
    fields: dict[str, list[JsonValue]] = {}
    for piece in said:
        for name, value in piece.fields.items():
            fields.setdefault(name, []).append(value)
    joined: JsonObject = {}
    for name, values in fields.items():
        if all(isinstance(value, str) for value in values):
            joined[name] = "".join(values)
        elif all(isinstance(value, list) for value in values):
            joined[name] = [entry for value in values for entry in value]
    return joined


@dataclass(slots=True)
class _Choice:
    """One of the answers in the stream."""

    number: int
    prose: _OpenProse | None = None
    calls: list[OpenCall] = field(default_factory=list)
    stopped: bool = False


class ChatReader:
    """Reads one attempt's event stream. Never raises on content."""

    def __init__(self) -> None:
        self._decoder = SseDecoder()
        self._started = False
        self._stopped = False
        """A choice said why it ended."""
        self._done = False
        self._blocks = 0
        self._choices: dict[int, _Choice] = {}

    def feed(self, data: bytes) -> list[ProtocolEvent]:
        """The events that `data` completes."""
        return [read for event in self._decoder.feed(data) for read in self._read(event)]

    def finish(self) -> list[ProtocolEvent]:
        """Upstream closed. Some servers say no `[DONE]`: an answer with a reason to stop is complete."""
        events = [read for event in self._decoder.finish() for read in self._read(event)]
        if self._stopped and not self._done:
            self._done = True
            events.append(ResponseEnded(b""))
        return events

    def _read(self, event: SseEvent) -> list[ProtocolEvent]:
        if not event.has_data:
            return [Other(event.raw)]
        if event.data.strip() == DONE and not self._done:
            self._done = True
            return [ResponseEnded(event.raw)]
        payload = decode_object(event.data)
        if payload is None:
            failed = event.event == "error"
            return [StreamFailed(event.raw, {"message": event.data}) if failed else Other(event.raw)]
        error = error_in(payload)
        if error is not None:
            return [StreamFailed(event.raw, error)]
        return self._chunk(Chunk(event.raw, payload))

    def _chunk(self, chunk: Chunk) -> list[ProtocolEvent]:
        events: list[ProtocolEvent] = []
        choices = _objects(chunk.payload.get("choices"))
        if choices and not self._started:
            self._started = True
            events.append(self._opening(chunk, choices[0]))
        for choice in choices:
            events += self._choice(chunk, choice)
        usage = _usage(chunk.payload)
        if not chunk.parts and usage.fields and self._stopped:
            events.append(ChunkEnding(b"", None, usage, part=chunk.add({}, {})))
        for at in range(len(events) - 1, -1, -1):
            event = events[at]
            if isinstance(event, _PartEvent) and event.part is not None:
                events[at] = structs.replace(event, raw=chunk.raw)
                return events
        return [*events, Other(chunk.raw)]

    def _opening(self, chunk: Chunk, choice: JsonObject) -> ChunkStarted:
        payload, delta = chunk.payload, _delta(choice)
        part = chunk.add(choice, {"role": delta["role"]}) if "role" in delta else None
        response_id, model = _text(payload.get("id")), _text(payload.get("model"))
        return ChunkStarted(b"", response_id, model, _usage(payload), chunk=chunk, part=part)

    def _choice(self, chunk: Chunk, choice: JsonObject) -> Iterator[ProtocolEvent]:
        index = choice.get("index")
        number = index if type(index) is int else 0
        state = self._choices.setdefault(number, _Choice(number))
        delta = _delta(choice)
        # Fields that are not known go with the first part.
        extras = {name: value for name, value in delta.items() if name not in _KNOWN}
        for piece in pieces(delta):
            yield from self._prose(chunk, choice, state, piece, extras)
            extras = {}
        for call in call_pieces(delta):
            yield from self._call(chunk, choice, state, call, extras)
            extras = {}
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            yield from self._end_blocks(state)
            self._stopped = state.stopped = True
            if not all(other.stopped for other in self._choices.values()):
                # The answer goes on with the other choices.
                return
            part = chunk.add(choice, extras, finish=reason)
            yield ChunkEnding(b"", reason, _usage(chunk.payload), part=part)

    def _prose(
        self, chunk: Chunk, choice: JsonObject, state: _Choice, piece: Piece, extras: JsonObject
    ) -> Iterator[ProtocolEvent]:
        prose = state.prose
        if prose is None or not prose.takes(piece):
            yield from self._end_prose(state)
            listed = isinstance(piece.fields.get("content"), list)
            prose = state.prose = _OpenProse(self._next_block(), piece.kind, piece.refusal, listed)
            empty = replace(prose, pieces=[]).value
            yield ChunkBlockStarted(b"", prose.block, piece.kind, None, None, empty, choice=state.number)
        prose.pieces.append(piece)
        part = chunk.add(choice, {**extras, **piece.fields})
        channel: Channel = piece.kind if piece.text else "other"
        yield ChunkDelta(b"", prose.block, channel, piece.text, part=part)

    def _call(
        self, chunk: Chunk, choice: JsonObject, state: _Choice, piece: CallPiece, extras: JsonObject
    ) -> Iterator[ProtocolEvent]:
        call = next(
            (one for one in reversed(state.calls) if _same_index(one, piece) and one.takes(piece)), None
        )
        if call is None:
            yield from self._end_prose(state)
            for before in [one for one in state.calls if one.complete]:
                state.calls.remove(before)
                yield BlockEnded(b"", before.block, before.value)
            call = OpenCall(self._next_block(), piece)
            state.calls.append(call)
            part = chunk.add(choice, {**extras, **in_delta(piece.opening())})
            yield ChunkBlockStarted(
                b"",
                call.block,
                "tool",
                piece.name,
                piece.id or None,
                call.value,
                piece.form == "custom",
                choice=state.number,
                part=part,
            )
            if not piece.arguments:
                return
            fields = in_delta(_continuation(piece))
        else:
            fields = {**extras, **in_delta(piece.entry)}
        call.pieces.append(piece.arguments)
        yield ChunkDelta(b"", call.block, "arguments", piece.arguments, part=chunk.add(choice, fields))

    def _end_prose(self, state: _Choice) -> Iterator[ProtocolEvent]:
        if state.prose is not None:
            yield BlockEnded(b"", state.prose.block, state.prose.value)
            state.prose = None

    def _end_blocks(self, state: _Choice) -> Iterator[ProtocolEvent]:
        ended = [(call.block, call.value) for call in state.calls]
        if state.prose is not None:
            ended.append((state.prose.block, state.prose.value))
        state.calls, state.prose = [], None
        for block, value in sorted(ended, key=lambda one: one[0]):
            yield BlockEnded(b"", block, value)

    def _next_block(self) -> int:
        self._blocks += 1
        return self._blocks - 1


def _same_index(call: OpenCall, piece: CallPiece) -> bool:
    return piece.index is None or call.first.index is None or piece.index == call.first.index


def _continuation(piece: CallPiece) -> JsonObject:
    """A piece that adds the same arguments to a call that is already open."""
    entry = with_arguments({piece.form: {}}, piece.arguments)
    return entry if piece.index is None else {"index": piece.index, **entry}


def read_message(body: bytes) -> tuple[ProtocolEvent, ...] | None:
    """A complete answer as the events of its stream, with empty `raw`; None if `body` is no answer.

    It is read as a stream of one chunk, whose deltas are the whole messages.
    """
    document = decode_object(body)
    choices = [_as_delta(at, one) for at, one in enumerate(_objects((document or {}).get("choices")))]
    said = [choice for choice in choices if choice is not None]
    if document is None or not said:
        return None
    events = ChatReader()._chunk(Chunk(b"", {**document, "choices": said}))
    return (*events, ResponseEnded(b""))


def _as_delta(at: int, choice: JsonObject) -> JsonObject | None:
    message = choice.get("message")
    if not isinstance(message, dict):
        return None
    calls = _objects(message.get("tool_calls"))
    numbered = [{**call, "index": number} for number, call in enumerate(calls)]
    reason = _text(choice.get("finish_reason")) or "stop"
    return {"index": at, **choice, "delta": {**message, "tool_calls": numbered}, "finish_reason": reason}


def initial_text(event: BlockStarted) -> str:
    """Nothing: what a chunk opens a block with comes as the block's first delta."""
    return ""


def _delta(choice: JsonObject) -> JsonObject:
    delta = choice.get("delta")
    return delta if isinstance(delta, dict) else {}


def _objects(value: JsonValue) -> list[JsonObject]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _usage(payload: JsonObject) -> Usage:
    usage = payload.get("usage")
    if not isinstance(usage, dict):
        return Usage()
    return Usage(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")), usage)


def _count(value: JsonValue) -> int | None:
    return value if type(value) is int else None


def without_hidden(body: bytes, request: ApiRequest, *, call_ids: Collection[str], prompt: str) -> bytes:
    """A complete answer without these calls. It does not repeat the prompt."""
    if not call_ids:
        return body
    answer = decode_object(body) or {}
    choices = []
    for choice in _objects(answer.get("choices")):
        message = choice.get("message")
        if isinstance(message, dict) and isinstance(message.get("tool_calls"), list):
            calls = [call for call in _objects(message["tool_calls"]) if call.get("id") not in call_ids]
            choice = {**choice, "message": {**message, "tool_calls": calls}}
        choices.append(choice)
    return encode({**answer, "choices": choices})
