"""Messages as history items, and items as messages again.

What is not understood is written as it was read: unknown fields, roles and kinds of content, and whole
messages whose shape is not known. Upstream, not the proxy, judges them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ttsr_proxy.jsontext import JsonObject, JsonValue
from ttsr_proxy.protocols.history import HistoryItem, Role
from ttsr_proxy.protocols.openai_chat.calls import call_of, call_pieces
from ttsr_proxy.protocols.openai_chat.history import RESULT_ROLES
from ttsr_proxy.protocols.openai_chat.prose import REASONING_FIELDS, part_text, text_part

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}

_MADE_OF_ITEMS = frozenset(("content", "refusal", "tool_calls", "function_call", *REASONING_FIELDS))


def split(message: JsonValue) -> list[tuple[Role, JsonObject]]:
    """The values of one message; none when its shape is not known, which leaves the message as it is."""
    if not isinstance(message, dict):
        return []
    name = message.get("role")
    if not isinstance(name, str):
        return []
    if name in RESULT_ROLES:
        return [("user", message)]
    role = ROLES.get(name)
    content = _content(message.get("content"))
    if role is None or content is None:
        return []
    if role == "assistant":
        return [(role, value) for value in _assistant_values(message, content)]
    return [(role, part) for part in content]


def _content(content: JsonValue) -> list[JsonObject] | None:
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [text_part(content)]
    known = isinstance(content, list) and all(isinstance(part, dict) for part in content)
    return list(content) if known else None


def _assistant_values(message: JsonObject, content: list[JsonObject]) -> Iterator[JsonObject]:
    reasoning = {name: message[name] for name in REASONING_FIELDS if message.get(name)}
    if reasoning:
        yield {"type": "reasoning", **reasoning}
    yield from content
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        yield {"type": "refusal", "refusal": refusal}
    for call in call_pieces(message):
        yield call.entry


@dataclass(slots=True)
class _Group:
    """The items of one message to be written."""

    role: Role
    message: int | None
    values: list[JsonObject] = field(default_factory=list)
    result: bool = False
    """The result of a tool, which is a message of its own."""

    def takes(self, item: HistoryItem) -> bool:
        if self.result or item.kind == "tool_result" or item.role != self.role:
            return False
        return item.message is None or self.message is None or item.message == self.message


def _groups(items: Sequence[HistoryItem]) -> Iterator[_Group]:
    group: _Group | None = None
    for item in items:
        if group is None or not group.takes(item):
            if group is not None:
                yield group
            group = _Group(item.role, item.message, result=item.kind == "tool_result")
        if item.message is not None:
            group.message = item.message
        group.values.append(item.value)
    if group is not None:
        yield group


def join(messages: Sequence[JsonValue], items: Sequence[HistoryItem]) -> list[JsonValue]:
    """The messages that `items` make up.

    Items that stand together and have the same `message` and role are one message, which keeps the other
    fields of the client's message; an item without `message` joins the message of its role that it stands
    next to, else it begins a new one. Messages of the client that have no items keep their place.
    """
    originals = [[value for _, value in split(message)] for message in messages]
    itemless = [at for at, values in enumerate(originals) if not values]
    groups = list(_groups(items))
    ends = {group.message: at for at, group in enumerate(groups)}
    written: list[JsonValue] = []
    for at, group in enumerate(groups):
        while group.message is not None and itemless and itemless[0] < group.message:
            written.append(messages[itemless.pop(0)])
        if group.message is None:
            message = _written(group, {})
        elif group.values == originals[group.message]:
            message = messages[group.message]
        else:
            base = messages[group.message]
            # What else the client's message says goes with the last of what it is split into.
            message = _written(group, base if ends[group.message] == at else _plain(base))
        if message is not None:
            written.append(message)
    written.extend(messages[at] for at in itemless)
    return written


def _plain(message: JsonObject) -> JsonObject:
    return {name: message[name] for name in ("role", "name", *_MADE_OF_ITEMS) if name in message}


def _written(group: _Group, base: JsonObject) -> JsonObject | None:
    if group.result:
        return group.values[0]
    if group.role == "assistant":
        return _assistant(group.values, base)
    content = base.get("content")
    if not isinstance(content, list) and all(value.get("type") == "text" for value in group.values):
        return {"role": group.role, **base, "content": "\n\n".join(map(part_text, group.values))}
    return {"role": group.role, **base, "content": group.values}


def _assistant(values: Sequence[JsonObject], base: JsonObject) -> JsonObject | None:
    message = {name: part for name, part in base.items() if name not in _MADE_OF_ITEMS}
    message = {"role": "assistant", **message}
    thinking = [value for value in values if value.get("type") == "reasoning"]
    calls = [value for value in values if call_of(value) is not None]
    content = [value for value in values if value not in thinking and value not in calls]
    message["content"] = _assistant_content(content, base, message, empty=None if calls else "")
    # Servers differ in whether they take reasoning back; the client knows what its server wants.
    for name in REASONING_FIELDS:
        if base.get(name) and (said := [value[name] for value in thinking if value.get(name)]):
            message[name] = _joined(said)
    for call in calls:
        if "function_call" in call:
            message["function_call"] = call["function_call"]
        else:
            message.setdefault("tool_calls", []).append(call)
    return message if content or calls else None


def _joined(said: list[JsonValue]) -> JsonValue:
    if all(isinstance(one, str) for one in said):
        return "".join(said)
    return [part for one in said for part in one] if all(isinstance(one, list) for one in said) else said[0]


def _assistant_content(
    content: list[JsonObject], base: JsonObject, message: JsonObject, *, empty: str | None
) -> JsonValue:
    if isinstance(base.get("content"), list) or any(
        value.get("type") not in ("text", "refusal") for value in content
    ):
        return content or empty
    refusals = [part_text(value) for value in content if value.get("type") == "refusal"]
    if refusals:
        message["refusal"] = "".join(refusals)
    texts = [part_text(value) for value in content if value.get("type") == "text"]
    return "".join(texts) if texts else ("" if base.get("content") == "" else None if refusals else empty)
