"""Text that comes in small pieces and is kept as one.

A model writes four characters at a time, and a string of four characters takes more than ten times their
room. Kept as lists of pieces, the answers under way would be most of what a busy process holds.
"""

from __future__ import annotations

MOST_PIECES = 128
"""Pieces that wait to be joined to the text."""


class GrowingText:
    """Cheap to add to; joined when somebody looks, or when many pieces wait."""

    __slots__ = ("_pending", "_text")

    def __init__(self) -> None:
        self._text = ""
        self._pending: list[str] = []

    def add(self, piece: str) -> None:
        """More text."""
        self._pending.append(piece)
        if len(self._pending) >= MOST_PIECES:
            self._join()

    @property
    def text(self) -> str:
        """All of it so far."""
        if self._pending:
            self._join()
        return self._text

    def _join(self) -> None:
        # With no second reference to the string, CPython extends it in place: linear over the whole text.
        text = self._text
        self._text = ""
        text += "".join(self._pending)
        self._text = text
        self._pending.clear()
