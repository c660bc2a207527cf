"""Which tools do what: the table that maps a tool's name and arguments to a kind, a path and added text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


class ToolFamilyError(ValueError):
    """A `toolFamilies` row of the configuration that cannot be used; the message names its key."""


@dataclass(frozen=True, slots=True)
class FamilyTable:
    """An ordered table of tool families; the first row that names a tool decides."""

    @classmethod
    def default(cls) -> FamilyTable:
        """The families known out of the box."""
        return cls()

    def with_custom(self, rows: Sequence[Mapping[str, object]]) -> FamilyTable:
        """This table with configured rows before its own. Raises ToolFamilyError naming the wrong key."""
        return self
