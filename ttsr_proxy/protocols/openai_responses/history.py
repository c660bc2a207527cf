"""Input items as history items: how they are compared, and the items that the proxy makes itself.

An item of the API is one history item. The proxy's own texts and call results (types `text` and
`call_output`) get their final form when they are written, since that depends on who speaks and on the call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence

from ttsr_proxy.jsontext import JsonObject, JsonValue, canonical, decode_object, encode
from ttsr_proxy.protocols.history import HistoryItem, ItemKind, Role
from ttsr_proxy.protocols.openai_responses.items import call_id, is_call, item_type, prose, text_of, tool_name

_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}
_TYPE_ROLES: dict[str, Role] = {
    "additional_tools": "system",
    "configuration_update": "system",
    "compaction_trigger": "user",
    "mcp_approval_response": "user",
}
"""Roles of items without `role` that the model has not made; `*_output` items are the user's, too."""

_REFERENCE_KINDS: dict[str, ItemKind] = {
    "msg": "text",
    "rs": "thinking",
    "fc": "tool_call",
    "ctc": "tool_call",
}
"""What an item reference stands for, by the prefix of its id."""

_TEXT_PARTS = frozenset(("input_text", "output_text", "text", "refusal"))
_UNCOMPARED = frozenset(("id", "status", "created_by"))
"""Fields that clients keep or drop as they like."""


def role_of(item: JsonObject) -> Role:
    """Who speaks in an input item."""
    role = item.get("role")
    if isinstance(role, str):
        return _ROLES.get(role, "user")
    name = item_type(item)
    if name in _TYPE_ROLES:
        return _TYPE_ROLES[name]
    return "user" if name.endswith("_output") else "assistant"


def item_of_block(value: JsonObject, role: Role, message: int | None = None) -> HistoryItem:
    """The history item of an input or output item."""
    kind = _kind(value)
    item_id = text_of(value, "id")
    return HistoryItem(
        role=role,
        kind=kind,
        value=value,
        comparable=_text,
        message=message,
        anchor=_anchor(value, kind),
        alias=f"item:{item_id}" if item_id else None,
    )


def _kind(value: JsonObject) -> ItemKind:
    name = item_type(value)
    if name == "text" or (name == "message" and _is_text(value.get("content"))):
        return "text"
    if name == "reasoning":
        return "thinking"
    if is_call(value):
        return "tool_call"
    if name == "item_reference":
        return _REFERENCE_KINDS.get(text_of(value, "id").partition("_")[0], "other")
    return "tool_result" if name.endswith("_output") else "other"


def _is_text(content: JsonValue) -> bool:
    if isinstance(content, str):
        return True
    return isinstance(content, list) and all(
        isinstance(part, dict) and text_of(part, "type") in _TEXT_PARTS for part in content
    )


def _text(value: JsonObject) -> str:
    kind = _kind(value)
    if kind == "text":
        return text_of(value, "text") if item_type(value) == "text" else prose(value)
    if kind == "thinking":
        return prose(value)
    compared = {key: part for key, part in value.items() if key not in _UNCOMPARED and part is not None}
    if kind == "tool_call" and (arguments := decode_object(text_of(value, "arguments"))) is not None:
        compared["arguments"] = arguments
    return canonical(compared)


def _anchor(value: JsonObject, kind: ItemKind) -> str | None:
    if called := call_id(value):
        return f"call:{called}"
    encrypted = text_of(value, "encrypted_content")
    if kind == "thinking" and encrypted:
        return f"sig:{hashlib.sha256(encrypted.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
    item_id = text_of(value, "id")
    return f"item:{item_id}" if item_id else None


def chain_text(item: HistoryItem) -> str | None:
    """What identifies the item however a client re-serialises it; None when it does not count.

    Reasoning does not count, since clients drop it, nor does empty text. A call is its name and id.
    """
    if item.kind == "thinking":
        return None
    if item.kind == "text":
        return f"text {item.text}" if item.text else None
    if item.kind == "tool_call":
        return f"call {call_id(item.value)} {tool_name(item.value)}"
    if item.kind == "tool_result" and _is_text(item.value.get("output")):
        output = prose({"type": "message", "content": item.value["output"]})
        return f"result {text_of(item.value, 'call_id')} {output}"
    return item.text


def keep_marks(recorded: JsonObject, echoed: JsonObject) -> JsonObject:
    """The recorded item: the API has no cache marks."""
    return recorded


def text_block(text: str) -> JsonObject:
    """A text of the proxy's own, to be written as a message."""
    return {"type": "text", "text": text}


