from __future__ import annotations

import json
from typing import Any

import pytest

from ttsr_proxy.protocols.anthropic.errors import (
    error_body,
    error_object,
    error_status,
    is_binding_error,
    read_error,
)


@pytest.mark.parametrize(
    ("status", "error_type"),
    [
        (400, "invalid_request_error"),
        (413, "request_too_large"),
        (418, "invalid_request_error"),
        (502, "api_error"),
        (529, "overloaded_error"),
    ],
)
def test_an_error_of_the_proxys_own_has_the_apis_shape(status: int, error_type: str) -> None:
    error = error_object(status, "why")
    assert json.loads(error_body(error)) == {"type": "error", "error": {"type": error_type, "message": "why"}}
    assert read_error(error_body(error)) == error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"type": "overloaded_error"}, 529),
        ({"type": "rate_limit_error"}, 429),
        ({"type": "new_error"}, 500),
        ({"type": []}, 500),
        ({}, 500),
    ],
)
def test_an_error_from_a_stream_has_an_http_status(error: dict[str, Any], status: int) -> None:
    assert error_status(error) == status


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'{"error":"x"}'])
def test_a_body_without_an_error_object_has_none(body: bytes) -> None:
    assert read_error(body) is None


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Invalid `signature` in `thinking` block. The block is bound to a different conversation", True),
        ("messages.1.content.0.thinking.signature: Field required", True),
        ("messages: text content blocks must be non-empty", False),
        (None, False),
    ],
)
def test_refused_thinking_is_told_from_other_errors(message: Any, expected: bool) -> None:
    assert is_binding_error({"type": "invalid_request_error", "message": message}) is expected
