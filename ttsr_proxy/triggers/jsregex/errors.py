"""The one error this package raises."""

from __future__ import annotations


class PatternError(ValueError):
    """A condition that cannot be compiled: what is wrong, and at which character (counted from 0)."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(f"{message} at position {position}")
        self.message = message
        self.position = position
