"""The script in Anthropic Messages, for the strict upstream's `otherwise`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from strict_anthropic import Turn, text, thinking, tool, turn

from scripted_model.plan import Model
from scripted_model.steps import Say, Think
from scripted_model.tools import invocation


def as_turn(model: Model) -> Callable[[dict[str, Any]], Turn]:
    """The model's answers as turns of the strict upstream."""

    def answer(body: dict[str, Any]) -> Turn:
        asked, parts = model.parts(body)
        mode = body.get("thinking", {}).get("type")
        if mode == "enabled" and not isinstance(parts[0], Think):
            # in this mode a model always thinks first, and the API insists on it later
            parts = (Think("hm"), *parts)
        steps: list[Any] = []
        for part in parts:
            if isinstance(part, Say):
                steps.append(text(part.text))
            elif isinstance(part, Think):
                # a model that was not asked to think does not
                if mode in ("enabled", "adaptive"):
                    steps.append(thinking(part.text))
            else:
                call = invocation(part, asked, model.project)
                steps.append(tool(call.tool.name, call.arguments))
        return turn(*steps)

    return answer
