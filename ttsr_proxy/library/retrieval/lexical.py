"""Ranking by shared words: SQLite's full-text index with its stemmer and BM25. Needs no model."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from typing import Final

_WORD = re.compile(r"[^\W_]+")
_STOP_WORDS: Final = frozenset(
    _WORD.findall(
        "a an and any are as at be been but by can could do does for from had has have he her his how i if "
        "in into is it its just may me more must my no not now of on or our she should so some such than "
        "that the their them then there these they this to was we were what when where which who will with "
        "would you your"
    )
)
_MAX_WORDS: Final = 64
"""Words of a query; the full-text engine limits how many alternatives an expression may have."""


class LexicalIndex:
    """Texts to be ranked. For one thread; what it ranks does not change."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._count = len(texts)
        self._index = sqlite3.connect(":memory:")
        self._index.execute("CREATE VIRTUAL TABLE texts USING fts5(body, tokenize='porter unicode61')")
        self._index.executemany("INSERT INTO texts(rowid, body) VALUES (?, ?)", enumerate(texts))

    def scores(self, queries: Sequence[str]) -> list[float]:
        """For each text its best BM25 score over the queries; 0 for one that shares no word with any."""
        best = [0.0] * self._count
        for query in queries:
            words = [word for word in _words(query) if word not in _STOP_WORDS][:_MAX_WORDS]
            if not words:
                continue
            expression = " OR ".join(f'"{word}"' for word in words)
            found = self._index.execute(
                "SELECT rowid, -bm25(texts) FROM texts WHERE texts MATCH ?", (expression,)
            )
            for number, score in found:
                best[number] = max(best[number], score)
        return best


def overlap(one: str, other: str) -> float:
    """How much of the shorter text's words the other has, from 0 to 1."""
    first, second = set(_words(one)) - _STOP_WORDS, set(_words(other)) - _STOP_WORDS
    smaller = min(len(first), len(second))
    return len(first & second) / smaller if smaller else 0.0


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(word.lower() for word in _WORD.findall(text)))
