"""Records as JSON text, as the stores keep them. Fields that this version does not know are ignored."""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from ttsr_proxy import jsontext
from ttsr_proxy.errors import StoreError
from ttsr_proxy.sessions.record import ResponseRecord
from ttsr_proxy.sessions.store import Unfinished

T = TypeVar("T")

_RECORD: Final = msgspec.json.Decoder(ResponseRecord, float_hook=jsontext.WrittenFloat)
_UNFINISHED: Final = msgspec.json.Decoder(Unfinished)


def record_to_json(record: ResponseRecord) -> str:
    """The record as one line of JSON."""
    return _to_json(record)


def record_from_json(body: str) -> ResponseRecord:
    """The record again. Raises StoreError when the text is not a record that this version can read."""
    return _from_json(ResponseRecord, _RECORD, body)


def unfinished_to_json(left: Unfinished) -> str:
    """What a retry inherits, as one line of JSON."""
    return _to_json(left)


def unfinished_from_json(body: str) -> Unfinished:
    """What a retry inherits again. Raises StoreError as `record_from_json` does."""
    return _from_json(Unfinished, _UNFINISHED, body)


def _to_json(value: ResponseRecord | Unfinished) -> str:
    try:
        return jsontext.encode(msgspec.to_builtins(value, enc_hook=float)).decode()
    except RecursionError as error:
        raise StoreError("A conversation record is nested too deeply to be stored.") from error


def _from_json(kind: type[T], decoder: msgspec.json.Decoder[T], body: str) -> T:
    try:
        return decoder.decode(body)
    except msgspec.DecodeError:
        return _from_values(kind, body)


def _from_values(kind: type[T], body: str) -> T:
    # What msgspec's parser refuses and JSON allows (lone surrogates) goes the longer way; see `jsontext`.
    try:
        return msgspec.convert(jsontext.decode_plain(body), kind)
    except (ValueError, RecursionError) as error:
        raise StoreError(
            f"A stored {kind.__name__} cannot be read by this release ({error}); it was damaged or written "
            "by another one. Use that release, or name another file with --state."
        ) from error
