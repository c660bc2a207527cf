"""Where output is matched, and what a match says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ttsr_proxy.rules.model import Rule

Source: TypeAlias = Literal["text", "thinking", "tool"]


@dataclass(frozen=True, slots=True)
class StreamContext:
    """Which stream a text belongs to.

    Paths are as the tool call names them; they are normalised before they meet a glob. `kind` (`edit`,
    `write`, `bash`, ...) is set by tool families only and never derived from `tool`.
    """

    source: Source
    tool: str | None = None
    paths: tuple[str, ...] = ()
    kind: str | None = None

    def __post_init__(self) -> None:
        if self.source not in ("text", "thinking", "tool"):
            raise ValueError(f"source must be 'text', 'thinking' or 'tool', not {self.source!r}")
        object.__setattr__(self, "paths", tuple(self.paths))


@dataclass(frozen=True, slots=True)
class Match:
    """One rule's first match in one block: offsets count characters of the block's text."""

    rule: Rule
    trigger: Literal["regex", "ast"]
    pattern: str
    """The condition as its author wrote it."""
    start: int
    end: int
