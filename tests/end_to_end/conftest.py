"""A strict upstream, a workspace, and proxies between them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from coding_agent import Agent
from proxy_under_test import Proxy, Workspace, running_proxy
from strict_anthropic import StrictUpstream, strict_upstream

StartProxy = Callable[..., Awaitable[Proxy]]
NewAgent = Callable[..., Awaitable[Agent]]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.fixture
async def upstream() -> AsyncIterator[StrictUpstream]:
    async with strict_upstream() as server:
        yield server


@pytest.fixture
async def start_proxy(workspace: Workspace, upstream: StrictUpstream) -> AsyncIterator[StartProxy]:
    """Start a proxy; keyword arguments are fields of `TtsrSettings`."""
    async with AsyncExitStack() as stack:

        async def start(upstream_url: str | None = None, **ttsr: Any) -> Proxy:
            return await stack.enter_async_context(
                running_proxy(workspace, upstream_url or upstream.url, **ttsr)
            )

        yield start


@pytest.fixture
async def new_agent() -> AsyncIterator[NewAgent]:
    """Make an agent that talks to a proxy; keyword arguments go to `Agent`."""
    async with AsyncExitStack() as stack:

        async def make(proxy: Proxy, **options: Any) -> Agent:
            options.setdefault("thinking", {"type": "adaptive"})
            return await stack.enter_async_context(Agent(proxy.url, **options))

        yield make
