"""Argument JSON decoded while it arrives.

A document is fed in fragments cut at any character, also inside an escape or between the halves of a
surrogate pair. Every character is looked at a constant number of times, and nothing raises: a document that
is not JSON leaves the decoder `broken`, with the reason, and its raw text stays available.

Decoded strings equal `well_formed(json.loads(document))` at each place: like `json.loads`, but a surrogate
pair is always one character and a lone surrogate is U+FFFD, so that every text can be encoded. Raw control
characters in strings are accepted (models forget to escape newlines); all else is as strict as `json.loads`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TypeAlias

JsonPath: TypeAlias = tuple[str | int, ...]
"""Where a value stands: object keys and list indexes from the top."""

MAX_DEPTH = 200
"""Open containers; deeper documents are `broken`."""


@dataclass(frozen=True, slots=True)
class StringDelta:
    """More decoded text of the string at `path`; never empty."""

    path: JsonPath
    text: str


@dataclass(frozen=True, slots=True)
class StringEnded:
    """The string at `path` is complete; the only event of an empty string."""

    path: JsonPath


@dataclass(frozen=True, slots=True)
class ScalarRead:
    """A number, `true`, `false` or `null`, as it is written."""

    path: JsonPath
    text: str


@dataclass(frozen=True, slots=True)
class ContainerStarted:
    """An object or a list opens at `path`."""

    path: JsonPath
    is_object: bool


JsonEvent: TypeAlias = StringDelta | StringEnded | ScalarRead | ContainerStarted

_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACE = re.compile(r"[ \t\n\r]*+")
# The longest run of plain characters and complete escapes: it stops at a quote, at the end of the fragment,
# or at a backslash whose escape is wrong or not yet complete.
_STRING_RUN = re.compile(r'[^"\\]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\]*+)*+')
_CUT_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?")
_SCALAR_RUN = re.compile(r"[-+.0-9A-Za-z]++")
# NaN and the infinities are no JSON, but json.loads reads them.
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null|NaN|-?Infinity")

_decode_string = json.JSONDecoder(strict=False).decode

_VALUE = "a value"
_VALUE_OR_END = "a value or ']'"
_KEY = "a key"
_KEY_OR_END = "a key or '}'"
_COLON = "':'"
_COMMA_OR_END = "',' or the end of the container"


def well_formed(text: str) -> str:
    """The text with surrogate pairs joined and lone surrogates replaced by U+FFFD."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class PairJoiner:
    """Makes text in pieces well formed: a high surrogate waits for the piece with its other half."""

    __slots__ = ("_high",)

    def __init__(self) -> None:
        self._high = ""

    def feed(self, piece: str) -> str:
        """The next piece, without a high surrogate at its end."""
        if self._high:
            piece = self._high + piece
            self._high = ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            self._high = piece[-1]
            piece = piece[:-1]
        return well_formed(piece)

    def finish(self) -> str:
        """What waited in vain."""
        lone, self._high = self._high, ""
        return well_formed(lone)


