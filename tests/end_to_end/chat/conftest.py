"""A strict upstream of Chat Completions in place of the Messages API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from coding_agent import ChatAgent
from proxy_under_test import Proxy
from strict_openai_chat import StrictChatUpstream, strict_chat_upstream


@pytest.fixture
async def upstream() -> AsyncIterator[StrictChatUpstream]:
    async with strict_chat_upstream() as server:
        yield server


@pytest.fixture
async def new_agent() -> AsyncIterator[Callable[..., Awaitable[ChatAgent]]]:
    """Make an agent that talks to a proxy; keyword arguments go to `ChatAgent`."""
    async with AsyncExitStack() as stack:

        async def make(proxy: Proxy, **options: Any) -> ChatAgent:
            return await stack.enter_async_context(ChatAgent(proxy.url, **options))

        yield make
