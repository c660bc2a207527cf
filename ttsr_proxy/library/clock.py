"""The time as it stands in the library's files."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> str:
    """The time in UTC, to the second: `2026-01-02T03:04:05Z`."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
