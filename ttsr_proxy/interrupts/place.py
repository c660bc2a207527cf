"""The interrupt log's store for a place of state."""

from __future__ import annotations

from ttsr_proxy.config import State
from ttsr_proxy.interrupts.redis import RedisInterruptStore
from ttsr_proxy.interrupts.sqlite import SqliteInterruptStore
from ttsr_proxy.interrupts.store import InterruptStore
from ttsr_proxy.redis import RedisUrl


def interrupts_at(state: State) -> InterruptStore:
    """The store. Raises TtsrError when the state is on Redis and its extra is not installed."""
    return RedisInterruptStore(state) if isinstance(state, RedisUrl) else SqliteInterruptStore(state)


def is_there(state: State) -> bool:
    """Whether reading it makes sense: a file at a mistyped path must not be created by reading."""
    return isinstance(state, RedisUrl) or state.exists()
