"""Rules for tests."""

from __future__ import annotations

from typing import Any

from ttsr_proxy.rules.model import Rule

EVERYWHERE = ("text", "thinking", "tool")


def rule(name: str, condition: str | None = None, **fields: Any) -> Rule:
    """A rule that watches everything unless `scope` says otherwise; `fields` are those of `Rule`."""
    given: dict[str, Any] = {
        "path": f"rules/{name}.md",
        "content": f"The text of {name}.",
        "condition": None if condition is None else (condition,),
        "scope": EVERYWHERE,
        **fields,
    }
    return Rule(name, **given)
