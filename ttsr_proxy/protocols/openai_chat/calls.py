"""Tool calls in pieces: to which call a piece belongs, and when a call is complete.

A piece names its call by `index`, but servers differ: some count every call as 0, some leave the index away,
some give no ids, some repeat id and name in every piece.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ttsr_proxy.jsontext import JsonObject, JsonValue, encode

_STRUCTURE = re.compile(r'\\.?|["{}\[\]]', re.DOTALL)
"""What tells where a JSON value ends: brackets, quotes, and escapes, which hide a quote."""

_ARGUMENTS = {"function": "arguments", "custom": "input", "function_call": "arguments"}
"""The kinds of call, by the field that holds name and input, and where in it the input is."""


@dataclass(frozen=True, slots=True)
class CallPiece:
    """One entry of `tool_calls`, or the older `function_call`, in a delta or a message."""

    entry: JsonObject
    """As it came. A `function_call` is wrapped under that name."""
    form: str
    """`function`, `custom` (its input is plain text) or `function_call`."""

    @property
    def index(self) -> int | None:
        index = self.entry.get("index")
        return index if type(index) is int else None

    @property
    def id(self) -> str:
        return _text(self.entry.get("id"))

    @property
    def inner(self) -> JsonObject:
        inner = self.entry.get(self.form)
        return inner if isinstance(inner, dict) else {}

    @property
    def name(self) -> str:
        return _text(self.inner.get("name"))

    @property
    def arguments(self) -> str:
        value = self.inner.get(_ARGUMENTS[self.form])
        if isinstance(value, dict | list):
            # Some servers forget to write the arguments as a string.
            return encode(value).decode()
        return _text(value)

    def opening(self) -> JsonObject:
        """The entry without its arguments."""
        return with_arguments(self.entry, "")


def call_pieces(message: JsonObject) -> list[CallPiece]:
    """The tool calls in a delta or a message, in order."""
    entries = message.get("tool_calls")
    found = [
        CallPiece(entry, "custom" if isinstance(entry.get("custom"), dict) else "function")
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict)
    ]
    older = message.get("function_call")
    if isinstance(older, dict):
        found.append(CallPiece({"function_call": older}, "function_call"))
    return found


def call_of(value: JsonObject) -> CallPiece | None:
    """A complete call, as history carries it; None if the value is none."""
    for form in _ARGUMENTS:
        if isinstance(value.get(form), dict):
            return CallPiece(value, form)
    return None


def with_arguments(entry: JsonObject, arguments: str) -> JsonObject:
    """The call with other arguments."""
    for form, name in _ARGUMENTS.items():
        inner = entry.get(form)
        if isinstance(inner, dict):
            return {**entry, form: {**inner, name: arguments}}
    return {**entry, "function": {"arguments": arguments}}


def in_delta(entry: JsonObject) -> JsonObject:
    """The field of a delta or message that says `entry`."""
    older = entry.get("function_call")
    return {"function_call": older} if isinstance(older, dict) else {"tool_calls": [entry]}


@dataclass(slots=True, eq=False)
class OpenCall:
    """A call that is not known to be complete. `block` is the index of its block."""

    block: int
    first: CallPiece
    pieces: list[str] = field(default_factory=list)
    _scanned: int = 0
    """How many of the pieces were looked at; each is looked at once, however often `complete` is asked."""
    _depth: int = 0
    _in_string: bool = False
    _escape: bool = False
    """The last piece looked at ended with a backslash."""
    _opened: bool = False

    @property
    def complete(self) -> bool:
        """Its arguments are a whole JSON object, by their brackets. Plain text has no end of its own."""
        if self.first.form == "custom":
            return False
        for piece in self.pieces[self._scanned :]:
            self._scan(piece)
        self._scanned = len(self.pieces)
        return self._opened and self._depth == 0

    def _scan(self, piece: str) -> None:
        start = 1 if self._escape and piece else 0
        self._escape = self._escape and not piece
        for mark in _STRUCTURE.finditer(piece, start):
            match mark[0]:
                case '"':
                    self._in_string = not self._in_string
                case "{" | "[" if not self._in_string:
                    self._depth += 1
                    self._opened = True
                case "}" | "]" if not self._in_string:
                    self._depth -= 1
                case "\\":
                    self._escape = True

    @property
    def value(self) -> JsonObject:
        """The call as history carries it."""
        entry = {name: part for name, part in self.first.entry.items() if name != "index"}
        if self.first.form != "function_call":
            entry.setdefault("type", self.first.form)
        return with_arguments(entry, "".join(self.pieces))

    def takes(self, piece: CallPiece) -> bool:
        """Whether a piece with this call's index, or with none, goes on with this call."""
        if piece.form != self.first.form:
            return False
        if piece.id and self.first.id:
            return piece.id == self.first.id
        # A name opens a call, unless a server repeats it in every piece.
        return not piece.name or (piece.name == self.first.name and not self.complete)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
