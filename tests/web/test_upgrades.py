"""Requests that want something else than HTTP from us get a clear answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from raw_http import RawUpstream, ask

WEBSOCKET = (
    ("Upgrade", "websocket"),
    ("Connection", "Upgrade"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ("Sec-WebSocket-Version", "13"),
)


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/realtime?model=x"])
async def test_a_websocket_is_answered_426_so_that_clients_fall_back(
    upstream: RawUpstream, start_proxy: Any, path: str
) -> None:
    proxy = await start_proxy()
    answer = await ask(proxy.url, "GET", path, *WEBSOCKET)
    assert answer.status == 426
    assert "WebSocket" in json.loads(answer.body)["error"]["message"]
    assert upstream.received == []


async def test_an_offer_to_speak_another_version_is_not_taken_and_the_request_passes(
    upstream: RawUpstream, start_proxy: Any
) -> None:
    """RFC 9110 section 7.8: a server may ignore `Upgrade`."""
    proxy = await start_proxy()
    h2c = (("Upgrade", "h2c"), ("Connection", "Upgrade, HTTP2-Settings"), ("HTTP2-Settings", "AAMAAABk"))
    answer = await ask(proxy.url, "POST", "/v1/files", *h2c, body=b"kept")
    assert answer.status == 200
    assert upstream.received[0].body == b"kept"
    assert not {"upgrade", "http2-settings"} & {name.lower() for name, _ in upstream.received[0].headers}


@pytest.mark.parametrize(
    ("method", "target"),
    [("GET", "http://api.example/v1/models"), ("POST", "http://api.example/p/x/v1/messages")],
)
async def test_a_client_that_takes_it_for_a_forward_proxy_is_told(
    upstream: RawUpstream, start_proxy: Any, method: str, target: str
) -> None:
    proxy = await start_proxy()
    answer = await ask(proxy.url, method, target)
    assert answer.status == 400
    assert "base URL" in json.loads(answer.body)["error"]["message"]
    assert upstream.received == []


async def test_connect_is_refused(upstream: RawUpstream, start_proxy: Any) -> None:
    proxy = await start_proxy()
    answer = await ask(proxy.url, "CONNECT", "api.example:443")
    assert answer.status == 404
    assert upstream.received == []
