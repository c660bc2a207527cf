"""Errors in the API's shape. Types and their statuses: https://docs.claude.com/en/api/errors."""

from __future__ import annotations

from ttsr_proxy.jsontext import JsonObject, decode_object, encode

_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_TYPES = {status: error_type for error_type, status in _STATUSES.items()}


def error_object(status: int, message: str) -> JsonObject:
    """The error that the API would report with `status`."""
    general = "invalid_request_error" if 400 <= status < 500 else "api_error"
    return {"type": _TYPES.get(status, general), "message": message}


def error_envelope(error: JsonObject) -> JsonObject:
    """What carries an error, as an HTTP body and in a stream."""
    return {"type": "error", "error": error}


def error_body(error: JsonObject) -> bytes:
    """The HTTP body that carries `error`."""
    return encode(error_envelope(error))


def read_error(body: bytes) -> JsonObject | None:
    """The error object in an HTTP body; None when it has none."""
    parsed = decode_object(body)
    error = parsed.get("error") if parsed else None
    return error if isinstance(error, dict) else None


def error_status(error: JsonObject) -> int:
    """The HTTP status of an error that came inside a stream; 500 for an unknown type."""
    error_type = error.get("type")
    return _STATUSES.get(error_type, 500) if isinstance(error_type, str) else 500


def is_binding_error(error: JsonObject) -> bool:
    """Whether the API refuses a thinking block of the history: forged, unsigned, or bound to other messages.

    https://platform.claude.com/docs/en/build-with-claude/preserved-thinking gives the wording.
    """
    message = error.get("message")
    return isinstance(message, str) and "signature" in message and "thinking" in message
