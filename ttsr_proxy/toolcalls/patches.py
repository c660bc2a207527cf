"""Patch texts: the added lines of each file, while the patch arrives.

Three dialects name their files in header lines and mark added lines with a leading `+`:

- Codex's `apply_patch`: `*** Add File: PATH`, `*** Update File: PATH` (then perhaps `*** Move to: PATH`),
  `*** Delete File: PATH`; lines of context start with a space, removed ones with `-`.
- omp's line-anchored edits: `[PATH#HASH]` or `[PATH]`, then operations and `+` rows.
- unified diffs: a line `--- PATH` with a line `+++ PATH` right behind it.

The first file header decides: in an `apply_patch` text, `[package]` is a line of a file and no header.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_FILE = re.compile(r"\*\*\* (?:Add|Update|Delete) File: ?(.+)")
_MOVE = re.compile(r"\*\*\* Move to: ?(.+)")
_OLD = re.compile(r"--- (.+)")
_NEW = re.compile(r"\+\+\+ (.+)")
_ANCHORED = re.compile(r"\[([^#]+)(?:#[0-9A-Za-z]*)?\]")


_NOWHERE = "/dev/null"
"""The path of a file that does not exist, before or after."""


@dataclass(frozen=True, slots=True)
class PatchPiece:
    """More added text of a file; the first piece of a section may be empty.

    All hunks of one file are one section: its added lines joined by line feeds. `paths` is empty for lines
    that stand before any header, and holds the new and the old path of a moved file.
    """

    section: int
    paths: tuple[str, ...]
    text: str


class PatchReader:
    """Reads a patch from fragments cut anywhere. Linear; unknown lines are passed over."""

    __slots__ = (
        "_dialect",
        "_has_lines",
        "_line",
        "_mode",
        "_old",
        "_return",
        "_sections",
        "_waiting",
        "_where",
    )

    def __init__(self) -> None:
        self._dialect: Literal["apply_patch", "anchored", "unified"] | None = None
        self._sections: dict[tuple[str, ...], int] = {}
        self._has_lines: set[int] = set()
        self._where: tuple[str, ...] = ()
        self._waiting = False
        self._mode: Literal["start", "added", "header", "other"] = "start"
        self._line: list[str] = []
        self._return = False
        self._old: str | None = None
        """The path of a line `--- PATH`, for the line behind it."""

    def feed(self, fragment: str) -> list[PatchPiece]:
        """Take the next fragment; returns the added text that it brings."""
        pieces: list[PatchPiece] = []
        at = 0
        while at < len(fragment):
            if self._mode == "start":
                at = self._start_line(fragment, at, pieces)
                continue
            end = fragment.find("\n", at)
            stop = len(fragment) if end < 0 else end
            self._take(fragment[at:stop], pieces)
            if end >= 0:
                self._end_line(pieces)
            at = stop + 1
        return pieces

    def finish(self) -> list[PatchPiece]:
        """The patch ends here."""
        pieces: list[PatchPiece] = []
        if self._mode != "start":
            self._end_line(pieces)
        self._settle(pieces)
        return pieces

    def _start_line(self, fragment: str, at: int, pieces: list[PatchPiece]) -> int:
        first = fragment[at]
        if first == "+" and self._old is None:
            self._mode = "added"
            self._start_added(pieces)
            return at + 1
        self._mode = "header" if first in "*[+" or (first == "-" and self._is_unified) else "other"
        if first == "\n":
            self._end_line(pieces)
            return at + 1
        return at

    @property
    def _is_unified(self) -> bool:
        return self._dialect is None or self._dialect == "unified"

    def _start_added(self, pieces: list[PatchPiece]) -> None:
        self._settle(pieces)
        section = self._section()
        pieces.append(PatchPiece(section, self._where, "\n" if section in self._has_lines else ""))
        self._has_lines.add(section)

    def _take(self, text: str, pieces: list[PatchPiece]) -> None:
        if self._mode == "header":
            self._line.append(text)
        elif self._mode == "added" and text:
            # A carriage return is part of the line unless a line feed follows.
            if self._return:
                text = "\r" + text
            self._return = text.endswith("\r")
            text = text[:-1] if self._return else text
            if text:
                pieces.append(PatchPiece(self._section(), self._where, text))

    def _end_line(self, pieces: list[PatchPiece]) -> None:
        line = "".join(self._line) if self._mode == "header" else ""
        header = line.rstrip()
        old, self._old = self._old, None
        self._line.clear()
        self._return = False
        self._mode = "start"
        if line.startswith("-"):
            found = _OLD.fullmatch(header)
            self._old = _diff_path(found[1]) if found else None
            return
        if line.startswith("+") and old is not None:
            self._end_new(line, header, old, pieces)
            return
        move = _MOVE.fullmatch(header)
        if move and self._waiting:
            self._where = (move[1].strip(), *self._where)
            return
        self._settle(pieces)
        path = self._header_path(header)
        if path:
            self._where = (path,)
            self._waiting = True

    def _end_new(self, line: str, header: str, old: str, pieces: list[PatchPiece]) -> None:
        """A line `+...` right behind a line `--- PATH`: the new path, or an added line."""
        found = _NEW.fullmatch(header)
        self._settle(pieces)
        if found is None:
            self._start_added(pieces)
            pieces.append(PatchPiece(self._section(), self._where, line[1:].removesuffix("\r")))
            return
        self._dialect = "unified"
        new = _diff_path(found[1])
        if old.startswith("a/") and new.startswith("b/"):
            old, new = old[2:], new[2:]
        elif _NOWHERE in (old, new):
            old, new = (re.sub(r"\A[ab]/", "", path) for path in (old, new))
        self._where = tuple(dict.fromkeys(path for path in (new, old) if path != _NOWHERE))
        self._waiting = bool(self._where)

    def _header_path(self, header: str) -> str | None:
        found = _FILE.fullmatch(header)
        if found:
            self._dialect = "apply_patch"
            return found[1].strip()
        found = _ANCHORED.fullmatch(header)
        if found and self._dialect in (None, "anchored"):
            self._dialect = "anchored"
            return found[1].strip().strip("\"'")
        return None

    def _settle(self, pieces: list[PatchPiece]) -> None:
        """The last header's paths are final: say so, also for a file that gets no added line."""
        if self._waiting:
            self._waiting = False
            pieces.append(PatchPiece(self._section(), self._where, ""))

    def _section(self) -> int:
        return self._sections.setdefault(self._where, len(self._sections))


def _diff_path(text: str) -> str:
    """The path in a header line of a unified diff; a tab parts it from a date."""
    return text.partition("\t")[0].strip().strip('"')
