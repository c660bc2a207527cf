"""From a request to what is remembered about it: which records its echoes are, and their chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ttsr_proxy.protocols.history import HistoryItem
from ttsr_proxy.sessions.echoes import (
    ChainText,
    Echo,
    find_echoes,
    find_newest,
    join_prose,
    judged_anchor,
    prose,
    response_anchor,
)
from ttsr_proxy.sessions.record import Awaited, GivenBlock, PendingReminder, ResponseRecord
from ttsr_proxy.sessions.store import ConversationStore


@dataclass(frozen=True, slots=True)
class Recalled:
    """What is remembered about a request.

    `echoes` are all of the request's, or only the last if nothing was ever hidden on its chain. `chain`
    runs from the root to the newest known response; `records` says which record each echo is, by the echo's
    start. `place` is the place anchor of the response that the request asks for.
    """

    echoes: tuple[Echo, ...] = ()
    place: str = ""
    records: Mapping[int, ResponseRecord] = field(default_factory=dict)
    chain: tuple[ResponseRecord, ...] = ()
    pending_from: ResponseRecord | None = None
    """The record of the newest echo, whose pending reminders this request carries."""
    continued: ResponseRecord | None = None
    """The record of the response that the request continues by its id."""
    continues: bool = False
    """The request names a response that it continues."""
    judged: tuple[PendingReminder, ...] = ()
    """What a judge has found since in the responses that `pending_from` awaited answers about."""
    awaiting: tuple[Awaited, ...] = ()
    """Those of which nothing has come yet."""

    @property
    def tip(self) -> ResponseRecord | None:
        return self.chain[-1] if self.chain else None

    @property
    def present(self) -> tuple[ResponseRecord, ...]:
        """The chain from the oldest response that the request echoes.

        A client that compacts its history may keep its last answer, and the chain then reaches back into
        what it has dropped: reminders there are no longer in the model's context.
        """
        if self.continued is not None:
            return self.chain
        echoed = {record.id for record in self.records.values()}
        start = next((at for at, record in enumerate(self.chain) if record.id in echoed), len(self.chain))
        return self.chain[start:]

    @property
    def hidden(self) -> bool:
        """Upstream has seen something in this conversation that the client never sent."""
        return self.tip is not None and self.tip.hidden

    @property
    def is_new(self) -> bool:
        """The request begins a conversation: it holds no answer, known or unknown, and continues none."""
        return not self.echoes and self.tip is None and not self.continues

    @property
    def prompt(self) -> str:
        """What this conversation's system prompt was extended by when it began."""
        return self.chain[0].prompt if self.chain else ""

    @property
    def without_thinking(self) -> bool:
        return any(record.without_thinking for record in self.chain)


async def recall(
    store: ConversationStore,
    tenant: str,
    items: Sequence[HistoryItem],
    chain_text: ChainText,
    *,
    prefill: bool = False,
    previous: str | None = None,
) -> Recalled:
    """Find the records of a request's echoes. Store errors pass through; the caller decides to fail open."""
    recalled = await _recall(store, tenant, items, chain_text, prefill, previous)
    return await _with_judged(store, tenant, recalled)


async def _with_judged(store: ConversationStore, tenant: str, recalled: Recalled) -> Recalled:
    awaiting = recalled.pending_from.awaiting if recalled.pending_from is not None else ()
    if not awaiting:
        return recalled
    anchors = {awaited: judged_anchor(awaited.record) for awaited in awaiting}
    found = await store.find(tenant, list(anchors.values()))
    return replace(
        recalled,
        judged=tuple(
            pending
            for anchor in anchors.values()
            for record in found.get(anchor, ())
            for pending in record.pending
        ),
        awaiting=tuple(awaited for awaited, anchor in anchors.items() if anchor not in found),
    )


