"""JSON between bytes and plain Python values: the one place where the package parses or writes it.

`msgspec` does the work; what it refuses but JSON allows (lone surrogates in strings) falls back to the
standard library, so that no legal document is lost. Numbers with a fraction or an exponent are written as
they were read, `1e400` and the `NaN` of lax writers included, which no float could bring back.
"""

from __future__ import annotations

import json
from typing import Any, Self, TypeAlias

import msgspec

JsonValue: TypeAlias = Any
"""Any JSON value. Narrow it where it enters."""

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object with values not yet narrowed."""


class WrittenFloat(float):
    """A number that remembers how it was written; to everything else it is the float that it means."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Self:
        number = super().__new__(cls, text)
        number.text = text
        return number


def _as_written(value: object) -> msgspec.Raw:
    if isinstance(value, WrittenFloat):
        return msgspec.Raw(value.text.encode())
    raise TypeError(type(value).__name__)


_decode = msgspec.json.Decoder(float_hook=WrittenFloat).decode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder(enc_hook=_as_written).encode
_encode_sorted = msgspec.json.Encoder(order="sorted", enc_hook=float).encode


def decode(data: bytes | str) -> JsonValue:
    """Parse a complete JSON document. Raises ValueError when it is not JSON."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeError):
        return json.loads(data, parse_float=WrittenFloat, parse_constant=WrittenFloat)


def decode_plain(data: str) -> JsonValue:
    """As `decode`, with numbers as floats and nothing more: for `msgspec.convert`, which takes no others."""
    return json.loads(data)


def decode_object(data: bytes | str) -> JsonObject | None:
    """Parse a JSON document and return it if it is an object, else None; never raises on content."""
    try:
        value = decode(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def raw_fields(data: bytes) -> dict[str, bytes] | None:
    """The fields of a JSON object, their values unparsed; None for what `msgspec` does not take."""
    try:
        return {name: bytes(value) for name, value in _decode_fields(data).items()}
    except (msgspec.DecodeError, UnicodeError):
        return None


def encode(value: JsonValue) -> bytes:
    """Write a value as compact UTF-8 JSON; lone surrogates are written as `\\uXXXX` escapes."""
    try:
        return _encode(value)
    except (UnicodeEncodeError, OverflowError, TypeError):
        return json.dumps(value, separators=(",", ":")).encode()


def canonical(value: JsonValue) -> str:
    """One text per value: sorted keys, no spaces. For comparison and hashing of parsed values."""
    try:
        return _encode_sorted(value).decode()
    except (UnicodeEncodeError, OverflowError, TypeError):
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
