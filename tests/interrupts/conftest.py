"""Log records for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ttsr_proxy.interrupts.record import InterruptRecord


@pytest.fixture(scope="session")
def make_record() -> Callable[..., InterruptRecord]:
    """Makes a record of which only the given fields matter."""
    return _make


def _make(**changes: Any) -> InterruptRecord:
    fields: dict[str, Any] = {
        "id": "i1",
        "time": 1.0,
        "project": "project",
        "conversation": "conversation",
        "request": "request",
        "turn": 0,
        "attempt": 1,
        "client": "claude-code",
        "agent": "main",
        "model": "model",
        "protocol": "anthropic",
        "rule": "no-eval",
        "rule_path": "rules/no-eval.md",
        "trigger": "regex",
        "pattern": "eval",
        "source": "text",
        "tool": None,
        "paths": (),
        "matched": "eval",
        "before": "",
        "after": "",
        "action": "interrupted",
        "outcome": "pending",
    }
    return InterruptRecord(**{**fields, **changes})
