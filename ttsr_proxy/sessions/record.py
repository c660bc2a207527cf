"""The shadow history: what upstream saw and produced around each response, and what the client was given.

Clients resend the whole history on every turn, and it lacks what the proxy hid. A `ResponseRecord` holds
what is needed to put it back. Records form a tree through `parent`; each is final once the response ended.
"""

from __future__ import annotations

from dataclasses import dataclass

from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.protocols.history import ItemKind, Role


@dataclass(frozen=True, slots=True)
class GivenBlock:
    """One block as the client was given it."""

    kind: ItemKind
    anchor: str | None
    text: str
    """For comparison with what the client sends back; see `HistoryItem.text`."""
    alias: str | None = None
    """Another anchor; see `HistoryItem.alias`."""


@dataclass(frozen=True, slots=True)
class ShadowBlock:
    """One block of the conversation as upstream has it."""

    role: Role
    kind: ItemKind
    value: JsonObject
    given: int | None
    """Its position among the given blocks; None when the client never saw it."""


@dataclass(frozen=True, slots=True)
class PendingReminder:
    """A reminder that waits for the request that echoes this response."""

    rule: str
    text: str
    interrupt: str
    """The log record whose outcome its placement settles."""


@dataclass(frozen=True, slots=True)
class Awaited:
    """A response on this chain that a judge has been asked about."""

    record: str
    until: float
    """Seconds since the epoch; after that no answer comes any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRecord:
    """One inspected response.

    `anchors` are the keys by which an echo of this response is found, most telling first. `tail` are blocks
    that the proxy appended to the last user message before this response. `produced` is what followed it
    upstream, hidden turns included, in order. `reminded` names the rules whose reminders stand in `tail`
    or `produced`. `hidden` says that upstream saw something that
    the client did not send, here or in an ancestor.

    A record never changes once it is final. What a judge says of a response later is a record of its own: a
    child with nothing but `pending`, found by `judged_anchor`.
    """

    id: str
    parent: str | None
    tenant: str
    """Keyed hash of credential and project: conversations of one never reach another."""
    project: str
    conversation: str
    created: float
    turn: int
    anchors: tuple[str, ...]
    tail: tuple[JsonObject, ...] = ()
    given: tuple[GivenBlock, ...] = ()
    produced: tuple[ShadowBlock, ...] = ()
    reminded: tuple[str, ...] = ()
    pending: tuple[PendingReminder, ...] = ()
    awaiting: tuple[Awaited, ...] = ()
    """Whose reminders may still come, and are then for the requests that follow this response."""
    interrupts: int = 0
    hidden: bool = False
    upstream: str | None = None
    """The id by which upstream knows this response; None if it keeps none or never finished this one."""
    after: str | None = None
    """The id of the response that upstream was asked to continue."""
    asked: tuple[ShadowBlock, ...] = ()
    """What the request said, for a response that upstream never finished: nobody else keeps it."""
    without_thinking: bool = False
    """Upstream refused this conversation's thinking once; it is left out of the history from then on."""
    prompt: str = ""
    """What the proxy added to the system prompt. Only a root has it, and its whole tree is asked with it."""
    final: bool = True
