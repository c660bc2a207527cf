"""Log records as JSON text, as the stores keep them. Fields that this version does not know are ignored."""

from __future__ import annotations

from typing import Final

import msgspec

from ttsr_proxy import jsontext
from ttsr_proxy.interrupts.record import InterruptRecord

_RECORD: Final = msgspec.json.Decoder(InterruptRecord)


def record_to_json(record: InterruptRecord) -> str:
    """The record as one line of JSON."""
    return jsontext.encode(msgspec.to_builtins(record)).decode()


def record_from_json(body: str) -> InterruptRecord:
    """The record again. Raises ValueError when the text is not a record that this version can read."""
    try:
        return _RECORD.decode(body)
    except msgspec.DecodeError:
        # What msgspec's parser refuses and JSON allows (lone surrogates) goes the longer way; see `jsontext`.
        return msgspec.convert(jsontext.decode_plain(body), InterruptRecord)
