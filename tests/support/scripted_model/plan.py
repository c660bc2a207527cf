"""What the model does in which turn, and how it does better once it has been reminded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from scripted_model.asked import Asked, read
from scripted_model.prose import in_prose
from scripted_model.steps import Part, Say

Step: TypeAlias = "tuple[Part, ...] | Callable[[Asked], tuple[Part, ...]]"
Plan: TypeAlias = Sequence[Step]


@dataclass(slots=True)
class Model:
    """Plays a plan: its first step until calls of one turn have results, then the second, and so on."""

    project: Path
    plan: Plan = ()
    prose: str | None = None
    """The format in which an agent without tools reads edits in text: `diff` or `whole`."""
    asked: list[Asked] = field(default_factory=list)
    """Every request of the conversation, in order."""

    def parts(self, body: dict[str, Any]) -> tuple[Asked, tuple[Part, ...]]:
        """What the model says to this request."""
        asked = read(body)
        if self.prose is None and not asked.tools:
            # the agent's own business, such as a title
            return asked, (Say("A title"),)
        self.asked.append(asked)
        step = self.plan[min(asked.answered, len(self.plan) - 1)]
        parts = step(asked) if callable(step) else step
        if self.prose is not None:
            parts = tuple(in_prose(part, self.prose) for part in parts)
        return asked, parts