class JsonStream:
    """Decodes one JSON document from fragments.

    `complete` is True once the document's last character was read; what a fragment holds beyond it is
    `rest`. `broken` is the reason why the text is no JSON, else None; `broken_at` is the offset of the first
    character that was not understood.
    """

    __slots__ = (
        "_building",
        "_expected",
        "_fragments",
        "_in_string",
        "_is_key",
        "_is_object",
        "_keys",
        "_offset",
        "_pairs",
        "_path",
        "_pending",
        "broken",
        "broken_at",
        "complete",
        "rest",
    )

    def __init__(self) -> None:
        self.complete = False
        self.broken: str | None = None
        self.broken_at = 0
        self.rest = ""
        self._fragments: list[str] = []
        self._offset = 0
        self._pending = ""
        self._expected = _VALUE
        self._keys: list[str | int] = []
        self._is_object: list[bool] = []
        self._path: JsonPath = ()
        self._in_string = False
        self._is_key = False
        self._pairs = PairJoiner()
        self._building: list[str] = []

    @property
    def open_string(self) -> JsonPath | None:
        """Where the string value stands that has begun but not ended."""
        return self._path if self._in_string and not self._is_key else None

    @property
    def raw(self) -> str:
        """Everything that was fed, as it came, without `rest`."""
        return "".join(self._fragments)

    def feed(self, fragment: str) -> list[JsonEvent]:
        """Take the next fragment; returns what it completes or adds to."""
        if self.complete:
            self.rest = fragment
            return []
        self._fragments.append(fragment)
        if self.broken is not None or not fragment:
            return []
        text = self._pending + fragment if self._pending else fragment
        self._offset -= len(self._pending)
        self._pending = ""
        events: list[JsonEvent] = []
        at, end = 0, len(text)
        while at < end and not self.complete and self.broken is None:
            at = (
                self._read_string(text, at, events) if self._in_string else self._read_token(text, at, events)
            )
        if self.complete and at < end:
            self.rest = text[at:]
            self._fragments[-1] = fragment[: len(fragment) - len(self.rest)]
        self._offset += at
        return events

    def finish(self) -> list[JsonEvent]:
        """No more will come: closes a scalar at the top and gives out what waited for its second half."""
        events: list[JsonEvent] = []
        if self.complete or self.broken is not None:
            return events
        if self._building and not self._in_string:
            self._end_scalar(events)
        if self._in_string:
            self._add_text(self._pairs.finish(), events)
        return events

    def _read_token(self, text: str, at: int, events: list[JsonEvent]) -> int:
        if self._building:
            return self._read_scalar(text, at, events)
        space = _SPACE.match(text, at)
        at = space.end() if space else at
        if at == len(text):
            return at
        char = text[at]
        expected = self._expected
        if char == '"' and expected is not _COLON and expected is not _COMMA_OR_END:
            self._start_string(is_key=expected is _KEY or expected is _KEY_OR_END)
        elif expected is _COLON and char == ":":
            self._expected = _VALUE
        elif expected is _COMMA_OR_END and char == ",":
            self._next_item()
        elif char in "]}" and self._may_close(char):
            self._keys.pop()
            self._is_object.pop()
            self._end_value()
        elif expected is _VALUE or expected is _VALUE_OR_END:
            if char in "{[":
                return self._open(char, at, events)
            return self._read_scalar(text, at, events)
        else:
            return self._break(at, f"expected {expected}, found {char!r}")
        return at + 1

    def _may_close(self, char: str) -> bool:
        if not self._is_object or self._is_object[-1] is not (char == "}"):
            return False
        return self._expected in (_COMMA_OR_END, _KEY_OR_END, _VALUE_OR_END)

    def _open(self, char: str, at: int, events: list[JsonEvent]) -> int:
        if len(self._keys) == MAX_DEPTH:
            return self._break(at, f"more than {MAX_DEPTH} containers inside each other")
        is_object = char == "{"
        events.append(ContainerStarted(tuple(self._keys), is_object))
        self._is_object.append(is_object)
        self._keys.append("" if is_object else 0)
        self._expected = _KEY_OR_END if is_object else _VALUE_OR_END
        return at + 1

    def _next_item(self) -> None:
        if self._is_object[-1]:
            self._expected = _KEY
            return
        index = self._keys[-1]
        self._keys[-1] = index + 1 if isinstance(index, int) else 0
        self._expected = _VALUE

    def _end_value(self) -> None:
        self._expected = _COMMA_OR_END
        self.complete = not self._keys

    def _read_scalar(self, text: str, at: int, events: list[JsonEvent]) -> int:
        run = _SCALAR_RUN.match(text, at)
        if run is None and not self._building:
            return self._break(at, f"expected {self._expected}, found {text[at]!r}")
        if run is not None:
            self._building.append(run.group())
            at = run.end()
            if at == len(text):
                return at
        if not self._end_scalar(events):
            return self._break(at, "expected a number, true, false or null")
        return at

    def _end_scalar(self, events: list[JsonEvent]) -> bool:
        scalar = "".join(self._building)
        self._building.clear()
        if _SCALAR.fullmatch(scalar) is None:
            return False
        events.append(ScalarRead(tuple(self._keys), scalar))
        self._end_value()
        return True

    def _start_string(self, *, is_key: bool) -> None:
        self._in_string = True
        self._is_key = is_key
        if not is_key:
            self._path = tuple(self._keys)

    def _read_string(self, text: str, at: int, events: list[JsonEvent]) -> int:
        run = _STRING_RUN.match(text, at)
        stop = run.end() if run else at
        piece = text[at:stop]
        if "\\" in piece:
            piece = _decode_string(f'"{piece}"')
        self._add_text(self._pairs.feed(piece), events)
        if stop == len(text):
            return stop
        if text[stop] == '"':
            self._add_text(self._pairs.finish(), events)
            self._end_string(events)
            return stop + 1
        if _CUT_ESCAPE.fullmatch(text, stop) is None:
            return self._break(stop, "expected an escape sequence after '\\'")
        self._pending = text[stop:]
        return len(text)

    def _add_text(self, piece: str, events: list[JsonEvent]) -> None:
        if not piece:
            return
        if self._is_key:
            self._building.append(piece)
        else:
            events.append(StringDelta(self._path, piece))

    def _end_string(self, events: list[JsonEvent]) -> None:
        self._in_string = False
        if self._is_key:
            self._keys[-1] = "".join(self._building)
            self._building.clear()
            self._expected = _COLON
        else:
            events.append(StringEnded(self._path))
            self._end_value()

    def _break(self, at: int, reason: str) -> int:
        self.broken_at = self._offset + at
        self.broken = f"character {self.broken_at}: {reason}"
        return at
