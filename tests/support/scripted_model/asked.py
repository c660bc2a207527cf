"""What a request says, whatever its protocol and its agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_REMINDERS = ("<system-interrupt reason=", "<system-reminder reason=")
_RESULTS = {"function_call_output", "custom_tool_call_output", "tool_search_output"}
_OUTPUT = {"reasoning", "function_call", "custom_tool_call"}


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the request offers."""

    name: str
    kind: str
    """`function`, or `custom` for one whose input is plain text."""
    declared: str
    """Its declaration as JSON: agents give tools of one name different arguments."""
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as the script sees it."""

    body: dict[str, Any]
    tools: tuple[Tool, ...]
    answered: int
    """Turns of the model whose calls have results."""
    told: int
    """Reminders of the proxy in the request."""
    text: str
    """The body as JSON."""

    def tool(self, *names: str) -> Tool | None:
        """The first of these names that is offered."""
        offered = {tool.name: tool for tool in self.tools}
        return next((offered[name] for name in names if name in offered), None)


def read(body: dict[str, Any]) -> Asked:
    """Read a request of any of the three APIs."""
    text = json.dumps(body, ensure_ascii=False)
    return Asked(
        body=body,
        tools=tuple(_tools(body)),
        answered=_answered(body),
        told=sum(text.count(mark) for mark in _REMINDERS),
        text=text,
    )


def _tools(body: dict[str, Any]) -> Iterator[Tool]:
    declared = list(body.get("tools") or [])
    for item in body.get("input") or []:
        # newer Codex models get their tools as an item of the input
        if isinstance(item, dict) and item.get("type") == "additional_tools":
            declared += item["tools"]
    for tool in declared:
        if tool.get("type") == "namespace":
            for inner in tool["tools"]:
                yield _tool(inner, tool["name"])
        else:
            yield _tool(tool, None)


def _tool(declared: dict[str, Any], namespace: str | None) -> Tool:
    function = declared.get("function", declared)
    name = function.get("name") or declared["type"]
    kind = "custom" if declared.get("type") == "custom" else "function"
    return Tool(name, kind, json.dumps(declared), namespace)


def _answered(body: dict[str, Any]) -> int:
    """Runs of results: the results of parallel calls are one run."""
    count, before = 0, False
    for item in body.get("messages") or body.get("input") or []:
        now = isinstance(item, dict) and _is_result(item)
        count += now and not before
        # what is not the model's own turn does not part results of one turn
        before = now or (before and not _is_models(item))
    return count


def _is_result(item: dict[str, Any]) -> bool:
    if item.get("role") == "tool" or item.get("type") in _RESULTS:
        return True
    content = item.get("content")
    return isinstance(content, list) and any(
        isinstance(block, dict) and block.get("type") == "tool_result" for block in content
    )


def _is_models(item: Any) -> bool:
    return isinstance(item, dict) and (
        item.get("role") == "assistant"
        or item.get("type") in {"reasoning", "function_call", "custom_tool_call"}
    )
