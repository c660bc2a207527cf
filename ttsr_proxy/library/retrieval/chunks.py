"""A task's context cut into pieces that are short enough to be compared with one rule each.

A long context has one sentence that matters, and an embedding of the whole drowns it.
"""

from __future__ import annotations

import re
from typing import Final

MAX_CHUNKS: Final = 512
"""The most pieces that are compared; about four seconds of one core with the local model."""

MAX_WORDS: Final = 48
MAX_CHARS: Final = 400

_ENDS = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")


def chunks(text: str) -> list[str]:
    """The distinct pieces of a text in their order, without a limit on their number.

    A short text is one piece. Else pieces end with sentences and lines; what is longer than that is cut at
    words, and what has no words at characters.
    """
    whole = " ".join(text.split())
    if len(whole) <= MAX_CHARS and whole.count(" ") < MAX_WORDS:
        return [whole] if whole else []
    pieces: dict[str, None] = {}
    for sentence in _ENDS.split(text):
        words = sentence.split()
        for start in range(0, len(words), MAX_WORDS):
            piece = " ".join(words[start : start + MAX_WORDS])
            for cut in range(0, len(piece), MAX_CHARS):
                pieces[piece[cut : cut + MAX_CHARS]] = None
    return list(pieces)
