"""A request's conversation as a flat list of items, the same for every protocol.

A protocol module splits a request body into items and joins items into a body again. Joining the items of
an untouched request gives back its messages as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Literal, NamedTuple, TypeAlias

from ttsr_proxy.jsontext import JsonObject

Role: TypeAlias = Literal["user", "assistant", "system"]
ItemKind: TypeAlias = Literal["text", "thinking", "tool_call", "tool_result", "other"]


class HistoryItem(NamedTuple):
    """One block of one message. A named tuple, since a request may be made of thousands.

    `message` is the position of the client's message that the item came from, or None for what the proxy
    inserted. `anchor` is a globally unique mark that survives the client's own re-serialisation
    (`call:<id>` of a tool call, `sig:<hash>` of signed thinking), else None; `alias` is another one, by which
    a mere reference may name the item. `comparable` is the protocol's way to `text`.
    """

    role: Role
    kind: ItemKind
    value: JsonObject
    comparable: Callable[[JsonObject], str]
    message: int | None = None
    anchor: str | None = None
    alias: str | None = None

    @property
    def text(self) -> str:
        """What it says, for comparison and without cache marks: text for prose, else canonical JSON.

        Made when it is asked for, since most of a long history never is. Raises RecursionError for what is
        nested almost too deep to parse.
        """
        return self.comparable(self.value)


def unchanged(values: Sequence[JsonObject], cut: Collection[int]) -> list[JsonObject | None]:
    """`WireProtocol.salvage` where upstream knows blocks by what they say alone."""
    return list(values)
