"""The event stream format of the WHATWG HTML standard, without I/O and without losing a byte.

https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream

The stream is cut into blocks, each ending with a blank line. A block keeps its exact bytes, comments and
blank lines included, so that the concatenation of all `raw` is the input. Where blocks end depends on the
bytes alone, never on how they were chunked, and each byte is looked at once, however small the chunks are.
"""

from __future__ import annotations

import re

from msgspec import Struct

DEFAULT_MAX_EVENT = 64 * 1024 * 1024
"""Bytes of one event that are kept for interpretation."""

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\r|\n")
_LINE_END_START = re.compile(rb"[\r\n]")
_LF = 0x0A
_MAX_RETRY_DIGITS = 18


class SseEvent(Struct, frozen=True):
    """One block of the stream."""

    event: str
    """The event's name; empty when the block names none (the standard then says `message`)."""
    data: str
    """The data lines, joined by LF; invalid UTF-8 is replaced here, never in `raw`."""
    raw: bytes
    has_data: bool = True
    """False for comments and blank lines, which are no event."""
    id: str | None = None
    retry: int | None = None
    """Milliseconds."""
    whole: bool = True
    """False for bytes that are no complete event: part of one above the size cap, or cut off by the end."""


class SseDecoder:
    """Bytes in, blocks out.

    An event of more than `max_event` bytes is not kept: its bytes come out as they arrive, as blocks with
    `whole` false, until the event ends.
    """

    def __init__(self, max_event: int = DEFAULT_MAX_EVENT) -> None:
        self._max_event = max_event
        self._pending = bytearray()
        """The bytes of the block that is not complete yet."""
        self._scanned = 0
        """How many of the pending bytes were looked at."""
        self._line_start = 0
        """Where the pending block's last line begins; 0 in its first line."""
        self._after_crlf = False
        """The last line ended with CRLF, so a CR is taken for the first half of another."""
        self._carriage_returns = False
        """The stream has a CR somewhere; until then, two LF are the only end of a block."""
        self._oversized = False
        """The pending block is above the cap and its first bytes already came out."""
        self._first = True

    def feed(self, data: bytes) -> list[SseEvent]:
        """The blocks that `data` completes."""
        if not self._carriage_returns and b"\r" in data:
            self._carriage_returns = True
            self._scanned = self._line_start = 0
        events: list[SseEvent] = []
        start = 0
        if self._pending:
            # Only the block that was open needs the buffer; the blocks after it are slices of `data`.
            had = len(self._pending)
            self._pending += data
            end = self._block_end(self._pending, 0)
            if end is None:
                self._pass_oversized(events)
                return events
            events.append(self._block(bytes(memoryview(self._pending)[:end])))
            self._pending = bytearray()
            start = end - had
        while start < len(data):
            end = self._block_end(data, start)
            if end is None:
                self._pending += memoryview(data)[start:] if start else data
                self._pass_oversized(events)
                break
            events.append(self._block(data[start:end]))
            start = end
        return events

    def finish(self) -> list[SseEvent]:
        """The stream is over: a block that was never completed comes out uninterpreted, as the standard says.

        Nothing may be written after such bytes, since they would become part of its last line.
        """
        rest = bytes(self._pending)
        if not rest:
            return []
        self._pending = bytearray()
        # A last CR was kept back in case a LF follows; now it is a blank line of its own.
        blank = rest.endswith(b"\r") and self._line_start == len(rest) - 1 and self._line_start > 0
        self._scanned = self._line_start = 0
        return [self._block(rest) if blank else _uninterpreted(rest)]

    def _block_end(self, buffer: bytes | bytearray, start: int) -> int | None:
        """The end of the block at `start`, or None after noting how far its bytes were looked at."""
        end = (
            self._after_two_ends(buffer, start)
            if self._carriage_returns
            else self._after_two_lf(buffer, start)
        )
        if end is not None:
            self._scanned = self._line_start = 0
            self._after_crlf = self._carriage_returns and buffer[end - 2 : end] == b"\r\n"
        return end

    def _after_two_lf(self, buffer: bytes | bytearray, start: int) -> int | None:
        found = buffer.find(b"\n\n", start + max(self._scanned - 1, 0))
        if found >= 0:
            return found + 2
        self._scanned = len(buffer) - start
        return None

    def _after_two_ends(self, buffer: bytes | bytearray, start: int) -> int | None:
        at = start + self._scanned
        line_start = start + self._line_start
        while match := _LINE_END_START.search(buffer, at):
            at = match.start()
            blank = at == line_start and at > start
            length = 1
            if buffer[at] != _LF and not (blank and not self._after_crlf):
                if at + 1 == len(buffer):
                    break
                length = 2 if buffer[at + 1] == _LF else 1
            if blank:
                return at + length
            at += length
            line_start = at
            self._after_crlf = length == 2
        else:
            at = len(buffer)
        self._scanned = at - start
        self._line_start = line_start - start
        return None

    def _pass_oversized(self, events: list[SseEvent]) -> None:
        if len(self._pending) <= self._max_event and not self._oversized:
            return
        # Four bytes stay, enough to see the two line ends that close the block, however they are written.
        size = len(self._pending) - 4
        if size == self._line_start:
            size -= 1
        if size <= 0:
            return
        self._oversized = True
        events.append(_uninterpreted(bytes(memoryview(self._pending)[:size])))
        del self._pending[:size]
        self._scanned = max(self._scanned - size, 0)
        self._line_start = max(self._line_start - size, -1)

    def _block(self, raw: bytes) -> SseEvent:
        first, self._first = self._first, False
        if self._oversized or len(raw) > self._max_event:
            self._oversized = False
            return _uninterpreted(raw)
        return parse(raw.removeprefix(_BOM), raw) if first else parse(raw)


