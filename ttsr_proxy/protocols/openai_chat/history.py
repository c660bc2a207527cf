"""What a conversation consists of, as history items: how it is compared, and what the proxy adds itself.

A message of this API is no list of blocks, so its items are the values that make it up: a part of its
content, its reasoning (`{"type": "reasoning", ...}`), its refusal, each of its calls, or, for the result of
a tool, the whole message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ttsr_proxy.jsontext import JsonObject, canonical, decode_object, encode
from ttsr_proxy.protocols.history import HistoryItem, ItemKind, Role
from ttsr_proxy.protocols.openai_chat import calls
from ttsr_proxy.protocols.openai_chat.prose import part_text, reasoning_text, text_part

RESULT_ROLES = frozenset(("tool", "function"))

_PROSE: dict[str, ItemKind] = {
    "text": "text",
    "refusal": "text",
    "reasoning": "thinking",
    "thinking": "thinking",
}

_COUNTED_ID = re.compile(r".{0,7}|(.*[^0-9A-Za-z])?[0-9]{1,4}", re.DOTALL)
"""Ids that only count (`call_0`, `functions.Write:3`): another conversation has the same."""


def item_of_block(value: JsonObject, role: Role, message: int | None = None) -> HistoryItem:
    """The item of one value."""
    name = value.get("type")
    prose = _PROSE.get(name) if isinstance(name, str) else None
    if prose is not None:
        return HistoryItem(role, prose, value, _prose, message)
    result_role = value.get("role")
    if isinstance(result_role, str) and result_role in RESULT_ROLES:
        return HistoryItem(role, "tool_result", value, _unmarked, message)
    call = calls.call_of(value)
    if call is None:
        return HistoryItem(role, "other", value, _unmarked, message)
    unique = call.id and not _COUNTED_ID.fullmatch(call.id)
    return HistoryItem(role, "tool_call", value, _said, message, f"call:{call.id}" if unique else None)


def _prose(value: JsonObject) -> str:
    return reasoning_text(value) if value["type"] == "reasoning" else part_text(value)


def _unmarked(value: JsonObject) -> str:
    return canonical(without_cache_marks(value))


def _said(value: JsonObject) -> str:
    call = calls.call_of(value)
    return canonical(_comparable(call) if call is not None else value)


def _comparable(call: calls.CallPiece) -> JsonObject:
    """What a call says, without the spelling of its JSON."""
    said = call.arguments if call.form == "custom" else decode_object(call.arguments or "{}")
    return {"id": call.id, "name": call.name, "arguments": call.arguments if said is None else said}


def without_cache_marks(value: JsonObject) -> JsonObject:
    """The value without `cache_control`, which some servers take over from Anthropic's API."""
    clean = {name: part for name, part in value.items() if name != "cache_control"}
    content = clean.get("content")
    if isinstance(content, list):
        clean["content"] = [without_cache_marks(part) if isinstance(part, dict) else part for part in content]
    return clean


def keep_marks(recorded: JsonObject, echoed: JsonObject) -> JsonObject:
    """The recorded value with the cache breakpoint that the client has set on its echo, and no other."""
    block = {name: part for name, part in recorded.items() if name != "cache_control"}
    mark = echoed.get("cache_control")
    return block if mark is None else {**block, "cache_control": mark}


def chain_text(item: HistoryItem) -> str | None:
    """What identifies the item however a client re-serialises it; None when it does not count."""
    if item.kind == "thinking":
        return None
    if item.kind == "text":
        return f"text {item.text}" if item.text else None
    if item.kind == "tool_call":
        call = calls.call_of(item.value)
        return f"call {call.id} {call.name}" if call is not None else None
    if item.kind != "tool_result":
        return item.text
    content = item.value.get("content")
    texts = (
        [part_text(part) for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    )
    said = "".join(texts) if isinstance(content, list) else content
    return f"result {item.value.get('tool_call_id') or item.value.get('name')} {said}"


def text_block(text: str) -> JsonObject:
    """A plain part of a content."""
    return text_part(text)


def tool_result_item(call_id: str, text: str, *, is_error: bool = True) -> HistoryItem:
    """The proxy's own answer to a tool call. This API has no mark for an error."""
    return item_of_block({"role": "tool", "tool_call_id": call_id, "content": text}, "user")


def with_input(value: JsonObject, arguments: JsonObject | str) -> JsonObject:
    """The call with other arguments; a text is the whole input of a custom tool."""
    return calls.with_arguments(
        value, arguments if isinstance(arguments, str) else encode(arguments).decode()
    )


def strip_marks(items: Sequence[HistoryItem]) -> tuple[HistoryItem, ...]:
    """`items`: reasoning carries no marks here."""
    return tuple(items)


def without_thinking(items: Sequence[HistoryItem]) -> tuple[HistoryItem, ...]:
    """`items` without any reasoning."""
    return tuple(item for item in items if item.kind != "thinking")
