"""A strict upstream and a workspace for real clients."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from proxy_under_test import Proxy, Workspace, running_proxy
from real_agents import Agent, Scene, played
from strict_anthropic import StrictUpstream, strict_upstream


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.fixture
async def upstream() -> AsyncIterator[StrictUpstream]:
    async with strict_upstream() as server:
        yield server


@pytest.fixture
async def proxy(workspace: Workspace, upstream: StrictUpstream) -> AsyncIterator[Proxy]:
    async with running_proxy(workspace, upstream.url) as running:
        yield running


@pytest.fixture
async def scene(workspace: Workspace, agent: Agent, binary: str) -> AsyncIterator[Scene]:
    async with played(workspace, agent, binary) as made:
        yield made
