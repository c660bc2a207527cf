"""What must hold of answers and upstream requests, as functions that explain themselves when it does not."""

from __future__ import annotations

import json
from typing import Any

from coding_agent import Answer
from strict_anthropic import Received

__all__ = ["assert_clean", "interrupts_in", "last_user_blocks", "reminders_in", "roles", "texts_of"]


def assert_clean(answer: Answer, forbidden: str) -> None:
    """A complete, successful answer in which the forbidden text is nowhere, not even split over events."""
    assert answer.status == 200, (answer.status, answer.raw[:500])
    assert answer.error is None, answer.error
    assert answer.complete, f"no terminal event after {answer.kinds}"
    assert forbidden not in answer.raw.decode()
    assert forbidden not in json.dumps(answer.blocks, ensure_ascii=False)
    assert forbidden not in answer.text
    assert answer.usage["input_tokens"] > 0
    assert answer.usage["output_tokens"] > 0


def roles(received: Received) -> list[str]:
    return [message["role"] for message in received.messages]


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def texts_of(received: Received, role: str) -> list[str]:
    """All text blocks of messages with a role, in order."""
    return [
        block["text"]
        for message in received.messages
        if message["role"] == role
        for block in _blocks(message["content"])
        if block["type"] == "text"
    ]


def last_user_blocks(received: Received) -> list[dict[str, Any]]:
    return _blocks([m for m in received.messages if m["role"] == "user"][-1]["content"])


def interrupts_in(received: Received) -> list[str]:
    """The hidden interrupts that upstream saw, in order."""
    return [text for text in texts_of(received, "user") if "<system-interrupt" in text]


def reminders_in(received: Received) -> list[str]:
    """The hidden reminders that upstream saw, in order."""
    return [text for text in texts_of(received, "user") if "<system-reminder" in text]
