"""What must follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Expectation:
    """The next line of what the exchange does; None for no line at all."""

    line: tuple[str, Any] | None


def asked(*messages: str, after: float = 0.0) -> Expectation:
    """Upstream is asked with these messages, perhaps after a delay in seconds."""
    return Expectation(("asked", (list(messages), after)))


def aborted() -> Expectation:
    """The upstream call is closed."""
    return Expectation(("aborted", None))


def gets(stream: str) -> Expectation:
    """The client gets this part of the stream."""
    return Expectation(("gets", stream))


def replied(status: int, message: str) -> Expectation:
    """The client gets a complete response."""
    return Expectation(("replied", (status, message)))


def relayed() -> Expectation:
    """Upstream's answer passes through as it comes."""
    return Expectation(("relayed", None))


def checks(jobs: int) -> Expectation:
    """ast-grep is asked to do so many jobs; the test answers with `ast_answers`."""
    return Expectation(("checks", jobs))


def finished() -> Expectation:
    """The response ends in order."""
    return Expectation(("finished", None))


def broken() -> Expectation:
    """The client's connection breaks."""
    return Expectation(("broken", None))


def nothing() -> Expectation:
    """Nothing follows."""
    return Expectation(None)
