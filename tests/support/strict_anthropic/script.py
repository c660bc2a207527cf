"""The language in which a test says what the model does.

A reply is `turn(step, ...)`, `http_error(status)`, or a function of the request's body that returns one:

    upstream.script(
        turn(thinking("hm"), text("Hello "), tool("Write", {"file_path": "a.py", "content": "x"})),
        turn(text("Done, ", stall(gate), "really.")),
        http_error(529, headers={"retry-after": "3"}),
        lambda body: turn(text(f"{len(body['messages'])} messages")),
    )
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

_ids = itertools.count(1)


def fresh_id(prefix: str) -> str:
    """An id that no other call returned, shaped like the API's."""
    return f"{prefix}01{next(_ids):06d}strict"


@dataclass(frozen=True, slots=True)
class Stall:
    """Send nothing until the event is set; `reached` is set when the stream has come here."""

    until: asyncio.Event
    reached: asyncio.Event


@dataclass(frozen=True, slots=True)
class Drop:
    """Cut the connection."""


@dataclass(frozen=True, slots=True)
class StreamError:
    """Report an error inside the stream and end it."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes as they are."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Ping:
    """A ping event."""


Flow: TypeAlias = Stall | Drop | StreamError | Raw | Ping
Pieces: TypeAlias = tuple[str | Flow, ...]


@dataclass(frozen=True, slots=True)
class TextBlock:
    pieces: Pieces


@dataclass(frozen=True, slots=True)
class ThinkingBlock:
    pieces: Pieces
    omitted: bool
    """Only the signature arrives, as newer models do by default."""


@dataclass(frozen=True, slots=True)
class RedactedBlock:
    pass


@dataclass(frozen=True, slots=True)
class ToolBlock:
    name: str
    input: Mapping[str, Any]
    id: str
    midway: tuple[Flow, ...]
    """What happens when half of the arguments have been sent."""


@dataclass(frozen=True, slots=True)
class ServerToolBlock:
    """A tool that the API runs itself: a call and its result."""

    name: str
    input: Mapping[str, Any]
    result: Any
    id: str


Step: TypeAlias = TextBlock | ThinkingBlock | RedactedBlock | ToolBlock | ServerToolBlock | Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One response of the model."""

    steps: tuple[Step, ...]
    stop_reason: str | None = None
    """None: what the blocks imply."""
    chunk: int = 7
    """Characters per delta."""
    eol: str = "\n"
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields added to every event, as a newer API version would."""
    headers: Mapping[str, str] = field(default_factory=dict)
    input_tokens: int | None = None
    """None: a figure that follows from the request."""
    before: Stall | None = None
    """Waited for before even the response's headers are sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpError:
    """An error status instead of a response."""

    status: int
    kind: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


Reply: TypeAlias = Turn | HttpError
ReplyOf: TypeAlias = Callable[[dict[str, Any]], Reply]

_ERROR_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


def turn(
    *steps: Step,
    stop_reason: str | None = None,
    chunk: int = 7,
    eol: str = "\n",
    extra: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    input_tokens: int | None = None,
    before: Stall | None = None,
) -> Turn:
    """A response made of blocks and what happens between them."""
    return Turn(
        steps=steps,
        stop_reason=stop_reason,
        chunk=chunk,
        eol=eol,
        extra=extra or {},
        headers=headers or {},
        input_tokens=input_tokens,
        before=before,
    )


def http_error(
    status: int, *, message: str = "scripted", headers: Mapping[str, str] | None = None
) -> HttpError:
    """An HTTP error as the API words it."""
    return HttpError(status=status, kind=_ERROR_KINDS[status], message=message, headers=headers or {})


def text(*pieces: str | Flow) -> TextBlock:
    """A text block; flow steps among the pieces happen inside the open block."""
    return TextBlock(pieces)


def thinking(*pieces: str | Flow, omitted: bool = False) -> ThinkingBlock:
    """A signed thinking block."""
    return ThinkingBlock(pieces, omitted)


def redacted() -> RedactedBlock:
    """A redacted thinking block."""
    return RedactedBlock()


def tool(
    name: str, input: Mapping[str, Any], *, id: str | None = None, midway: tuple[Flow, ...] = ()
) -> ToolBlock:
    """A tool call; ids are unique unless given."""
    return ToolBlock(name, input, id or fresh_id("toolu_"), midway)


def server_tool(name: str, input: Mapping[str, Any], result: Any) -> ServerToolBlock:
    """A server tool call with its result."""
    return ServerToolBlock(name, input, result, fresh_id("srvtoolu_"))


def stall(until: asyncio.Event | None = None, reached: asyncio.Event | None = None) -> Stall:
    """Send nothing more until the event is set (without one: until the connection is gone)."""
    return Stall(until or asyncio.Event(), reached or asyncio.Event())


def drop() -> Drop:
    """Cut the connection here."""
    return Drop()


def stream_error(kind: str = "overloaded_error", message: str = "Overloaded") -> StreamError:
    """An `error` event here."""
    return StreamError(kind, message)


def raw(data: bytes) -> Raw:
    """These bytes here."""
    return Raw(data)


def ping() -> Ping:
    """A ping here."""
    return Ping()
