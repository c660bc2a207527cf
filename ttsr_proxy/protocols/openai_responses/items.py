"""Output and input items: which of their types rules look into, and where their texts stand.

https://platform.openai.com/docs/api-reference/responses/object has the types. A type that is not in these
tables is opaque: hosted tools (web search, code interpreter, ...) and whatever comes later pass untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ttsr_proxy.jsontext import JsonObject, JsonValue, encode
from ttsr_proxy.protocols.events import BlockKind, BlockStarted

Slot: TypeAlias = tuple[str, int]
"""A text of an item: the field that holds it, and its position when the field is a list of parts."""

SEPARATOR = "\n\n"
"""Stands between an item's texts, so that no match reaches from one part into the next."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A type of tool call that the client runs.

    `input` names the field that streams as its input. Without one, `rendered` makes the text that rules see
    of the complete item.
    """

    tool: str | None = None
    """The tool's name where the type implies it."""
    input: str | None = None
    rendered: Callable[[JsonObject], str] | None = None
    freeform: bool = False
    id: str = "call_id"


def _local_shell(item: JsonObject) -> str:
    return encode(_object(item.get("action"))).decode()


def _shell(item: JsonObject) -> str:
    commands = _object(item.get("action")).get("commands")
    lines = commands if isinstance(commands, list) else []
    return encode({"command": "\n".join(line for line in lines if isinstance(line, str))}).decode()


_PATCH_HEADERS = {"create_file": "Add File", "update_file": "Update File", "delete_file": "Delete File"}


def _apply_patch(item: JsonObject) -> str:
    operation = _object(item.get("operation"))
    header = _PATCH_HEADERS.get(text_of(operation, "type"), "Update File")
    head = f"*** Begin Patch\n*** {header}: {text_of(operation, 'path')}\n"
    return f"{head}{text_of(operation, 'diff')}\n*** End Patch"


def _computer(item: JsonObject) -> str:
    return encode({key: item[key] for key in ("action", "actions") if key in item}).decode()


_CALLS: Mapping[str, _Call] = {
    "function_call": _Call(input="arguments"),
    "custom_tool_call": _Call(input="input", freeform=True),
    "local_shell_call": _Call("local_shell", rendered=_local_shell),
    "shell_call": _Call("shell", rendered=_shell),
    "apply_patch_call": _Call("apply_patch", rendered=_apply_patch, freeform=True),
    "computer_call": _Call("computer", rendered=_computer),
    "mcp_approval_request": _Call(rendered=lambda item: text_of(item, "arguments"), id="id"),
}
_PROSE: Mapping[str, tuple[str, ...]] = {"message": ("content",), "reasoning": ("summary", "content")}
"""Types of prose and the fields whose parts hold it."""

_KINDS: Mapping[str, BlockKind] = {"message": "text", "reasoning": "thinking"}

_EMPTY: JsonObject = {"content": [], "summary": [], "arguments": "", "input": ""}


def kind_of(item: JsonObject) -> BlockKind:
    """What rules see in an output item."""
    name = item_type(item)
    return "tool" if name in _CALLS else _KINDS.get(name, "opaque")


def item_type(item: JsonObject) -> str:
    """The item's type; a message may leave it away."""
    name = item.get("type")
    if isinstance(name, str):
        return name
    return "message" if "role" in item else ""


def is_call(item: JsonObject) -> bool:
    return item_type(item) in _CALLS


def tool_name(item: JsonObject) -> str:
    """The name of the tool that a call is for."""
    call = _CALLS.get(item_type(item))
    return (call.tool if call else None) or text_of(item, "name")


def call_id(item: JsonObject) -> str:
    """By what the result of a call names it; empty if it has none."""
    call = _CALLS.get(item_type(item))
    return text_of(item, call.id) if call else ""


def call_input(item: JsonObject) -> str:
    """The whole input of a complete call, as rules see it."""
    call = _CALLS[item_type(item)]
    return call.rendered(item) if call.rendered else text_of(item, call.input or "")


def has_slot(item: JsonObject, field: str) -> bool:
    """Whether texts of the item stream in this field."""
    name = item_type(item)
    call = _CALLS.get(name)
    return field == call.input if call else field in _PROSE.get(name, ())


def texts(item: JsonObject, *, complete: bool) -> Iterator[tuple[Slot, str]]:
    """The item's texts; those that are made of the whole item only when it is `complete`."""
    name = item_type(item)
    call = _CALLS.get(name)
    if call is not None:
        if call.input is not None:
            yield (call.input, 0), text_of(item, call.input)
        elif complete:
            yield ("", 0), call_input(item)
        return
    for field in _PROSE.get(name, ()):
        parts = item.get(field)
        if isinstance(parts, str):
            yield (field, 0), parts
        for at, part in enumerate(parts if isinstance(parts, list) else ()):
            yield (field, at), part_text(part)


def prose(item: JsonObject) -> str:
    """The texts of a message or a reasoning item as one."""
    return SEPARATOR.join(text for _, text in texts(item, complete=True) if text)


def part_text(part: JsonValue) -> str:
    """The text of one content part: output, refusal, summary or reasoning."""
    if not isinstance(part, dict):
        return ""
    return text_of(part, "text") or text_of(part, "refusal")


def without_texts(item: JsonObject) -> JsonObject:
    """The item as it opens, before any text has come."""
    return {**item, **{key: empty for key, empty in _EMPTY.items() if key in item}}


def assembled(item: JsonObject, slots: Sequence[tuple[Slot, str]]) -> JsonObject:
    """An item that was never completed, with the texts that came."""
    value = dict(item)
    for field in _PROSE.get(item_type(item), ()):
        found = [text for slot, text in slots if slot[0] == field]
        if found:
            value[field] = [_part(field, item, text) for text in found]
    for (field, _), text in slots:
        if field in ("arguments", "input"):
            value[field] = text
    return value


def _part(field: str, item: JsonObject, text: str) -> JsonObject:
    if field == "summary":
        return {"type": "summary_text", "text": text}
    if item_type(item) == "reasoning":
        return {"type": "reasoning_text", "text": text}
    return {"type": "output_text", "text": text, "annotations": []}


def block_started(raw: bytes, index: int, item: JsonObject) -> BlockStarted:
    """The opening of an item as a protocol event."""
    kind = kind_of(item)
    is_tool = kind == "tool"
    call = _CALLS.get(item_type(item))
    return BlockStarted(
        raw,
        index,
        kind,
        tool=tool_name(item) if is_tool else None,
        call_id=call_id(item) or None if is_tool else None,
        value=item,
        freeform=call is not None and call.freeform,
    )


def text_of(value: JsonObject, key: str) -> str:
    """A string field; empty when it is absent or something else."""
    text = value.get(key)
    return text if isinstance(text, str) else ""


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}
