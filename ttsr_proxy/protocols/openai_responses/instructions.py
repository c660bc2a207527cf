"""A request's instructions with what the proxy adds to them, and an answer that repeats them without it."""

from __future__ import annotations

from ttsr_proxy.jsontext import JsonObject, JsonValue
from ttsr_proxy.protocols.request import ApiRequest


def with_suffix(own: JsonValue, suffix: str) -> str:
    """The client's instructions, if any, with a paragraph behind them."""
    return f"{own}\n\n{suffix}" if isinstance(own, str) and own else suffix


def as_asked(response: JsonObject, request: ApiRequest, suffix: str) -> JsonObject:
    """The response with the instructions that the client gave; the very same object where they are."""
    own = request.body.get("instructions")
    if not suffix or response.get("instructions") != with_suffix(own, suffix):
        return response
    return {**response, "instructions": own}
