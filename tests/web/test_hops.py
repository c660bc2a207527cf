"""A proxy whose upstream leads back to it says so instead of asking itself for ever."""

from __future__ import annotations

import contextlib
import dataclasses
import socket
from collections.abc import AsyncIterator

import pytest
from multidict import CIMultiDict
from proxy_under_test import Workspace
from raw_http import RawUpstream, ask
from raw_http.messages import BODY, HEADERS

from ttsr_proxy.config import Upstreams
from ttsr_proxy.web.app import create_app
from ttsr_proxy.web.hops import HEADER, Hops
from ttsr_proxy.web.server import listen, make_runner


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.asynccontextmanager
async def proxy_of(workspace: Workspace, port: int, upstream: str) -> AsyncIterator[str]:
    settings = dataclasses.replace(
        workspace.settings(upstream), port=port, upstreams=Upstreams(anthropic=upstream, openai=upstream)
    )
    runner = make_runner(create_app(settings), drain_seconds=0.1)
    await runner.setup()
    try:
        yield await listen(runner, "127.0.0.1", port)
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions", "/v1/responses", "/v1/models"])
@pytest.mark.parametrize("watched", [True, False])
async def test_a_proxy_that_is_its_own_upstream_says_so(
    workspace: Workspace, path: str, watched: bool
) -> None:
    if watched:
        workspace.rule("no-bad-word", "BADWORD")
    port = free_port()
    async with proxy_of(workspace, port, f"http://127.0.0.1:{port}") as url:
        answer = await ask(url, "POST", path, *HEADERS, body=BODY)
    assert answer.status == 400
    assert b"leads back" in answer.body


async def test_two_proxies_in_a_circle_are_found(workspace: Workspace) -> None:
    one, two = free_port(), free_port()
    async with (
        proxy_of(workspace, one, f"http://127.0.0.1:{two}") as url,
        proxy_of(workspace, two, f"http://127.0.0.1:{one}"),
    ):
        answer = await ask(url, "POST", "/v1/messages", *HEADERS, body=BODY)
    assert answer.status == 400
    assert b"leads back" in answer.body


async def test_two_proxies_in_a_row_serve(workspace: Workspace, upstream: RawUpstream) -> None:
    one, two = free_port(), free_port()
    async with (
        proxy_of(workspace, one, f"http://127.0.0.1:{two}") as url,
        proxy_of(workspace, two, upstream.url),
    ):
        answer = await ask(url, "GET", "/v1/models")
    assert answer.status == 200
    assert len(upstream.received[0].all(HEADER)[0].split(",")) == 2


@pytest.mark.parametrize("host", ["api.anthropic.com", "api.openai.com"])
def test_the_public_apis_are_told_nothing(host: str) -> None:
    headers: CIMultiDict[str] = CIMultiDict()
    Hops().mark(headers, {}, f"https://{host}/v1/messages")
    assert not headers


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-upstream", "http://127.0.0.1:1"),
        ("x-ttsr-upstream", "http://127.0.0.1:1"),
        ("x-forwarded-host", "127.0.0.1:1"),
        ("host", "127.0.0.1:1"),
    ],
)
async def test_no_request_chooses_its_upstream(
    workspace: Workspace, upstream: RawUpstream, name: str, value: str
) -> None:
    async with proxy_of(workspace, free_port(), upstream.url) as url:
        for target in ("/v1/models", "//127.0.0.1:1/v1/models", "/v1/models?upstream=http://127.0.0.1:1"):
            assert (await ask(url, "GET", target, (name, value))).status == 200
    assert len(upstream.received) == 3
