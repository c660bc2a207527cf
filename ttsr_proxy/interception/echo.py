"""A model that repeats its reminder does not break the rule again.

A match in prose is exempt only if it stands, with its whole line of at least 40 characters, verbatim in a
reminder of this history. Whether it does is known when the line is complete.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ttsr_proxy.triggers.match import Match

MIN_LINE = 40

_LINE_ENDS = "\n\r\u2028\u2029"


class Exemptions:
    """`reminders` are the texts of all reminders that the model has seen in this conversation."""

    def __init__(self, reminders: Iterable[str]) -> None:
        self._lines = {
            stripped
            for text in reminders
            for line in text.splitlines()
            if len(stripped := line.strip()) >= MIN_LINE
        }

    def add(self, reminder: str) -> None:
        self._lines |= Exemptions((reminder,))._lines

    def judge(self, match: Match, text: str, *, complete: bool) -> tuple[Literal["no", "yes", "wait"], int]:
        """Whether a match in prose is exempt, and where its line ends. `complete`: no text follows."""
        if not self._lines:
            return "no", match.end
        start = max(text.rfind(end, 0, match.start) for end in _LINE_ENDS) + 1
        if any(end in text[match.start : match.end] for end in _LINE_ENDS):
            return "no", match.end
        ends = [at for end in _LINE_ENDS if (at := text.find(end, match.end)) >= 0]
        end = min(ends, default=len(text))
        line = text[start:end]
        if ends or complete:
            return ("yes" if line.strip() in self._lines else "no"), end
        begun = line.lstrip()
        return ("wait" if any(known.startswith(begun.rstrip()) for known in self._lines) else "no"), end
