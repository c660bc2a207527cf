"""What a model does in a turn, in words that fit every agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Say:
    text: str


@dataclass(frozen=True, slots=True)
class Think:
    text: str


@dataclass(frozen=True, slots=True)
class Read:
    path: str
    """Relative to the project, as all paths here."""


@dataclass(frozen=True, slots=True)
class Write:
    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the whole line `old` by the line `new`."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Shell:
    command: str


@dataclass(frozen=True, slots=True)
class Spawn:
    """Give a task to a sub-agent."""

    prompt: str


Call: TypeAlias = Read | Write | Edit | Shell | Spawn
Part: TypeAlias = Say | Think | Call
