"""The event stream format of the WHATWG HTML standard, without I/O and without losing a byte.

https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream

The stream is cut into blocks, each ending with a blank line. A block keeps its exact bytes, comments and
blank lines included, so that the concatenation of all `raw` is the input. Where blocks end depends on the
bytes alone, never on how they were chunked. Each byte is looked at once, however small the chunks are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

DEFAULT_MAX_EVENT = 64 * 1024 * 1024
"""Bytes of one event that are kept for interpretation."""

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\r|\n")
_CR = 0x0D
_LF = 0x0A


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One block of the stream. Blocks without a data line have `data` empty and `has_data` false."""

    event: str
    """The event's name; empty when the block names none (the standard then says `message`)."""
    data: str
    raw: bytes
    has_data: bool = True
    id: str | None = None
    retry: int | None = None
    whole: bool = True
    """False for bytes that are no complete event: a piece of one above the size cap, or what an end cut off."""


class SseDecoder:
    """Bytes in, blocks out.

    An event of more than `max_event` bytes is not kept: its bytes come out as they arrive, as blocks with
    `whole` false, until the event ends.
    """

    def __init__(self, max_event: int = DEFAULT_MAX_EVENT) -> None:
        self._max_event = max_event
        self._pending = bytearray()
        self._scanned = 0
        self._line_start = 0
        self._after_crlf = False
        self._carriage_returns = False
        self._oversized = False
        self._first = True

    def feed(self, data: bytes) -> list[SseEvent]:
        """The blocks that `data` completes."""
        raise NotImplementedError

    def finish(self) -> list[SseEvent]:
        """The stream is over: what was never completed comes out uninterpreted, as the standard says."""
        raise NotImplementedError


def encode(event: str, data: bytes) -> bytes:
    """One event with a name (none if empty) and data, with LF line ends."""
    return (b"event: %b\n" % event.encode() if event else b"") + data_lines(data) + b"\n"


def data_lines(data: bytes) -> bytes:
    """The data field's lines: one for each line of `data`."""
    return b"".join(b"data: %b\n" % line for line in _LINE_END.split(data))
