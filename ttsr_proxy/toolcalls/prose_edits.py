"""One edit in prose, read line by line from its first line to its last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from ttsr_proxy.toolcalls.families import FamilyTable
from ttsr_proxy.toolcalls.patches import PatchPiece, PatchReader
from ttsr_proxy.toolcalls.reader import views_of_call
from ttsr_proxy.toolcalls.search_replace import SearchReplaceReader
from ttsr_proxy.toolcalls.view_set import OpenView, ViewSet

_PARAMETERS: Final = (
    "path",
    "file_path",
    "content",
    "diff",
    "command",
    "search",
    "replace",
    "old_string",
    "new_string",
)
"""The arguments of XML calls that are looked at, each an element with its text as it stands in the file."""

_WHOLE_TEXTS: Final = frozenset({"content", "diff"})


class Edit(Protocol):
    """An edit that has begun."""

    def take_line(self, line: str) -> bool:
        """Take the next line, with its line feed; True with the edit's last line."""

    def finish(self) -> None:
        """The text ends within the edit."""


class BlockEdit:
    """One SEARCH/REPLACE block, from its first mark on."""

    def __init__(self, views: ViewSet, path: str | None) -> None:
        self._reader = SearchReplaceReader()
        self._view = views.open("edit")
        self._views = views
        views.settle(self._view, (path,) if path else ())

    def take_line(self, line: str) -> bool:
        for piece in self._reader.take_line(line):
            self._views.add(self._view, piece.text)
        return not self._reader.is_inside

    def finish(self) -> None:
        return


class WholeEdit:
    """The lines of a file up to the end of its fence."""

    def __init__(self, views: ViewSet, path: str, close: str) -> None:
        self._view = views.open("write")
        self._views = views
        self._close = close
        views.settle(self._view, (path,))

    def take_line(self, line: str) -> bool:
        if line.strip() == self._close:
            return True
        self._views.add(self._view, line)
        return False

    def finish(self) -> None:
        return


class PatchEdit:
    """A patch that names its files, up to a line of its own."""

    def __init__(self, views: ViewSet, path_of: Callable[[str], str], close: str) -> None:
        self._reader = PatchReader()
        self._views = views
        self._path_of = path_of
        self._close = close
        self._sections: dict[int, OpenView] = {}

    def take_line(self, line: str) -> bool:
        if line.strip() == self._close:
            self.finish()
            return True
        self._add(self._reader.feed(line))
        return False

    def finish(self) -> None:
        self._add(self._reader.finish())

    def _add(self, pieces: list[PatchPiece]) -> None:
        for piece in pieces:
            view = self._sections.get(piece.section)
            if view is None:
                view = self._sections[piece.section] = self._views.open("edit")
                self._views.settle(view, tuple(map(self._path_of, piece.paths)))
            self._views.add(view, piece.text)


class ElementEdit:
    """A call as an XML element, read when it is complete; its first line begins behind the start tag."""

    def __init__(
        self, views: ViewSet, tool: str, families: FamilyTable, path_of: Callable[[str], str]
    ) -> None:
        self._views = views
        self._tool = tool
        self._families = families
        self._path_of = path_of
        self._lines: list[str] = []

    def take_line(self, line: str) -> bool:
        text, end, _ = line.partition(f"</{self._tool}>")
        self._lines.append(text)
        if end:
            self.finish()
        return bool(end)

    def finish(self) -> None:
        text = "".join(self._lines)
        # Roo Code edits several files in one call, each in an element of its own.
        files = text.split("<file>")[1:] or [text]
        for file in files:
            for view in views_of_call(self._tool, _arguments(file), self._families):
                opened = self._views.open(view.kind)
                self._views.settle(opened, tuple(map(self._path_of, view.paths)))
                self._views.add(opened, view.text)


def _arguments(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in _PARAMETERS:
        _, start, rest = text.partition(f"<{name}>")
        if start:
            # Only a file's own text can hold its end tag; so the last one ends it.
            part = rest.rpartition if name in _WHOLE_TEXTS else rest.partition
            pieces = part(f"</{name}>")
            found[name] = (pieces[0] if pieces[1] else rest).removeprefix("\n")
    return found
