"""Content blocks as history items: how they are compared, and the blocks that the proxy makes itself."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ttsr_proxy.jsontext import JsonObject, canonical
from ttsr_proxy.protocols.history import HistoryItem, ItemKind, Role

MARK_PREFIX = "ttsr:"
"""How the signature of thinking begins that the proxy cut off and closed itself; no real signature has it."""

_ITEM_KINDS: dict[str, ItemKind] = {
    "text": "text",
    "thinking": "thinking",
    "redacted_thinking": "thinking",
    "tool_use": "tool_call",
    "tool_result": "tool_result",
}
_PROSE_FIELDS = {"text": "text", "thinking": "thinking"}
"""Block type to the field that holds its prose."""

_SIGNED_FIELDS = {"thinking": "signature", "redacted_thinking": "data"}
"""Block type to the field that only the API can have made."""

_DEFAULTS: JsonObject = {"is_error": False, "citations": []}
"""Fields that some clients write out and others leave away when they have this value, or are null."""


def item_of_block(value: JsonObject, role: Role, message: int | None = None) -> HistoryItem:
    """The item of one content block."""
    block_type = value.get("type")
    name = block_type if isinstance(block_type, str) else ""
    return HistoryItem(role, _ITEM_KINDS.get(name, "other"), value, _text, message, _anchor(name, value))


def _text(value: JsonObject) -> str:
    block_type = value.get("type")
    field = _PROSE_FIELDS.get(block_type) if isinstance(block_type, str) else None
    prose = value.get(field) if field is not None else None
    return prose if isinstance(prose, str) else canonical(without_cache_marks(value))


def _anchor(block_type: str, value: JsonObject) -> str | None:
    if block_type == "tool_use":
        call_id = value.get("id")
        return f"call:{call_id}" if isinstance(call_id, str) and call_id else None
    signature = value.get(_SIGNED_FIELDS[block_type]) if block_type in _SIGNED_FIELDS else None
    if isinstance(signature, str) and signature:
        return f"sig:{hashlib.sha256(signature.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
    return None


def without_cache_marks(block: JsonObject) -> JsonObject:
    """The block without `cache_control`, its own and that of the blocks in its content."""
    block = _unmarked(block)
    inner = block.get("content")
    if not isinstance(inner, list) or not any(isinstance(part, dict) and _MARK in part for part in inner):
        return block
    return {**block, "content": [_unmarked(part) if isinstance(part, dict) else part for part in inner]}


_MARK = "cache_control"


def _unmarked(block: JsonObject) -> JsonObject:
    return {key: value for key, value in block.items() if key != _MARK} if _MARK in block else block


def chain_text(item: HistoryItem) -> str | None:
    """What identifies the item however a client re-serialises it; None when it does not count.

    Thinking does not count, since clients drop it, nor does empty text. A call is its name and id, since
    clients fill in its arguments' defaults.
    """
    if item.kind == "thinking":
        return None
    if item.kind == "text":
        return f"text {item.text}" if item.text else None
    if item.kind == "tool_call":
        return f"call {item.value.get('id')} {item.value.get('name')}"
    clean = {
        key: value
        for key, value in without_cache_marks(item.value).items()
        if value is not None and not (key in _DEFAULTS and value == _DEFAULTS[key])
    }
    if item.kind == "tool_result" and isinstance(clean.get("content"), str):
        clean["content"] = [text_block(clean["content"])]
    return canonical(clean)


def keep_marks(recorded: JsonObject, echoed: JsonObject) -> JsonObject:
    """The recorded block with the cache breakpoint that the client has set on its echo, and no other."""
    block = _unmarked(recorded)
    mark = echoed.get(_MARK)
    return block if mark is None else {**block, _MARK: mark}


def text_block(text: str) -> JsonObject:
    """A plain text block."""
    return {"type": "text", "text": text}


def tool_result_item(call_id: str, text: str, *, is_error: bool = True) -> HistoryItem:
    """The proxy's own answer to a tool call."""
    value = {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": is_error}
    return item_of_block(value, "user")


def with_input(value: JsonObject, arguments: JsonObject | str) -> JsonObject:
    """The call with other arguments; this API has no calls of plain text."""
    return {**value, "input": arguments}


def strip_marks(items: Sequence[HistoryItem]) -> tuple[HistoryItem, ...]:
    """`items` without the thinking that the proxy closed with its own mark, which the API would refuse."""
    return tuple(item for item in items if not _has_mark(item))


def _has_mark(item: HistoryItem) -> bool:
    signature = item.value.get("signature")
    return item.kind == "thinking" and isinstance(signature, str) and signature.startswith(MARK_PREFIX)


def without_thinking(items: Sequence[HistoryItem]) -> tuple[HistoryItem, ...]:
    """`items` without any thinking; a message that was nothing else is gone with it."""
    return tuple(item for item in items if item.kind != "thinking")
