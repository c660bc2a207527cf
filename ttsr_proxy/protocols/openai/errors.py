"""Errors in the shape that OpenAI and the servers compatible with it use.

https://platform.openai.com/docs/guides/error-codes
"""

from __future__ import annotations

from ttsr_proxy.jsontext import JsonObject, JsonValue, decode_object, encode

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    503: "overloaded_error",
}
_STATUSES: dict[str, int] = {
    **{error_type: status for status, error_type in _TYPES.items()},
    "insufficient_quota": 429,
    "rate_limit_exceeded": 429,
    "tokens": 429,
    "requests": 429,
    "server_error": 500,
}
"""The words that stand in `type` or `code`, and the HTTP status that they come with."""


def error_object(status: int, message: str) -> JsonObject:
    """The error that the API would report with `status`."""
    general = "invalid_request_error" if 400 <= status < 500 else "server_error"
    return {"message": message, "type": _TYPES.get(status, general), "param": None, "code": None}


def error_envelope(error: JsonObject) -> JsonObject:
    """What carries an error, as an HTTP body and in a chat stream."""
    return {"error": error}


def error_body(error: JsonObject) -> bytes:
    """The HTTP body that carries `error`."""
    return encode(error_envelope(error))


def error_in(document: JsonObject) -> JsonObject | None:
    """The error object that a document carries; some servers write it as a plain sentence."""
    error = document.get("error")
    if isinstance(error, str) and error:
        return {"message": error}
    return error if isinstance(error, dict) and error else None


def read_error(body: bytes) -> JsonObject | None:
    """The error object in an HTTP body; None when it has none."""
    document = decode_object(body)
    return None if document is None else error_in(document)


def error_status(error: JsonObject) -> int:
    """The HTTP status of an error that came inside a stream; 500 for an unknown one."""
    return _status(error.get("code")) or _status(error.get("type")) or 500


def _status(word: JsonValue) -> int | None:
    # Routers such as OpenRouter put the HTTP status itself into `code`.
    if type(word) is int:
        return word if 400 <= word < 600 else None
    return _STATUSES.get(word) if isinstance(word, str) else None


def is_binding_error(error: JsonObject) -> bool:
    """Reasoning is bound to no history here, so no refusal is about that."""
    return False
