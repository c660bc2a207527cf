"""A request's conversation as a flat list of items, the same for every protocol.

A protocol module splits a request body into items and joins items into a body again. Joining the items of
an untouched request gives back its messages as they were.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ttsr_proxy.jsontext import JsonObject

Role: TypeAlias = Literal["user", "assistant", "system"]
ItemKind: TypeAlias = Literal["text", "thinking", "tool_call", "tool_result", "other"]


@dataclass(frozen=True, slots=True)
class HistoryItem:
    """One block of one message.

    `message` is the position of the client's message that the item came from, or None for what the proxy
    inserted. `anchor` is a globally unique mark that survives the client's own re-serialisation
    (`call:<id>` of a tool call, `sig:<hash>` of signed thinking), else None; `alias` is another one, by which
    a mere reference may name the item. `text` is the item's content for comparison: text for prose,
    canonical JSON for the rest; without cache marks.
    """

    role: Role
    kind: ItemKind
    value: JsonObject
    text: str
    message: int | None = None
    anchor: str | None = None
    alias: str | None = None


def unchanged(values: Sequence[JsonObject], cut: Collection[int]) -> list[JsonObject | None]:
    """`WireProtocol.salvage` where upstream knows blocks by what they say alone."""
    return list(values)
