"""Texts in a notation of their own: patches, SEARCH/REPLACE blocks, commands and scripts become views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ttsr_proxy.toolcalls import javascript, shell
from ttsr_proxy.toolcalls.patches import PatchPiece, PatchReader
from ttsr_proxy.toolcalls.search_replace import SearchReplaceReader
from ttsr_proxy.toolcalls.syntax import Form, Payload
from ttsr_proxy.toolcalls.view_set import OpenView, ViewSet

SECTIONED: Final[dict[Form, Callable[[], PatchReader | SearchReplaceReader]]] = {
    "patch": PatchReader,
    "search-replace": SearchReplaceReader,
}
"""Notations that are read while they arrive."""

PARSED: Final[dict[Form, Callable[[str], tuple[Payload, ...]]]] = {
    "shell": shell.payloads_of,
    "javascript": javascript.payloads_of,
}
"""Languages that are read once the text is complete; the text itself is a view, too."""

KINDS: Final[dict[Form, frozenset[str]]] = {
    "shell": frozenset({"edit", "write"}),
    "javascript": frozenset({"bash", "edit", "write"}),
}
"""The kinds of the views that are found in a text of this language."""

PathOf = Callable[[str], str]


class Sections:
    """A text in sections, each of which becomes a view."""

    def __init__(self, form: Form, views: ViewSet, kind: str | None, path_of: PathOf) -> None:
        self._reader = SECTIONED[form]()
        self._views = views
        self._kind = kind
        self._path_of = path_of
        self._sections: dict[int, OpenView] = {}

    def feed(self, text: str) -> list[OpenView]:
        """Returns views that began without a path of their own."""
        return self._add(self._reader.feed(text))

    def finish(self) -> list[OpenView]:
        """The text ends here; returns what `feed` does."""
        return self._add(self._reader.finish())

    @property
    def is_empty(self) -> bool:
        """Nothing in this notation has come."""
        return not self._sections

    def _add(self, pieces: list[PatchPiece]) -> list[OpenView]:
        pathless: list[OpenView] = []
        for piece in pieces:
            view = self._sections.get(piece.section)
            if view is None:
                view = self._sections[piece.section] = self._views.open(self._kind)
                if piece.paths:
                    self._views.settle(view, tuple(map(self._path_of, piece.paths)))
                else:
                    pathless.append(view)
            self._views.add(view, piece.text)
        return pathless


def view_payloads(form: Form, text: str, views: ViewSet, path_of: PathOf) -> None:
    """Open the views of what a complete command or script would add to files, and run."""
    for payload in PARSED[form](text):
        paths = tuple(map(path_of, payload.paths))
        if payload.form in SECTIONED:
            sections = Sections(payload.form, views, payload.kind, path_of)
            for view in (*sections.feed(payload.text), *sections.finish()):
                views.settle(view, paths)
            continue
        view = views.open(payload.kind)
        views.settle(view, paths)
        views.add(view, payload.text)
        if payload.form in PARSED:
            view_payloads(payload.form, payload.text, views, path_of)
