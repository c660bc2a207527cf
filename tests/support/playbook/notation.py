"""Requests and streams as short lines.

A request is one line for each message: `user: go | INTERRUPT(no-eval)`, its blocks set apart by bars. A text
stands for itself, `(hm)` is thinking, `Write {"a":1}` a call, `=ok` its result, `=!no` an error result.

A stream is written in order: `start` the opening, `text[` a block with what its deltas add up to, `]` its
end, `thinking[hm +signed]` with the API's signature and `+cut` with the proxy's, the stop reason, `stop` the
terminal event; `<ping>`, `<empty>` (a delta without text), `<tick>` (a stop reason of null), `<error KIND>`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

_ELEMENT = re.compile(r'<system-(interrupt|reminder) reason="rule_violation" rule="([^"]*)"')


def request_lines(body: dict[str, Any]) -> list[str]:
    """The messages of a request."""
    return [f"{message['role']}: {_blocks(message['content'])}" for message in body["messages"]]


def _blocks(content: Any) -> str:
    if isinstance(content, str):
        return _text(content)
    return " | ".join(_block(block) for block in content)


def _block(block: dict[str, Any]) -> str:
    match block["type"]:
        case "text":
            return _text(block["text"])
        case "thinking":
            return f"({block['thinking']})"
        case "tool_use":
            return f"{block['name']} {json.dumps(block['input'], separators=(',', ':'))}"
        case "tool_result":
            mark = "=!" if block.get("is_error") else "="
            content = block["content"]
            return mark + (content if isinstance(content, str) else _blocks(content))
        case kind:
            return f"<{kind}>"


def _text(text: str) -> str:
    elements = _ELEMENT.findall(text)
    if not elements:
        return text
    words = {"interrupt": "INTERRUPT", "reminder": "REMINDER"}
    return f"{words[elements[0][0]]}({', '.join(name for _, name in elements)})"


def stream_line(events: Sequence[dict[str, Any]]) -> str:
    """The events of a stream, or of a part of one."""
    line = "".join(map(_event, events))
    in_text = bool(events) and events[-1]["type"] in ("content_block_start", "content_block_delta")
    return line if in_text else line.rstrip()


def _event(event: dict[str, Any]) -> str:
    match event["type"]:
        case "message_start":
            return "start "
        case "content_block_start":
            block = event["content_block"]
            return f"{block.get('name') or block['type']}[{block.get('text') or ''}"
        case "content_block_delta":
            return _delta(event["delta"])
        case "content_block_stop":
            return "] "
        case "message_delta":
            return f"{event['delta']['stop_reason'] or '<tick>'} "
        case "message_stop":
            return "stop "
        case "error":
            return f"<error {event['error']['type']}> "
        case kind:
            return f"<{kind}> "


def _delta(delta: dict[str, Any]) -> str:
    match delta["type"]:
        case "text_delta":
            return delta["text"] or "<empty>"
        case "thinking_delta":
            return delta["thinking"] or "<empty>"
        case "input_json_delta":
            return str(delta["partial_json"])
        case "signature_delta":
            return " +cut" if delta["signature"].startswith("ttsr:") else " +signed"
        case kind:
            return f"<{kind}>"


def message_line(message: dict[str, Any]) -> str:
    """A complete answer, or an error, that was not streamed."""
    if message.get("type") == "error":
        return f"{message['error']['type']}: {message['error']['message']}"
    return f"{_blocks(message['content'])} | {message['stop_reason']}"
