"""Server-sent events and ids of the OpenAI APIs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

_CHARACTERS = 7
_ids = itertools.count(1)


def fresh_id(prefix: str) -> str:
    """An id that no other call returned."""
    return f"{prefix}{next(_ids):012d}scripted"


def pieces(text: str) -> Iterator[str]:
    """The text cut as a stream cuts it: without regard to words."""
    for start in range(0, len(text), _CHARACTERS):
        yield text[start : start + _CHARACTERS]


def sse(event: str | None, data: dict[str, Any]) -> bytes:
    """One event."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()
