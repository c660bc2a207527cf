"""Signed thinking: a block carries proof of its own content, of what came before, of the thinking before it.

A signature is `id.prev.content.prefix`, made printable. `content` covers the block, `prefix` the canonical
system, tools and earlier messages without thinking, `prev` is the id of the thinking block before it, so that
leaving thinking out at the start or the end goes unnoticed and leaving it out in the middle does not.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
from dataclasses import dataclass
from typing import Any

from strict_anthropic.canonical import THINKING_TYPES, merged, prefix_text

_KEY = b"strict upstream"
_ids = itertools.count(1)
_NONE = "0"


@dataclass(frozen=True, slots=True)
class Signature:
    """The parts of a signature."""

    id: str
    prev: str
    content: str
    prefix: str


def _mac(*parts: str) -> str:
    return hmac.new(_KEY, "\0".join(parts).encode(), hashlib.sha256).hexdigest()[:24]


def _content_mac(id_: str, kind: str, text: str, prev: str, prefix: str) -> str:
    return _mac("content", id_, kind, text, prev, prefix)


def thinking_of(block: dict[str, Any]) -> tuple[str, Any]:
    """The text that a thinking block shows and the signature it carries."""
    if block.get("type") == "redacted_thinking":
        return "", block.get("data")
    return block.get("thinking", ""), block.get("signature")


def sign(kind: str, text: str, prefix: str, prev: str | None) -> str:
    """The signature of a new block after the given canonical prefix and the thinking block with id `prev`."""
    id_, before, digest = f"t{next(_ids)}", prev or _NONE, _mac("prefix", prefix)
    parts = [id_, before, _content_mac(id_, kind, text, before, digest), digest]
    return base64.b64encode(".".join(parts).encode()).decode()


def read(signature: Any) -> Signature | None:
    """The parts of a signature, None when it is not one of ours."""
    if not isinstance(signature, str) or not signature:
        return None
    try:
        parts = base64.b64decode(signature, validate=True).decode("ascii").split(".")
    except ValueError:
        return None
    return Signature(*parts) if len(parts) == 4 else None


def last_thinking_id(body: dict[str, Any]) -> str | None:
    """The id of the last thinking block of a request."""
    found = None
    for message in merged(body.get("messages") or []):
        for block in message["content"]:
            if block.get("type") in THINKING_TYPES:
                signature = read(thinking_of(block)[1])
                found = signature.id if signature else found
    return found


def is_genuine(block: dict[str, Any]) -> bool:
    """The block is byte for byte one that was signed here."""
    text, raw = thinking_of(block)
    found = read(raw)
    if found is None:
        return False
    made = _content_mac(found.id, str(block["type"]), text, found.prev, found.prefix)
    return hmac.compare_digest(found.content, made)


def misplaced(body: dict[str, Any]) -> list[tuple[int, int]]:
    """(merged message, block) of each genuine thinking block that stands in another conversation."""
    wrong: list[tuple[int, int]] = []
    previous: str | None = None
    for position, message in enumerate(merged(body.get("messages") or [])):
        thinking = [(i, b) for i, b in enumerate(message["content"]) if b.get("type") in THINKING_TYPES]
        if not thinking:
            continue
        prefix = _mac("prefix", prefix_text(body, position))
        for index, block in thinking:
            signature = read(thinking_of(block)[1])
            if signature is None:
                continue
            if signature.prefix != prefix or (previous is not None and signature.prev != previous):
                wrong.append((position, index))
            previous = signature.id
    return wrong
