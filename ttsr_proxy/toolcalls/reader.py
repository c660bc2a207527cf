"""One tool call read as it streams: argument fragments in, view deltas out."""

from __future__ import annotations

from ttsr_proxy.jsontext import JsonObject, encode
from ttsr_proxy.toolcalls.document import ArgumentDocument, FreeText
from ttsr_proxy.toolcalls.families import FamilyTable
from ttsr_proxy.toolcalls.paths import normalise_path
from ttsr_proxy.toolcalls.view_set import ViewSet
from ttsr_proxy.toolcalls.views import View, ViewDelta

MAX_DOCUMENTS = 32
"""Argument documents of one call that are read one by one; what follows is read as plain text."""

_JSON_SPACE = " \t\n\r"


class ToolCallReader:
    """Reads the arguments of one call of `tool`.

    Text is withheld until the path it is for is known (that argument was seen complete), or the call ends.
    Views do not depend on how the arguments were cut. Some servers send parallel calls under one index; each
    further JSON object is then read on its own, so that their texts and paths never mix. With `freeform` the
    input is text instead of JSON. Nothing that is fed raises.
    """

    def __init__(
        self, tool: str, families: FamilyTable, *, project_root: str | None = None, freeform: bool = False
    ) -> None:
        self._family = families.family_of(tool)
        self._root = project_root
        self._views = ViewSet()
        self._paths: dict[str, None] = {}
        self._documents = 0
        self._finished = False
        self._input: ArgumentDocument | FreeText = self._free_text() if freeform else self._next_document()

    @property
    def kind(self) -> str | None:
        """The family's kind, known from the tool's name; None for tools without a family."""
        return self._family.kind

    @property
    def kinds(self) -> frozenset[str | None]:
        """Every kind that a view of this call can have (an editor tool both edits and writes)."""
        return self._family.kinds

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths seen so far, normalised."""
        return tuple(self._paths)

    def feed(self, fragment: str) -> tuple[ViewDelta, ...]:
        """Take the next piece of the arguments; returns what it adds to views whose paths are known."""
        self._input.feed(fragment)
        while isinstance(self._input, ArgumentDocument):
            rest = self._input.rest.lstrip(_JSON_SPACE)
            if not rest:
                break
            self._input = self._next_document() if self._documents < MAX_DOCUMENTS else self._free_text()
            self._input.feed(rest)
        return self._views.take()

    def finish(self) -> tuple[ViewDelta, ...]:
        """The arguments are complete, or will never be: everything that still waited."""
        if self._finished:
            return ()
        self._finished = True
        if isinstance(self._input, ArgumentDocument) and self._input.is_empty:
            # A call without arguments may come without any fragment.
            self._input.feed("{}")
        self._input.finish()
        return self._views.take()

    def views(self) -> tuple[View, ...]:
        """The complete views, after `finish()`; view number n of the deltas is item n."""
        return self._views.views()

    def _next_document(self) -> ArgumentDocument:
        self._documents += 1
        return ArgumentDocument(self._family, self._views, self._path_of)

    def _free_text(self) -> FreeText:
        return FreeText(self._family, self._views, self._path_of)

    def _path_of(self, path: str) -> str:
        path = normalise_path(path, self._root)
        self._paths[path] = None
        return path


def views_of_call(
    tool: str,
    arguments: JsonObject | str,
    families: FamilyTable,
    *,
    project_root: str | None = None,
    freeform: bool = False,
) -> tuple[View, ...]:
    """The views of a call whose arguments are complete, as an object or as the text that was sent."""
    reader = ToolCallReader(tool, families, project_root=project_root, freeform=freeform)
    reader.feed(arguments if isinstance(arguments, str) else encode(arguments).decode())
    reader.finish()
    return reader.views()
