"""The record of this response at any moment: what upstream saw and produced, what the client was given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ttsr_proxy.interception.budgets import Budget
from ttsr_proxy.interception.client import ClientResponse
from ttsr_proxy.interception.draft import Draft
from ttsr_proxy.interception.setup import Setup
from ttsr_proxy.protocols.history import HistoryItem
from ttsr_proxy.sessions.echoes import join_prose, response_anchor, text_anchor
from ttsr_proxy.sessions.record import GivenBlock, PendingReminder, ResponseRecord, ShadowBlock


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where a response stands in its conversation."""

    record: str
    """The id of its record."""
    parent: str | None
    conversation: str
    turn: int


class Remembering:
    """Makes the response's record; `due` says when it has to be durable before the client may see more."""

    def __init__(self, setup: Setup, client: ClientResponse, draft: Draft, budget: Budget) -> None:
        self._setup = setup
        self._client = client
        self._draft = draft
        self._budget = budget
        self._before = budget.total
        self._id = setup.new_id()
        self._saved_at: tuple[int, bool] | None = None
        tip = setup.recalled.tip
        self._parent = tip
        self.turn = tip.turn + 1 if tip is not None else 0
        requester = setup.requester
        self.conversation = requester.session or (tip.conversation if tip is not None else self._id)

    @property
    def lineage(self) -> Lineage:
        parent = self._parent.id if self._parent is not None else None
        return Lineage(self._id, parent, self.conversation, self.turn)

    @property
    def reminders_before(self) -> tuple[str, ...]:
        """The texts of all reminders on this request's chain."""
        texts = []
        for record in self._setup.recalled.chain:
            texts += [str(block.get("text", "")) for block in record.tail]
            texts += [
                str(b.value.get("text", "")) for b in record.produced if b.role == "user" and b.kind == "text"
            ]
        return tuple(texts)

    @property
    def hidden(self) -> bool:
        """Upstream knows something in this conversation that the client does not."""
        return self._draft.hidden or self._setup.recalled.hidden

    def due(self) -> bool:
        """The next bytes may expose a new anchor of a conversation in which something is hidden."""
        if not self.hidden:
            return False
        at = (len(self._client.given), self._client.open_block is None)
        if at == self._saved_at:
            return False
        self._saved_at = at
        return True

    def record(
        self,
        blocks: Sequence[ShadowBlock],
        pending: Sequence[PendingReminder],
        *,
        now: float,
        final: bool,
        aborted: bool = False,
        upstream: str | None = None,
    ) -> ResponseRecord:
        """`blocks` is what the last attempt gave; `pending` waits for the request that echoes them.

        `aborted`: the proxy cut the last attempt off, so upstream does not know the response. Otherwise it
        knows it as `upstream`, by default the id that the client knows.
        """
        setup, draft = self._setup, self._draft
        tail, produced = draft.closed(blocks)
        given = self._client.given
        keeps = setup.protocol.keeps_responses
        lost = keeps and aborted
        carried = () if draft.form == "reminded" else draft.deferred
        return ResponseRecord(
            id=self._id,
            parent=self.lineage.parent,
            tenant=setup.requester.tenant,
            project=setup.requester.project,
            conversation=self.conversation,
            created=now + setup.wall_offset,
            turn=self.turn,
            anchors=self._anchors(given),
            tail=tail,
            given=given,
            produced=produced,
            reminded=draft.reminded,
            pending=(*carried, *pending),
            interrupts=self._budget.total - self._before,
            hidden=self.hidden
            or _lost(given, produced)
            or (lost and bool(given))
            or any(block.role == "user" for block in produced),
            upstream=None if lost or not keeps else upstream or self._client.response_id or None,
            after=draft.previous if lost else None,
            asked=tuple(map(_shadow, draft.asked)) if lost and setup.request.stored else (),
            without_thinking=draft.without_thinking,
            prompt=draft.prompt if self._parent is None else "",
            final=final,
        )

    def of_choice(
        self, record: ResponseRecord, choice: int, pending: Sequence[PendingReminder]
    ) -> ResponseRecord:
        """The part of a record that is about one of several answers, with what waits for its echo."""
        kept = [index for index, of in enumerate(self._client.choices) if of == choice]
        moved = {index: place for place, index in enumerate(kept)}
        given = tuple(record.given[index] for index in kept)
        return replace(
            record,
            id=record.id if choice == 0 else self._setup.new_id(),
            anchors=self._anchors(given),
            given=given,
            produced=tuple(
                block if block.given is None else replace(block, given=moved[block.given])
                for block in record.produced
                if block.given is None or block.given in moved
            ),
            pending=(*record.pending, *pending),
        )

    def _anchors(self, given: Sequence[GivenBlock]) -> tuple[str, ...]:
        place = self._setup.recalled.place
        names = [name for block in given for name in (block.anchor, block.alias)]
        unique = [name for name in names if name is not None]
        if self._setup.protocol.keeps_responses and self._client.response_id:
            unique.insert(0, response_anchor(self._client.response_id))
        texts = [block.text for block in given if block.kind == "text"]
        anchors = [*unique, text_anchor(place, join_prose(texts)), place]
        if self._setup.request.prefill and texts:
            # Clients keep their prefill and its continuation as one text.
            prefill = "".join(item.text for item in _prefill(self._setup.request.items))
            anchors.append(text_anchor(place, join_prose([prefill + texts[0], *texts[1:]])))
        return tuple(dict.fromkeys(anchors))


def _shadow(item: HistoryItem) -> ShadowBlock:
    return ShadowBlock(item.role, item.kind, item.value, None)


def _lost(given: Sequence[GivenBlock], produced: Sequence[ShadowBlock]) -> bool:
    """The client holds blocks that upstream must not see again (thinking with nothing behind it)."""
    return not set(range(len(given))) <= {block.given for block in produced}


def _prefill(items: Sequence[HistoryItem]) -> list[HistoryItem]:
    """The assistant's texts at the very end of the history."""
    texts: list[HistoryItem] = []
    for item in reversed(items):
        if item.role != "assistant":
            break
        texts.insert(0, item)
    return [item for item in texts if item.kind == "text"]
