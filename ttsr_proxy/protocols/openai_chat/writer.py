"""The bytes of the one response that the client receives.

As long as the response comes from one attempt, chunks go out as they came; only a chunk of which a part is
withheld is written anew. Once another attempt follows (`break_off`), its chunks take the identity of the
first, lose their role, count their tool calls on, and set their text off from what stands before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
from ttsr_proxy.protocols.openai.errors import error_envelope
from ttsr_proxy.protocols.openai_chat.parts import (
    ChunkBlockStarted,
    ChunkDelta,
    ChunkEnding,
    ChunkStarted,
    Part,
)
from ttsr_proxy.protocols.openai_chat.prose import with_text
from ttsr_proxy.protocols.openai_chat.response import DONE
from ttsr_proxy.protocols.request import ApiRequest

_IDENTITY = ("id", "created", "model", "system_fingerprint")
"""What names the response, and so is the same in all its chunks."""

_PARAGRAPH = "\n\n"
_CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class _Written:
    """How the client's text ends, and the fields that said the last of it."""

    end: str
    fields: JsonObject


class ChatWriter:
    """Writes the answer to `request`."""

    def __init__(self, request: ApiRequest) -> None:
        self._request = request
        self._identity: JsonObject = {}
        self._spoken = False
        """The client has something of the response."""
        self._spliced = False
        self._pending: list[Part] = []
        """Parts that went out, of a chunk whose other parts have not."""
        self._tools: dict[int, int] = {}
        """For each tool call's block, its index in `tool_calls`."""
        self._older_call = False
        """A call went out as `function_call`."""
        self._written: dict[str, _Written] = {}
        """For text and thinking, what the client has of it."""
        self._to_set_off: set[str] = set()

    def start(self, event: ResponseStarted) -> bytes:
        """The first chunk gives the response its identity; it may have more to say than that."""
        if not isinstance(event, ChunkStarted):
            return event.raw
        self._identity = {
            name: event.chunk.payload[name] for name in _IDENTITY if name in event.chunk.payload
        }
        return self._as_it_came(event.part) if event.part is not None else b""

    def break_off(self) -> bytes:
        """What was let out of the last chunk. The next attempt continues the response."""
        if not self._spoken and self._only_role():
            self._pending.clear()
            self._spliced = False
            return b""
        self._spliced = True
        self._to_set_off = set(self._written)
        return self._flush()

    def leave_out(self) -> bytes:
        """What was let out of a chunk that has the block too, in a chunk of its own. Calls are counted on."""
        self._spliced = True
        return self._flush() if self._spoken or not self._only_role() else b""

    def reindex(self, event: BlockStarted | BlockDelta | BlockEnded, index: int) -> bytes:
        """The event's part of its chunk. Only tool calls have an index; the end of a block is not said."""
        if isinstance(event, ChunkBlockStarted):
            return self._open(event, index)
        if isinstance(event, ChunkDelta):
            self._note(event, event.text)
            return self._part(event.part, index)
        return event.raw

    def delta(self, kind: Literal["text", "thinking"], index: int, text: str) -> bytes:
        """A chunk with more text or reasoning."""
        return self._own_chunk({"content" if kind == "text" else "reasoning_content": text})

    def part_of(self, event: BlockDelta, index: int, text: str) -> bytes:
        """A chunk with only `text` of the event's own, and nothing that repeats the rest."""
        if text == event.text or not isinstance(event, ChunkDelta):
            return self.reindex(event, index)
        self._note(event, text)
        return self._flush() + self._rewritten(event.part, with_text(event.part.delta, text), exact=False)

    def stop_block(self, index: int) -> bytes:
        """Nothing: a block ends where another begins."""
        return b""

    def marker(self, index: int, signature: str) -> bytes:
        """Nothing: reasoning is not signed."""
        return b""

    def ending(
        self,
        event: ResponseEnding,
        *,
        stop_reason: str | None = None,
        usage_changes: Mapping[str, int] | None = None,
    ) -> bytes:
        """The chunk with the reason to stop, or with the usage, changed where given."""
        if not isinstance(event, ChunkEnding):
            return event.raw
        usage = event.usage.fields
        changes = {name: count for name, count in (usage_changes or {}).items() if usage.get(name) != count}
        new_reason = stop_reason is not None and event.stop_reason not in (None, stop_reason)
        if not self._spliced and not new_reason and not (usage and changes):
            return self._as_it_came(event.part)
        finish = stop_reason if new_reason else event.part.finish
        told = {**usage, **changes} if usage else None
        return self._flush() + self._rewritten(event.part, event.part.delta, finish=finish, usage=told)

    def end(self, event: ResponseEnded) -> bytes:
        """The `[DONE]`, as it came or did not come."""
        return event.raw

    def other(self, event: Other) -> bytes:
        """As it came; in a later attempt, in the response's identity, and prompt filter results not again."""
        if not self._spliced:
            return event.raw
        said = sse.parse(event.raw)
        payload = decode_object(said.data)
        if payload is None:
            return b"" if said.has_data else event.raw
        if not isinstance(payload.get("choices"), list):
            return event.raw
        if not payload["choices"] and not payload.get("usage"):
            return b""
        return _event(
            {**self._identified(payload), "choices": [_continuing(one) for one in payload["choices"]]}
        )

    def finish(self, stop_reason: str, usage: Mapping[str, int]) -> bytes:
        """A finish chunk, a usage chunk if the client asked for one, and `[DONE]`."""
        if stop_reason == "tool_calls" and self._older_call:
            stop_reason = "function_call"
        out = self._flush() + self._own_chunk({}, finish=stop_reason)
        options = self._request.body.get("stream_options")
        if isinstance(options, dict) and options.get("include_usage") is True:
            chunk = {**self._head(), "choices": [], "usage": self._whole_usage(usage)}
            out += _event(chunk)
        return out + sse.encode("", DONE.encode())

    def keepalive(self, open_block: tuple[int, BlockKind] | None, active: bool) -> bytes:
        """A comment; for `active`, also a chunk that says nothing."""
        comment = b": keep-alive\n\n"
        return comment + self._own_chunk({"content": ""}) if active and self._spoken else comment

    def error(self, error: JsonObject) -> bytes:
        """An event with nothing but the error."""
        return self._flush() + _event(error_envelope(error))

    def _open(self, event: ChunkBlockStarted, index: int) -> bytes:
        if event.part is None:
            return self._set_off(event)
        if "function_call" in event.part.delta:
            self._older_call = True
        else:
            self._tools[index] = len(self._tools)
        return self._part(event.part, index)

    def _set_off(self, event: BlockStarted) -> bytes:
        """Clients join all text, so what follows an interrupt begins a new paragraph."""
        before = self._written.get(event.kind)
        if before is None or event.kind not in self._to_set_off:
            return b""
        self._to_set_off.discard(event.kind)
        newlines = len(before.end) - len(before.end.rstrip("\n"))
        gap = _PARAGRAPH[newlines:]
        return self._own_chunk(with_text(before.fields, gap)) if gap else b""

    def _note(self, event: ChunkDelta, text: str) -> None:
        if event.channel in ("text", "thinking") and text:
            before = self._written.get(event.channel)
            end = ((before.end if before else "") + text)[-len(_PARAGRAPH) :]
            self._written[event.channel] = _Written(end, event.part.delta)

    def _part(self, part: Part, index: int) -> bytes:
        if not self._spliced:
            return self._as_it_came(part)
        delta = part.delta
        calls = delta.get("tool_calls")
        if isinstance(calls, list) and index in self._tools:
            delta = {**delta, "tool_calls": [{**call, "index": self._tools[index]} for call in calls]}
        return self._flush() + self._rewritten(part, delta)

    def _only_role(self) -> bool:
        """Nothing but the beginning of the answer waits for the rest of its chunk."""
        return all("role" in part.delta for part in self._pending)

    def _as_it_came(self, part: Part) -> bytes:
        if not part.last:
            self._pending.append(part)
            return b""
        self._pending.clear()
        self._spoken = True
        return part.chunk.raw

    def _flush(self) -> bytes:
        parts, self._pending = self._pending, []
        return b"".join(self._rewritten(part, part.delta) for part in parts)

    def _rewritten(
        self,
        part: Part,
        delta: JsonObject,
        *,
        exact: bool = True,
        finish: str | None = None,
        usage: JsonObject | None = None,
    ) -> bytes:
        """A chunk of this part alone. `exact`: it says all that the part said."""
        self._spoken = True
        payload = self._identified(part.chunk.payload)
        if not (part.alone and exact) and "usage" in payload:
            payload["usage"] = None
        if usage is not None:
            payload["usage"] = usage
        if not part.choice:
            return _event({**payload, "choices": []})
        choice = part.choice
        if not (part.alone and exact):
            choice = {"index": part.choice.get("index", 0)}
            choice.update(dict.fromkeys(name for name in ("logprobs",) if name in part.choice))
        return _event({**payload, "choices": [{**choice, "delta": delta, "finish_reason": finish}]})

    def _identified(self, payload: JsonObject) -> JsonObject:
        return {**{name: value for name, value in payload.items() if name not in _IDENTITY}, **self._identity}

    def _head(self) -> JsonObject:
        return {**self._identity, "object": "chat.completion.chunk"}

    def _own_chunk(self, delta: JsonObject, *, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _event({**self._head(), "choices": [choice]})

    def _whole_usage(self, usage: Mapping[str, int]) -> JsonObject:
        if "prompt_tokens" in usage:
            return dict(usage)
        # Upstream tells its usage at the end only, and this answer never came there.
        prompt = sum(len(item.text) for item in self._request.items) // _CHARS_PER_TOKEN
        completion = usage.get("completion_tokens", 0)
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


_OF_ANSWER = frozenset(("role", "tool_calls", "function_call"))
"""What belongs to its own answer: its beginning, and pieces of calls that it never opened."""


def _continuing(choice: JsonValue) -> JsonValue:
    if not isinstance(choice, dict) or not isinstance(choice.get("delta"), dict):
        return choice
    return {
        **choice,
        "delta": {name: part for name, part in choice["delta"].items() if name not in _OF_ANSWER},
    }


def _event(payload: JsonObject) -> bytes:
    return sse.encode("", encode_json(payload))
