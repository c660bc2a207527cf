"""The conversations' store for a place of state."""

from __future__ import annotations

from ttsr_proxy.config import State
from ttsr_proxy.redis import RedisUrl
from ttsr_proxy.sessions.redis import RedisConversationStore
from ttsr_proxy.sessions.sqlite import SqliteConversationStore
from ttsr_proxy.sessions.store import ConversationStore


def conversations_at(state: State) -> ConversationStore:
    """The store. Raises TtsrError when the state is on Redis and its extra is not installed."""
    return RedisConversationStore(state) if isinstance(state, RedisUrl) else SqliteConversationStore(state)