_COMMON = re.compile(rb"(?:event: ([^\r\n]*)\n)?data: ([^\r\n]*)\n\n")
"""What model APIs send nearly always; everything else is read line by line."""


def parse(block: bytes, raw: bytes | None = None) -> SseEvent:
    """Interpret one complete block; `raw` are its bytes in the stream where they differ from `block`."""
    if common := _COMMON.fullmatch(block):
        name, text = common.groups(b"")
        return SseEvent(
            event=name.decode(errors="replace"),
            data=text.decode(errors="replace"),
            raw=block if raw is None else raw,
            has_data=True,
        )
    event = b""
    data: list[bytes] = []
    last_id: str | None = None
    retry: int | None = None
    for line in _LINE_END.split(block) if b"\r" in block else block.split(b"\n"):
        field, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if field == b"data":
            data.append(value)
        elif field == b"event":
            event = value
        elif field == b"id" and b"\0" not in value:
            last_id = value.decode(errors="replace")
        elif field == b"retry" and value.isdigit() and len(value) <= _MAX_RETRY_DIGITS:
            retry = int(value)
    return SseEvent(
        event=event.decode(errors="replace"),
        data=b"\n".join(data).decode(errors="replace"),
        raw=block if raw is None else raw,
        has_data=bool(data),
        id=last_id,
        retry=retry,
    )


def encode(event: str, data: bytes) -> bytes:
    """One event with a name (none if empty or if it is no single line) and data, with LF line ends."""
    name = event.encode(errors="replace")
    named = name and not _LINE_END_START.search(name)
    return (b"event: %b\n" % name if named else b"") + data_lines(data) + b"\n"


def data_lines(data: bytes) -> bytes:
    """The data field's lines: one for each line of `data`."""
    return b"".join(b"data: %b\n" % line for line in _LINE_END.split(data))


def _uninterpreted(raw: bytes) -> SseEvent:
    return SseEvent(event="", data="", raw=raw, has_data=False, whole=False)
