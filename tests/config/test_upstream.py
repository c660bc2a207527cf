"""Upstream URLs."""

from __future__ import annotations

import pytest

from ttsr_proxy.config import checked_upstream, join_upstream


@pytest.mark.parametrize(
    ("base", "path_qs", "url"),
    [
        ("https://api.anthropic.com", "/v1/messages", "https://api.anthropic.com/v1/messages"),
        (
            "https://api.anthropic.com/",
            "/v1/messages?beta=true",
            "https://api.anthropic.com/v1/messages?beta=true",
        ),
        ("https://api.openai.com/v1", "/v1/responses", "https://api.openai.com/v1/responses"),
        ("https://api.openai.com/v1/", "/v1/responses", "https://api.openai.com/v1/responses"),
        ("https://api.openai.com/v1", "/v1?a=b", "https://api.openai.com/v1?a=b"),
        ("https://api.openai.com/v1", "/v1", "https://api.openai.com/v1"),
        ("https://api.openai.com/v1", "/responses", "https://api.openai.com/v1/responses"),
        ("https://host/v1", "/v1beta/models", "https://host/v1/v1beta/models"),
        ("https://host/apiv1", "/v1/messages", "https://host/apiv1/v1/messages"),
        ("https://host/v1/proxy", "/v1/messages", "https://host/v1/proxy/v1/messages"),
        ("http://127.0.0.1:9/gateway", "/v1/x%2Fy?q=%20", "http://127.0.0.1:9/gateway/v1/x%2Fy?q=%20"),
        ("https://host", "/", "https://host/"),
    ],
)
def test_a_base_stands_before_the_clients_path_with_one_v1(base: str, path_qs: str, url: str) -> None:
    # "https://host/apiv1" ends with the letters of /v1 but not with that segment.
    assert join_upstream(base, path_qs) == url


@pytest.mark.parametrize("url", ["https://host", "http://[::1]:8080/v1", "HTTPS://Host/v1/"])
def test_http_and_https_urls_are_upstreams(url: str) -> None:
    assert checked_upstream(url) == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host",
        "host:80",
        "https://",
        "https://host?x=1",
        "https://host/#top",
        "https://host:99999",
        "//host",
        "",
    ],
)
def test_anything_else_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"http|path|ort"):
        checked_upstream(url)


def test_credentials_in_an_upstream_url_are_refused_and_not_repeated() -> None:
    with pytest.raises(ValueError, match="credentials") as caught:
        checked_upstream("https://user:hunter2@host")
    assert "hunter2" not in str(caught.value)
