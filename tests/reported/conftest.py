"""A raw upstream and proxies in front of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from proxy_under_test import Workspace
from raw_http import RawUpstream, raw_upstream


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.fixture
async def upstream() -> AsyncIterator[RawUpstream]:
    async with raw_upstream() as server:
        yield server
