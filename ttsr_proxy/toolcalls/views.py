"""What a tool call would write, and where."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class View:
    """One text that a tool call would add, with the paths it is for.

    `kind` is the family's kind (`edit`, `write`, `bash`, `read`, ...) or None for tools without a family.
    """

    paths: tuple[str, ...]
    text: str
    kind: str | None


@dataclass(frozen=True, slots=True)
class ViewDelta:
    """More text of view number `view` of a call. Paths and kind of a view are the same in all its deltas."""

    view: int
    paths: tuple[str, ...]
    kind: str | None
    text: str
