from __future__ import annotations

import json
from typing import Any

import pytest

from ttsr_proxy.protocols.openai.errors import (
    error_body,
    error_object,
    error_status,
    is_binding_error,
    read_error,
)


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (400, "invalid_request_error"),
        (418, "invalid_request_error"),
        (429, "rate_limit_error"),
        (502, "server_error"),
    ],
)
def test_an_error_of_the_proxy_reads_as_one_of_the_api(status: int, name: str) -> None:
    error = error_object(status, "no")
    assert error == {"message": "no", "type": name, "param": None, "code": None}
    assert read_error(error_body(error)) == error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"type": "server_error", "code": None}, 500),
        ({"code": "rate_limit_exceeded"}, 429),
        ({"code": 503, "type": "x"}, 503),
        ({"code": 7, "type": "invalid_request_error"}, 400),
        ({}, 500),
    ],
)
def test_an_error_inside_a_stream_has_the_status_that_fits(error: dict[str, Any], status: int) -> None:
    assert error_status(error) == status


@pytest.mark.parametrize("body", [b"", b"[]", b'{"error": null}', b'{"detail": "x"}'])
def test_a_body_without_an_error_has_none(body: bytes) -> None:
    assert read_error(body) is None


def test_an_error_that_is_a_plain_sentence_is_read() -> None:
    assert read_error(json.dumps({"error": "model not found"}).encode()) == {"message": "model not found"}


def test_no_refusal_is_about_bound_thinking() -> None:
    assert not is_binding_error({"message": "Invalid signature in thinking block"})
