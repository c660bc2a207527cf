"""A reminder in a history, placed as the exchange places it."""

from __future__ import annotations

from collections.abc import Sequence

from ttsr_proxy.protocols.history import HistoryItem
from ttsr_proxy.protocols.protocol import WireProtocol
from ttsr_proxy.sessions.shadow import append_to_user

__all__ = ["reminded", "user_says"]


def user_says(protocol: WireProtocol, text: str) -> HistoryItem:
    """A text of the proxy's own in the user's name."""
    return protocol.item_of_block(protocol.text_block(text), "user")


def reminded(protocol: WireProtocol, items: Sequence[HistoryItem], text: str) -> list[HistoryItem]:
    """The history with the reminder at the end of what the user said last."""
    placed = [*items]
    append_to_user(placed, [user_says(protocol, text)])
    return placed
