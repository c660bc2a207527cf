"""The prose of a message or of a delta: which fields hold it, and how a piece of it is replaced.

`reasoning_content` (DeepSeek, vLLM, Qwen) and `reasoning` (OpenRouter, Ollama, newer vLLM) say the same.
Mistral's reasoning models write `content` as a list of typed parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ttsr_proxy.jsontext import JsonObject, JsonValue

REASONING_TEXTS = ("reasoning_content", "reasoning")
REASONING_FIELDS = (*REASONING_TEXTS, "reasoning_details")
"""`reasoning_details` (OpenRouter) has the same text once more, with the provider's signatures."""

FIELDS = frozenset((*REASONING_FIELDS, "content", "refusal"))


@dataclass(frozen=True, slots=True)
class Piece:
    """Some prose and the fields that say it."""

    kind: Literal["text", "thinking"]
    text: str
    fields: JsonObject
    refusal: bool = False


def pieces(delta: JsonObject) -> Iterator[Piece]:
    """The prose of a delta or a message, in the order in which it is said."""
    reasoning = {name: delta[name] for name in REASONING_FIELDS if delta.get(name)}
    if reasoning:
        yield Piece("thinking", reasoning_text(reasoning), reasoning)
    content = delta.get("content")
    if isinstance(content, str) and content:
        yield Piece("text", content, {"content": content})
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, dict):
                thinks = part.get("type") == "thinking"
                yield Piece("thinking" if thinks else "text", part_text(part), {"content": [part]})
    refusal = delta.get("refusal")
    if isinstance(refusal, str) and refusal:
        yield Piece("text", refusal, {"refusal": refusal}, refusal=True)


def reasoning_text(fields: JsonObject) -> str:
    """The reasoning that some fields hold; they repeat each other."""
    texts = (fields.get(name) for name in REASONING_TEXTS)
    return next((text for text in texts if isinstance(text, str) and text), "")


def part_text(part: JsonObject) -> str:
    """The prose of one typed part of a content; empty for an image and the like."""
    match part.get("type"):
        case "text":
            text = part.get("text")
        case "refusal":
            text = part.get("refusal")
        case "thinking":
            text = part.get("thinking")
        case _:
            return ""
    if isinstance(text, list):
        return "".join(part_text(inner) for inner in text if isinstance(inner, dict))
    return text if isinstance(text, str) else ""


def with_text(fields: JsonObject, text: str) -> JsonObject:
    """The fields of a piece with `text` in place of its own; what repeats the whole is left out."""
    return {
        name: _replaced(value, text)
        for name, value in fields.items()
        if name in FIELDS and name != "reasoning_details" and value
    }


def _replaced(value: JsonValue, text: str) -> JsonValue:
    if not isinstance(value, list):
        return text
    return [{"type": "thinking", "thinking": [text_part(text)]} if _thinks(value) else text_part(text)]


def _thinks(parts: list[JsonValue]) -> bool:
    return any(isinstance(part, dict) and part.get("type") == "thinking" for part in parts)


def text_part(text: str) -> JsonObject:
    """A plain part of a content."""
    return {"type": "text", "text": text}
