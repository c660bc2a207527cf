"""One tool call read as it streams: argument fragments in, view deltas out."""

from __future__ import annotations

from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.toolcalls.families import FamilyTable
from ttsr_proxy.toolcalls.views import View, ViewDelta


class ToolCallReader:
    """Reads the arguments of one call of `tool`."""

    def __init__(
        self, tool: str, families: FamilyTable, *, project_root: str | None = None, freeform: bool = False
    ) -> None:
        raise NotImplementedError

    @property
    def kind(self) -> str | None:
        """The family's kind, known from the tool's name; None for tools without a family."""
        raise NotImplementedError

    @property
    def kinds(self) -> frozenset[str | None]:
        """Every kind that a view of this call can have (an editor tool both edits and writes)."""
        raise NotImplementedError

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths seen so far, normalised."""
        raise NotImplementedError

    def feed(self, fragment: str) -> tuple[ViewDelta, ...]:
        """Take the next piece of the arguments; returns what it adds to views whose paths are known."""
        raise NotImplementedError

    def finish(self) -> tuple[ViewDelta, ...]:
        """The arguments are complete, or will never be: everything that still waited."""
        raise NotImplementedError

    def views(self) -> tuple[View, ...]:
        """The complete views, after `finish()`; view number n of the deltas is item n."""
        raise NotImplementedError


def views_of_call(
    tool: str,
    arguments: JsonObject | str,
    families: FamilyTable,
    *,
    project_root: str | None = None,
    freeform: bool = False,
) -> tuple[View, ...]:
    """The views of a call whose arguments are complete."""
    raise NotImplementedError
