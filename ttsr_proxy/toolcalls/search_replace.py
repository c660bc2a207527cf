"""SEARCH/REPLACE blocks: the text that replaces, while the blocks arrive.

    <<<<<<< SEARCH          or   ------- SEARCH
    text that stands in the file
    =======
    text that replaces it
    >>>>>>> REPLACE         or   +++++++ REPLACE

Aider, Cline and Roo Code write them, in prose or in an argument; the marks may have five to nine signs.
"""

from __future__ import annotations

import re
from typing import Final

from ttsr_proxy.toolcalls.lines import LineBuffer
from ttsr_proxy.toolcalls.patches import PatchPiece

SEARCH_MARK: Final = re.compile(r"[ \t]*(?:<{5,9}|-{5,9}) ?SEARCH>?\s*")
_DIVIDER: Final = re.compile(r"[ \t]*={5,9}\s*")
_REPLACE_MARK: Final = re.compile(r"[ \t]*(?:>{5,9}|\+{5,9}) ?REPLACE<?\s*")


class SearchReplaceReader:
    """Reads blocks line by line; every block is a section of its own, without a path."""

    __slots__ = ("_buffer", "_end", "_part", "section")

    def __init__(self) -> None:
        self._buffer = LineBuffer()
        self._part = ""
        self._end = ""
        self.section = -1

    @property
    def is_inside(self) -> bool:
        """Whether a block has begun and not ended."""
        return bool(self._part)

    def feed(self, fragment: str) -> list[PatchPiece]:
        """Take the next fragment; returns the text of the lines that it completes."""
        return [piece for line in self._buffer.feed(fragment) for piece in self.take_line(line)]

    def finish(self) -> list[PatchPiece]:
        """The text ends here; an open block has what has come of it."""
        return [piece for line in self._buffer.finish() for piece in self.take_line(line)]

    def take_line(self, line: str) -> list[PatchPiece]:
        """Take one line, with its line feed."""
        if not self._part:
            if SEARCH_MARK.fullmatch(line):
                self._part = "search"
                self.section += 1
        elif self._part == "search":
            if _DIVIDER.fullmatch(line):
                self._part, self._end = "replace", ""
                return [PatchPiece(self.section, (), "")]
        elif _REPLACE_MARK.fullmatch(line):
            self._part = ""
        else:
            text = line.rstrip("\r\n")
            piece = PatchPiece(self.section, (), self._end + text)
            self._end = "\n"
            return [piece]
        return []
