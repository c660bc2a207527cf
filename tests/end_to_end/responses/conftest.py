"""A strict upstream of the Responses API in place of the Messages API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from coding_agent import ResponsesAgent
from proxy_under_test import Proxy
from strict_openai_responses import StrictResponsesUpstream, strict_responses_upstream


@pytest.fixture
async def upstream() -> AsyncIterator[StrictResponsesUpstream]:
    async with strict_responses_upstream() as server:
        yield server


@pytest.fixture
async def new_agent() -> AsyncIterator[Callable[..., Awaitable[ResponsesAgent]]]:
    """Make an agent that talks to a proxy; keyword arguments go to `ResponsesAgent`."""
    async with AsyncExitStack() as stack:

        async def make(proxy: Proxy, **options: Any) -> ResponsesAgent:
            return await stack.enter_async_context(ResponsesAgent(proxy.url, **options))

        yield make
