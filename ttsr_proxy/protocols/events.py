"""What happens in a response, in words that hold for every wire protocol.

A protocol module reads upstream's bytes into these events. Each keeps the original bytes (`raw`) of the
server-sent event it came from, so that what needs no change is forwarded as it came. The concatenation of
all `raw` of an attempt is exactly what upstream sent.

Events are structs of msgspec, which are made in a third of the time that a frozen dataclass takes.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct, field

from ttsr_proxy.jsontext import JsonObject

BlockKind: TypeAlias = Literal["text", "thinking", "tool", "opaque"]
"""`opaque` blocks (server tools and their results, redacted thinking, unknown types) pass untouched."""

Channel: TypeAlias = Literal["text", "thinking", "arguments", "other"]
"""Which text a delta adds to; `other` (signatures, citations) is not matched."""


class Usage(Struct, frozen=True):
    """Token counts as upstream reported them; `None` where it said nothing."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    fields: JsonObject = field(default_factory=dict)
    """The whole usage object as it came."""


class ResponseStarted(Struct, frozen=True):
    raw: bytes
    response_id: str
    model: str
    usage: Usage


class BlockStarted(Struct, frozen=True):
    raw: bytes
    index: int
    kind: BlockKind
    tool: str | None
    """The tool's name as the model calls it; None unless `kind` is `tool`."""
    call_id: str | None
    value: JsonObject
    """The block as its opening event carries it."""
    freeform: bool = False
    """The tool's input is plain text and no JSON (a custom tool of the OpenAI APIs)."""
    choice: int = 0
    """Which of several answers the block belongs to, where a request can ask for more than one."""


class BlockDelta(Struct, frozen=True):
    raw: bytes
    index: int
    channel: Channel
    text: str
    """The piece of text, thinking or tool input (JSON, if not freeform); empty for `other`."""


class BlockEnded(Struct, frozen=True):
    raw: bytes
    index: int
    value: JsonObject
    """The complete block as history carries it: whole text, parsed tool input, signature."""


class ResponseEnding(Struct, frozen=True):
    """The stop reason and final usage; more events may follow (Anthropic's `message_delta`)."""

    raw: bytes
    stop_reason: str | None
    usage: Usage


class ResponseEnded(Struct, frozen=True):
    """The terminal event: after it the response is complete."""

    raw: bytes


class StreamFailed(Struct, frozen=True):
    """An error that upstream reported inside the stream."""

    raw: bytes
    error: JsonObject


class Other(Struct, frozen=True):
    """Pings, comments, unknown events and bytes that are no event: forwarded, never interpreted."""

    raw: bytes


ProtocolEvent: TypeAlias = (
    ResponseStarted
    | BlockStarted
    | BlockDelta
    | BlockEnded
    | ResponseEnding
    | ResponseEnded
    | StreamFailed
    | Other
)
