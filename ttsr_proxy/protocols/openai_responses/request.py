"""Request bodies: split into history items, and written again from them.

What the proxy does not understand is written as it was read. Upstream, not the proxy, judges it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ttsr_proxy.jsontext import JsonObject, JsonValue, decode_object, encode
from ttsr_proxy.protocols.history import HistoryItem
from ttsr_proxy.protocols.openai_responses.history import item_of_block, role_of, written
from ttsr_proxy.protocols.openai_responses.instructions import with_suffix
from ttsr_proxy.protocols.openai_responses.items import item_type, text_of
from ttsr_proxy.protocols.request import ApiRequest

_LEAST_TOKENS = 16
"""The least `max_output_tokens` that the API accepts."""


def read_request(body: bytes, headers: Mapping[str, str]) -> ApiRequest | None:
    """The request in `body`; None if it is no JSON object or its input is not of a known shape."""
    parsed = decode_object(body)
    if parsed is None:
        return None
    given = _input(parsed)
    if given is None:
        return None
    return _inspect(parsed, given)


def _inspect(parsed: JsonObject, given: list[JsonObject]) -> ApiRequest:
    items = tuple(item_of_block(item, role_of(item), at) for at, item in enumerate(given))
    cap = parsed.get("max_output_tokens")
    return ApiRequest(
        body=parsed,
        model=text_of(parsed, "model"),
        stream=parsed.get("stream") is True,
        system=text_of(parsed, "instructions"),
        tools=tuple(_tool_names(parsed, given)),
        max_tokens=cap if type(cap) is int else None,
        structured_output=_wants_schema(parsed),
        choices=1,
        items=items,
        prefill=False,
        previous=text_of(parsed, "previous_response_id") or None,
        stored=parsed.get("store") is not False,
        observed=_observed(parsed, given),
    )


def write_request(
    request: ApiRequest,
    items: Sequence[HistoryItem],
    *,
    max_tokens: int | None = None,
    system_suffix: str | None = None,
) -> bytes:
    """The body of `request` with `items` as its input, continuing `request.previous`.

    `max_tokens` is a new cap; `system_suffix` is added to the instructions.
    """
    body = dict(request.body)
    body["input"] = written(items)
    if system_suffix:
        body["instructions"] = with_suffix(body.get("instructions"), system_suffix)
    if max_tokens is not None:
        body["max_output_tokens"] = max(max_tokens, _LEAST_TOKENS)
    if request.previous is not None:
        body["previous_response_id"] = request.previous
    else:
        body.pop("previous_response_id", None)
    return encode(body)


def _input(parsed: JsonObject) -> list[JsonObject] | None:
    given = parsed.get("input")
    if given is None:
        return []
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}] if given else []
    if isinstance(given, list) and all(isinstance(item, dict) for item in given):
        return given
    return None


def _tool_names(parsed: JsonObject, given: Sequence[JsonObject]) -> Iterator[str]:
    """The tools on offer; some agents put them into an input item, some into namespaces."""
    yield from _names(parsed.get("tools"))
    for item in given:
        if item_type(item) == "additional_tools":
            yield from _names(item.get("tools"))


def _names(tools: JsonValue) -> Iterator[str]:
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict):
            continue
        if isinstance(tool.get("tools"), list):
            yield from _names(tool["tools"])
        elif name := text_of(tool, "name") or text_of(tool, "type"):
            yield name


def _wants_schema(body: JsonObject) -> bool:
    text = body.get("text")
    wanted = text.get("format") if isinstance(text, dict) else None
    return isinstance(wanted, dict) and wanted.get("type", "text") != "text"


def _observed(parsed: JsonObject, given: Sequence[JsonObject]) -> str | None:
    """Why the answer can only be watched: upstream keeps the history itself, or makes no ordinary answer."""
    if parsed.get("background") is True:
        return "the response is made in the background"
    if parsed.get("conversation") is not None:
        return "the conversation is kept by upstream"
    if any(item_type(item) == "compaction_trigger" for item in given):
        return "compaction"
    return None
