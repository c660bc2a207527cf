"""Request bodies: split into history items, and written again from them.

What the proxy does not understand is written as it was read: unknown fields, unknown block types, and whole
messages whose shape is not known. Upstream, not the proxy, judges them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ttsr_proxy.jsontext import JsonObject, JsonValue, decode_object, encode
from ttsr_proxy.protocols.anthropic.history import item_of_block, text_block
from ttsr_proxy.protocols.history import HistoryItem, Role
from ttsr_proxy.protocols.request import ApiRequest

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}

_LEAST_THINKING = 1024
"""The least `thinking.budget_tokens` that the API accepts, in tokens."""


def read_request(body: bytes, headers: Mapping[str, str]) -> ApiRequest | None:
    """The request in `body`; None if it is no JSON object with a list of messages. No header matters here."""
    parsed = decode_object(body)
    if parsed is None or not isinstance(parsed.get("messages"), list):
        return None
    return _inspect(parsed)


def _inspect(parsed: JsonObject) -> ApiRequest:
    messages = parsed["messages"]
    items = tuple(
        item_of_block(block, role, at)
        for at, message in enumerate(messages)
        for role, block in _split(message)
    )
    model = parsed.get("model")
    cap = parsed.get("max_tokens")
    last = messages[-1] if messages else None
    return ApiRequest(
        body=parsed,
        model=model if isinstance(model, str) else "",
        stream=parsed.get("stream") is True,
        system=_system_text(parsed.get("system")),
        tools=tuple(_tool_names(parsed.get("tools"))),
        max_tokens=cap if type(cap) is int else None,
        structured_output=_wants_schema(parsed),
        choices=1,
        items=items,
        prefill=isinstance(last, dict) and last.get("role") == "assistant",
    )


def write_request(
    request: ApiRequest,
    items: Sequence[HistoryItem],
    *,
    max_tokens: int | None = None,
    system_suffix: str | None = None,
) -> bytes:
    """The body of `request` with `items` as its messages.

    Items that stand together and have the same `message` and role are one message, which keeps the other
    fields of the client's message; an item without `message` joins the message of its role that it stands
    next to, else it begins a new one. Messages of the client that have no items because their shape is
    unknown or they are empty keep their place. `max_tokens` is a new cap; a fixed thinking budget, which must
    be below it, shrinks with it. `system_suffix` becomes a last block of the system prompt, after the
    client's cache marks.
    """
    body = dict(request.body)
    body["messages"] = _join(body["messages"], items)
    if system_suffix:
        body["system"] = _with_suffix(body.get("system"), system_suffix)
    if max_tokens is not None:
        _cap(body, max_tokens)
    return encode(body)


def _split(message: JsonValue) -> list[tuple[Role, JsonObject]]:
    """The blocks of one message; none when its shape is not known, which leaves the message as it is."""
    if not isinstance(message, dict):
        return []
    name, content = message.get("role"), message.get("content")
    role = _ROLES.get(name) if isinstance(name, str) else None
    if role is None:
        return []
    if isinstance(content, str):
        return [(role, text_block(content))] if content else []
    if not isinstance(content, list):
        return []
    blocks = [(role, block) for block in content if isinstance(block, dict)]
    return blocks if len(blocks) == len(content) else []


@dataclass(slots=True)
class _Group:
    """The items of one message to be written."""

    role: Role
    message: int | None
    blocks: list[JsonObject] = field(default_factory=list)

    def takes(self, item: HistoryItem) -> bool:
        return item.role == self.role and (
            item.message is None or self.message is None or item.message == self.message
        )


def _groups(items: Sequence[HistoryItem]) -> Iterator[_Group]:
    group: _Group | None = None
    for item in items:
        if group is None or not group.takes(item):
            if group is not None:
                yield group
            group = _Group(item.role, item.message)
        if item.message is not None:
            group.message = item.message
        group.blocks.append(item.value)
    if group is not None:
        yield group


def _join(messages: Sequence[JsonValue], items: Sequence[HistoryItem]) -> list[JsonValue]:
    originals = [[block for _, block in _split(message)] for message in messages]
    itemless = [at for at, blocks in enumerate(originals) if not blocks]
    written: list[JsonValue] = []
    for group in _groups(items):
        while group.message is not None and itemless and itemless[0] < group.message:
            written.append(messages[itemless.pop(0)])
        # The API refuses text blocks without text; only what the client sent itself is left to fail.
        blocks = [block for block in group.blocks if not _is_blank(block)]
        if group.message is None:
            if blocks:
                written.append({"role": group.role, "content": blocks})
        elif group.blocks == originals[group.message]:
            written.append(messages[group.message])
        elif blocks:
            written.append({**messages[group.message], "content": blocks})
    written.extend(messages[at] for at in itemless)
    return written


def _is_blank(block: JsonObject) -> bool:
    text = block.get("text")
    return block.get("type") == "text" and isinstance(text, str) and not text.strip()


def _with_suffix(system: JsonValue, suffix: str) -> list[JsonValue]:
    if isinstance(system, list):
        return [*system, text_block(suffix)]
    own = [text_block(system)] if isinstance(system, str) and system else []
    return [*own, text_block(suffix)]


def _cap(body: JsonObject, max_tokens: int) -> None:
    thinking = body.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    cap = max(max_tokens, 1)
    if isinstance(thinking, dict) and type(budget) is int:
        cap = max(cap, _LEAST_THINKING + 1)
        if budget >= cap:
            body["thinking"] = {**thinking, "budget_tokens": cap - 1}
    body["max_tokens"] = cap


def _system_text(system: JsonValue) -> str:
    if isinstance(system, str):
        return system
    if not isinstance(system, list):
        return ""
    texts = (block.get("text") for block in system if isinstance(block, dict))
    return "\n\n".join(text for text in texts if isinstance(text, str))


def _tool_names(tools: JsonValue) -> Iterator[str]:
    for tool in tools if isinstance(tools, list) else ():
        name = tool.get("name") if isinstance(tool, dict) else None
        if isinstance(name, str):
            yield name


def _wants_schema(body: JsonObject) -> bool:
    config = body.get("output_config")
    formats = (
        config.get("format") if isinstance(config, dict) else None,
        body.get("output_format"),
        body.get("response_format"),
    )
    return any(isinstance(wanted, dict) and wanted.get("type") != "text" for wanted in formats)
