"""What a model of a given name accepts: the differences between generations that a request can run into."""

from __future__ import annotations

import re

# family -> first version with the feature
_NO_PREFILL = {"opus": (4, 6), "sonnet": (4, 6), "haiku": (4, 6), "fable": (5, 0), "mythos": (5, 0)}
_SYSTEM_MESSAGES = {"opus": (4, 8), "sonnet": (5, 0), "haiku": (5, 5), "fable": (5, 0), "mythos": (5, 0)}
_BOUND_THINKING = {"opus": (5, 5), "sonnet": (5, 5), "haiku": (5, 5), "fable": (5, 1), "mythos": (5, 2)}


def version(model: str) -> tuple[int, int]:
    """Major and minor version: `claude-opus-4-5-20251101` is (4, 5), `claude-sonnet-5` is (5, 0)."""
    numbers = [int(part) for part in re.findall(r"(?<![0-9])[0-9]{1,2}(?![0-9])", model)][:2]
    return (numbers[0], numbers[1] if len(numbers) > 1 else 0) if numbers else (0, 0)


def _has(table: dict[str, tuple[int, int]], model: str) -> bool:
    return any(family in model and version(model) >= first for family, first in table.items())


def allows_prefill(model: str) -> bool:
    """The conversation may end with an assistant message that the model continues."""
    return not _has(_NO_PREFILL, model)


def allows_system_messages(model: str) -> bool:
    """`role: "system"` is known inside `messages`."""
    return _has(_SYSTEM_MESSAGES, model)


def binds_thinking(model: str) -> bool:
    """Thinking is signed over the exact conversation before it."""
    return _has(_BOUND_THINKING, model)