def written(items: Sequence[HistoryItem]) -> list[JsonObject]:
    """The items as a request carries them."""
    calls = {call_id(item.value): item_type(item.value) for item in items if item.kind == "tool_call"}
    return [_written(item, calls) for item in items]


def _written(item: HistoryItem, calls: Mapping[str, str]) -> JsonObject:
    value = item.value
    name = item_type(value)
    if name == "text":
        part = "output_text" if item.role == "assistant" else "input_text"
        content = [{"type": part, "text": text_of(value, "text")}]
        return {"type": "message", "role": item.role, "content": content}
    if name == "call_output":
        called, text = text_of(value, "call_id"), text_of(value, "output")
        form = _OUTPUT_FORMS.get(calls.get(called, ""), _OUTPUT_FORMS["function_call"])
        return form(called, text)
    return value


_OUTPUT_FORMS: dict[str, Callable[[str, str], JsonObject]] = {
    "function_call": lambda called, text: {
        "type": "function_call_output",
        "call_id": called,
        "output": text,
    },
    "custom_tool_call": lambda called, text: {
        "type": "custom_tool_call_output",
        "call_id": called,
        "output": text,
    },
    "local_shell_call": lambda called, text: {
        "type": "local_shell_call_output",
        "call_id": called,
        "output": text,
    },
    "shell_call": lambda called, text: {
        "type": "shell_call_output",
        "call_id": called,
        "output": [{"stdout": "", "stderr": text, "outcome": {"type": "exit", "exit_code": 1}}],
    },
    "apply_patch_call": lambda called, text: {
        "type": "apply_patch_call_output",
        "call_id": called,
        "status": "failed",
        "output": text,
    },
    "mcp_approval_request": lambda called, text: {
        "type": "mcp_approval_response",
        "approval_request_id": called,
        "approve": False,
        "reason": text,
    },
}
"""The result of the proxy's own for each type of call."""


def tool_result_item(call_id: str, text: str, *, is_error: bool = True) -> HistoryItem:
    """The proxy's own answer to a tool call. The API has no mark for an error that every type of call has."""
    return item_of_block({"type": "call_output", "call_id": call_id, "output": text}, "user")


def with_input(value: JsonObject, arguments: JsonObject | str) -> JsonObject:
    """The call with other input; a call whose input is no text (shell, patch) becomes a function call."""
    text = arguments if isinstance(arguments, str) else encode(arguments).decode()
    if item_type(value) in ("function_call", "custom_tool_call"):
        field = "input" if item_type(value) == "custom_tool_call" else "arguments"
        return {**value, "status": "completed", field: text}
    called = {"type": "function_call", "call_id": call_id(value), "name": tool_name(value)}
    return {**called, "arguments": text if isinstance(arguments, dict) else encode({"input": text}).decode()}


def strip_marks(items: Sequence[HistoryItem]) -> tuple[HistoryItem, ...]:
    """`items`: reasoning that the proxy cut is left open, so no client sends it back as complete."""
    return tuple(items)


def without_thinking(items: Sequence[HistoryItem]) -> tuple[HistoryItem, ...]:
    """`items` without reasoning. What followed it loses its id, by which upstream would ask for it."""
    if not any(item.kind == "thinking" for item in items):
        return tuple(items)
    return tuple(_without_id(item) for item in items if item.kind != "thinking")


def _without_id(item: HistoryItem) -> HistoryItem:
    if item.role != "assistant" or "id" not in item.value or item.kind not in ("text", "tool_call"):
        return item
    if item_type(item.value) == "item_reference":
        return item
    return item_of_block(nameless(item.value), item.role, item.message)


def nameless(value: JsonObject) -> JsonObject:
    """The item without its id."""
    return {key: part for key, part in value.items() if key != "id"}


def salvage(values: Sequence[JsonObject], cut: Collection[int]) -> list[JsonObject | None]:
    """The items of an answer that upstream never finished, as a request may carry them; None for none.

    Upstream does not know them by their ids. Reasoning counts only with its encrypted content, and only
    with the whole item that followed it; `cut` are the positions of items that are not whole. The work of a
    hosted tool has no form without its id, by which upstream would ask for the reasoning that led to it.
    Reasoning in several items stays or goes together.
    """
    kept: list[JsonObject | None] = []
    thoughts: list[JsonObject] = []
    for at, value in enumerate(values):
        if item_type(value) == "reasoning":
            thoughts.append(value)
            continue
        stay = at not in cut and all(text_of(thought, "encrypted_content") for thought in thoughts)
        kept.extend(thought if stay else None for thought in thoughts)
        if item_type(value) in ("message", "text") or is_call(value):
            kept.append(nameless(value))
        else:
            kept.append(value if stay else None)
        thoughts.clear()
    return [*kept, *(None for _ in thoughts)]
