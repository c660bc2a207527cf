"""Request bodies: what they ask for, and how they are written again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ttsr_proxy.jsontext import JsonObject, JsonValue, decode_object, encode
from ttsr_proxy.protocols.history import HistoryItem
from ttsr_proxy.protocols.openai_chat.calls import call_pieces
from ttsr_proxy.protocols.openai_chat.history import item_of_block
from ttsr_proxy.protocols.openai_chat.messages import ROLES, join, split
from ttsr_proxy.protocols.openai_chat.prose import text_part
from ttsr_proxy.protocols.request import ApiRequest

_CAPS = ("max_completion_tokens", "max_tokens")
"""The newer and the older name."""

_SCHEMAS = (
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "structured_outputs",
    "grammar",
    "format",
)
"""Fields by which vLLM, llama.cpp and Ollama take a schema besides `response_format`."""


def read_request(body: bytes, headers: Mapping[str, str]) -> ApiRequest | None:
    """The request in `body`; None if it is no JSON object with a list of messages. No header matters here."""
    parsed = decode_object(body)
    if parsed is None or not isinstance(parsed.get("messages"), list):
        return None
    return _inspect(parsed)


def _inspect(parsed: JsonObject) -> ApiRequest:
    messages = parsed["messages"]
    model, choices = parsed.get("model"), parsed.get("n")
    caps = (parsed[name] for name in _CAPS if type(parsed.get(name)) is int)
    last = messages[-1] if messages else None
    return ApiRequest(
        body=parsed,
        model=model if isinstance(model, str) else "",
        stream=parsed.get("stream") is True,
        # The system prompt is a message like the others.
        system="",
        tools=tuple(_tool_names(parsed)),
        max_tokens=min(caps, default=None),
        structured_output=_wants_schema(parsed),
        choices=choices if type(choices) is int and choices > 1 else 1,
        items=tuple(
            item_of_block(value, role, at)
            for at, message in enumerate(messages)
            for role, value in split(message)
        ),
        prefill=isinstance(last, dict) and last.get("role") == "assistant" and not call_pieces(last),
    )


def write_request(
    request: ApiRequest,
    items: Sequence[HistoryItem],
    *,
    max_tokens: int | None = None,
    system_suffix: str | None = None,
) -> bytes:
    """The body of `request` with `items` as its messages (see `messages.join`).

    `max_tokens` is a new cap. `system_suffix` goes to the end of the client's system prompt, the system
    messages at the very beginning, or becomes one.
    """
    body = dict(request.body)
    body["messages"] = join(body["messages"], items)
    if system_suffix:
        body["messages"] = _with_suffix(body["messages"], system_suffix)
    if max_tokens is not None:
        body.update((name, max(max_tokens, 1)) for name in _CAPS if type(body.get(name)) is int)
    return encode(body)


def _with_suffix(messages: list[JsonValue], suffix: str) -> list[JsonValue]:
    at = 0
    while at < len(messages) and _is_system(messages[at]):
        at += 1
    if at == 0:
        return [{"role": "system", "content": suffix}, *messages]
    last = messages[at - 1]
    content = last.get("content")
    longer = (
        [*content, text_part(suffix)]
        if isinstance(content, list)
        else f"{content or ''}\n\n{suffix}".lstrip()
    )
    return [*messages[: at - 1], {**last, "content": longer}, *messages[at:]]


def _is_system(message: JsonValue) -> bool:
    return isinstance(message, dict) and ROLES.get(str(message.get("role"))) == "system"


def _tool_names(body: JsonObject) -> Iterator[str]:
    tools = body.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        inner = (tool.get("function") or tool.get("custom")) if isinstance(tool, dict) else None
        name = inner.get("name") if isinstance(inner, dict) else None
        if isinstance(name, str):
            yield name
    older = body.get("functions")
    for function in older if isinstance(older, list) else ():
        name = function.get("name") if isinstance(function, dict) else None
        if isinstance(name, str):
            yield name


def _wants_schema(body: JsonObject) -> bool:
    wanted = body.get("response_format")
    if isinstance(wanted, dict) and wanted.get("type") != "text":
        return True
    return any(body.get(name) for name in _SCHEMAS)
