"""Page cursors: the place in the log after which the next page goes on."""

from __future__ import annotations

import base64
import binascii
import math
import struct
from dataclasses import dataclass
from typing import Final

_LAYOUT: Final = struct.Struct(">dQ")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record stands in the order newest first: by time, then by arrival."""

    time: float
    seq: int


def to_cursor(place: Place) -> str:
    """The place as opaque text that is safe in a URL."""
    return base64.urlsafe_b64encode(_LAYOUT.pack(place.time, place.seq)).decode().rstrip("=")


def from_cursor(cursor: str) -> Place:
    """The place again. Raises ValueError on text that `to_cursor` did not give."""
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        time, seq = _LAYOUT.unpack(data)
    except (binascii.Error, struct.error, ValueError) as error:
        raise ValueError(f"not a cursor of the interrupt log: {cursor[:80]!r}") from error
    if not math.isfinite(time) or seq >= 1 << 63:
        raise ValueError(f"not a cursor of the interrupt log: {cursor[:80]!r}")
    return Place(time, seq)
