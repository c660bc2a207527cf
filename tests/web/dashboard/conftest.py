"""A proxy with a log that has something to show."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from many_interrupts import many_interrupts
from proxy_under_test import Proxy, Workspace, running_proxy

from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.interrupts.sqlite import SqliteInterruptStore

Add = Callable[..., Awaitable[InterruptRecord]]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = Workspace(tmp_path)
    made.rule("no-eval", r"eval\(", description="No eval", scope="text")
    made.rule("broken", "(", description="A broken condition")
    return made


@pytest.fixture
async def proxy(workspace: Workspace) -> AsyncIterator[Proxy]:
    async with running_proxy(workspace, "http://127.0.0.1:9") as running:
        yield running


@pytest.fixture
async def log(workspace: Workspace, proxy: Proxy) -> AsyncIterator[SqliteInterruptStore]:
    """The proxy's log, as another process sees it."""
    store = SqliteInterruptStore(workspace.state)
    yield store
    await store.close()


@pytest.fixture
def add(log: SqliteInterruptStore) -> Add:
    """Adds a record of now; arguments are its fields."""
    number = 0

    async def added(**fields: Any) -> InterruptRecord:
        nonlocal number
        number += 1
        (made,) = many_interrupts(1, time.time(), 0.0)
        record = dataclasses.replace(
            made, **{"id": f"r{number}", "rule": "no-eval", "false_positive": False, **fields}
        )
        await log.add([record])
        return record

    return added
