"""Web pages cannot use the proxy's own endpoints; the agent's traffic is nobody's page."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from proxy_under_test import Workspace, listening
from raw_http import RawUpstream, ask

from ttsr_proxy.web.app import create_app
from ttsr_proxy.web.server import make_runner

OWN = ["/ttsr/api/interrupts", "/healthz", "/ttsr/api/interrupts/x"]


@pytest.mark.parametrize("path", OWN)
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8787", "127.0.0.1.evil.example", "[::2]:80", ""]
)
async def test_a_name_that_was_made_to_point_here_is_refused(
    start_proxy: Any, upstream: RawUpstream, path: str, host: str
) -> None:
    proxy = await start_proxy()
    answer = await ask(proxy.url, "GET", path, ("Host", host))
    assert answer.status == 421
    assert upstream.received == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8787", "localhost", "LocalHost:1", "[::1]:8787", "agent.localhost"]
)
async def test_local_names_are_answered(start_proxy: Any, host: str) -> None:
    proxy = await start_proxy()
    assert (await ask(proxy.url, "GET", "/healthz", ("Host", host))).status == 200


async def test_pages_of_other_origins_are_refused_and_its_own_are_not(start_proxy: Any) -> None:
    proxy = await start_proxy()
    for origin, status in (("https://evil.example", 403), ("null", 403), (proxy.url, 200)):
        answer = await ask(proxy.url, "GET", "/ttsr/api/interrupts", ("Origin", origin))
        assert answer.status == status


async def test_the_agent_s_traffic_may_have_any_host_and_origin(
    start_proxy: Any, upstream: RawUpstream
) -> None:
    proxy = await start_proxy()
    answer = await ask(
        proxy.url, "GET", "/v1/models", ("Host", "proxy.internal"), ("Origin", "vscode-file://x")
    )
    assert answer.status == 200
    assert upstream.received[0].all("origin") == ["vscode-file://x"]


async def test_on_another_address_any_host_is_answered(workspace: Workspace, upstream: RawUpstream) -> None:
    settings = dataclasses.replace(workspace.settings(upstream.url), host="0.0.0.0")
    runner = make_runner(create_app(settings), drain_seconds=0.1)
    async with listening(runner) as url:
        assert (await ask(url, "GET", "/healthz", ("Host", "ttsr.internal"))).status == 200
