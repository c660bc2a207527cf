"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `fail` is what keeps the proxy from doing its work."""

    level: Level
    what: str
    mend: str = ""
    """How to mend it; for `ok` there is nothing to mend."""


def ok(what: str) -> Finding:
    """Nothing to do."""
    return Finding("ok", what)


def warn(what: str, mend: str) -> Finding:
    """It works, but perhaps not as intended."""
    return Finding("warn", what, mend)


def fail(what: str, mend: str) -> Finding:
    """It does not work."""
    return Finding("fail", what, mend)
