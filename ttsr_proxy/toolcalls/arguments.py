"""Patterns that name arguments: `file_path`, `edits[].newText`, `*path`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ttsr_proxy.toolcalls.json_stream import JsonPath

_SYNTAX = re.compile(r"[^\s.\[\]]+(?:\[\])*(?:\.[^\s.\[\]]+(?:\[\])*)*")
_SEGMENT = re.compile(r"\[\]|[^.\[\]]+")


@dataclass(frozen=True, slots=True)
class ArgumentPattern:
    """Where an argument stands: keys joined by dots, `[]` for every element of a list.

    Keys are compared without case; `*` in a key stands for any characters. Raises ValueError when `text` is
    not such a pattern.
    """

    text: str
    _segments: tuple[re.Pattern[str] | None, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if _SYNTAX.fullmatch(self.text) is None:
            raise ValueError(f"expected an argument such as 'path' or 'edits[].newText', got {self.text!r}")
        segments = (None if part == "[]" else wildcard(part) for part in _SEGMENT.findall(self.text))
        object.__setattr__(self, "_segments", tuple(segments))

    @property
    def scope_length(self) -> int:
        """How many steps of a matching location lead to the object that holds the argument."""
        keys = [n for n, segment in enumerate(self._segments) if segment is not None]
        return keys[-1]

    def matches(self, location: JsonPath) -> bool:
        """Whether the argument at `location` is one that the pattern names."""
        if len(location) != len(self._segments):
            return False
        return all(map(_step_matches, self._segments, location))

    def reaches(self, location: JsonPath) -> bool:
        """Whether a matching argument may stand in an object that also holds what is at `location`."""
        length = self.scope_length
        return len(location) > length and all(map(_step_matches, self._segments[:length], location))


def wildcard(text: str) -> re.Pattern[str]:
    """A pattern for whole names, without case, in which `*` stands for any characters."""
    return re.compile(".*".join(map(re.escape, text.split("*"))), re.IGNORECASE | re.DOTALL)


def _step_matches(segment: re.Pattern[str] | None, step: str | int) -> bool:
    if isinstance(step, int):
        return segment is None
    return segment is not None and segment.fullmatch(step) is not None