async def _recall(
    store: ConversationStore,
    tenant: str,
    items: Sequence[HistoryItem],
    chain_text: ChainText,
    prefill: bool,
    previous: str | None,
) -> Recalled:
    if previous is not None:
        return await _continued(store, tenant, items, chain_text, previous)
    split = find_newest(items, chain_text, prefill=prefill)
    echoes, place = split.runs, split.place
    if not echoes:
        return Recalled(place=place)
    newest = echoes[-1]
    found = await store.find(tenant, newest.anchors)
    tip = _record_of(newest, items, found, ())
    if tip is not None and not tip.hidden:
        # Nothing was ever hidden on this chain: there is nothing to restore and no rule that has fired.
        return Recalled(echoes, place, {newest.start: tip}, (tip,), tip)
    echoes = find_echoes(items, chain_text, prefill=prefill).runs
    found = await store.find(tenant, [anchor for echo in echoes for anchor in echo.anchors])
    tip, at = _newest(echoes, items, found)
    if tip is None:
        return Recalled(echoes, place)
    chain = await store.ancestors(tenant, tip.id)
    if not chain:
        chain = (tip,)
    records = _identify(echoes[: at + 1], items, found, chain)
    pending_from = tip if at == len(echoes) - 1 else None
    return Recalled(echoes, place, records, chain, pending_from)


async def _continued(
    store: ConversationStore,
    tenant: str,
    items: Sequence[HistoryItem],
    chain_text: ChainText,
    previous: str,
) -> Recalled:
    """The request names the response that it continues, and sends only what is new."""
    place = find_echoes(items, chain_text, previous=previous).place
    anchor = response_anchor(previous)
    found = (await store.find(tenant, (anchor,))).get(anchor, ())
    if not found:
        return Recalled(place=place, continues=True)
    tip = found[0]
    chain = await store.ancestors(tenant, tip.id) if tip.hidden else ()
    return Recalled(place=place, chain=chain or (tip,), pending_from=tip, continued=tip, continues=True)


def _newest(
    echoes: Sequence[Echo], items: Sequence[HistoryItem], found: Mapping[str, tuple[ResponseRecord, ...]]
) -> tuple[ResponseRecord | None, int]:
    for at in range(len(echoes) - 1, -1, -1):
        record = _record_of(echoes[at], items, found, ())
        if record is not None:
            return record, at
    return None, -1


def _identify(
    echoes: Sequence[Echo],
    items: Sequence[HistoryItem],
    found: Mapping[str, tuple[ResponseRecord, ...]],
    chain: Sequence[ResponseRecord],
) -> dict[int, ResponseRecord]:
    records: dict[int, ResponseRecord] = {}
    for echo in echoes:
        record = _record_of(echo, items, found, chain)
        if record is not None:
            records[echo.start] = record
    return records


def _record_of(
    echo: Echo,
    items: Sequence[HistoryItem],
    found: Mapping[str, tuple[ResponseRecord, ...]],
    preferred: Sequence[ResponseRecord],
) -> ResponseRecord | None:
    """The record of an echo: by unique anchor, else by its text, else as a shortened answer.

    Among several that fit, one of the preferred chain (or a child of it), else the oldest.
    """
    for anchor in echo.unique:
        for record in found.get(anchor, ()):
            return record
    by_text = found.get(echo.text, ())
    if echo.unique:
        # Clients make up ids for calls that came without one.
        return _best([record for record in by_text if _has_nameless_call(record)], preferred)
    best = _best(by_text, preferred)
    if best is not None:
        return best
    text = prose(items[echo.start : echo.end])
    shortened = [r for r in found.get(echo.place, ()) if text and given_prose(r.given).startswith(text)]
    return _best(shortened, preferred)


def _best(candidates: Sequence[ResponseRecord], preferred: Sequence[ResponseRecord]) -> ResponseRecord | None:
    ids = {record.id for record in preferred}
    for record in candidates:
        if record.id in ids:
            return record
    for record in candidates:
        if record.parent in ids:
            return record
    return candidates[0] if candidates else None


def _has_nameless_call(record: ResponseRecord) -> bool:
    return any(block.kind == "tool_call" and block.anchor is None for block in record.given)


def given_prose(given: Sequence[GivenBlock]) -> str:
    """The comparable prose of what a client was given."""

    return join_prose(block.text for block in given if block.kind == "text")
