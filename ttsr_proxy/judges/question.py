"""What a judge is asked and answers: yes/no questions about one thing, each with a probability."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ttsr_proxy.jsontext import JsonObject, canonical


@dataclass(frozen=True, slots=True)
class Question:
    """One yes/no question and what either answer means."""

    instructions: JsonObject
    if_true: str
    if_false: str

    @property
    def digest(self) -> str:
        """Equal for equal questions only, whoever's rules they are about: for answers that are kept."""
        text = canonical([self.instructions, self.if_true, self.if_false])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Answers:
    """A probability for each question in their order; None where there is no answer, and then why."""

    probabilities: tuple[float | None, ...]
    warning: str | None = None


class Judge(Protocol):
    """Never raises: what goes wrong is in the answers' warning, without credentials."""

    @property
    def name(self) -> str:
        """As the API's field `judge` has it."""

    async def ask(self, state: JsonObject, questions: Sequence[Question]) -> Answers:
        """The answers about one thing, described by `state`."""

    async def close(self) -> None:
        """Close its connections."""


class PassJudge:
    """Judges nothing, so that everything passes; `reason` says why."""

    name = "pass"

    def __init__(self, reason: str) -> None:
        self.reason = reason

    async def ask(self, state: JsonObject, questions: Sequence[Question]) -> Answers:
        return Answers((None,) * len(questions), self.reason)

    async def close(self) -> None:
        pass
