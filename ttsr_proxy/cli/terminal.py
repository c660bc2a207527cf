"""What is shown on a terminal: nothing that a model wrote may steer it."""

from __future__ import annotations

import unicodedata

from rich.console import Console
from rich.text import Text

_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""Unicode categories that a terminal acts on or hides: controls, marks, surrogates, line separators."""

_PIPE_COLUMNS = 200


def console() -> Console:
    """Standard output, wide enough for a table when it is not a terminal."""
    out = Console(highlight=False, emoji=False)
    return out if out.is_terminal else Console(highlight=False, emoji=False, width=_PIPE_COLUMNS)


def printable(text: str, *, keep: str = "", limit: int | None = None) -> str:
    """The text with control and hidden characters escaped, those in `keep` excepted, cut at `limit`."""
    cut = text if limit is None or len(text) <= limit else text[: limit - 1] + "…"
    return "".join(
        char if char in keep or unicodedata.category(char) not in _UNSEEN else ascii(char)[1:-1]
        for char in cut
    )


def cell(text: str, style: str = "", limit: int | None = None) -> Text:
    """Text for one line or table cell, taken literally."""
    return Text(printable(text, limit=limit), style=style)


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: `1 file`, `1,200 files`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
