"""A raw upstream and proxies in front of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from proxy_under_test import Proxy, Workspace, running_proxy
from raw_http import RawUpstream, raw_upstream

StartProxy = Callable[..., Awaitable[Proxy]]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.fixture
async def upstream() -> AsyncIterator[RawUpstream]:
    async with raw_upstream() as server:
        yield server


@pytest.fixture
async def start_proxy(workspace: Workspace, upstream: RawUpstream) -> AsyncIterator[StartProxy]:
    """Start a proxy; keyword arguments are fields of `TtsrSettings`."""
    async with AsyncExitStack() as stack:

        async def start(**ttsr: Any) -> Proxy:
            return await stack.enter_async_context(running_proxy(workspace, upstream.url, **ttsr))

        yield start
