"""One upstream attempt: its blocks, what it matched without interrupting, what upstream said of itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from ttsr_proxy.config import HoldSettings
from ttsr_proxy.interception.blocks import BlockMatch, WatchedBlock
from ttsr_proxy.interception.client import ClientResponse
from ttsr_proxy.interception.delivery import Delivery
from ttsr_proxy.interception.permission import Decision
from ttsr_proxy.interrupts.record import Action, Outcome
from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.protocols.events import BlockDelta, ProtocolEvent, ResponseEnding, Usage
from ttsr_proxy.protocols.protocol import ResponseReader, WireProtocol
from ttsr_proxy.sessions.record import ShadowBlock


@dataclass(frozen=True, slots=True)
class Noticed:
    """A match that interrupts nothing, and why."""

    found: BlockMatch
    block: WatchedBlock
    decision: Decision
    detail: str
    at: float

    @property
    def logged(self) -> tuple[Action, Outcome]:
        """The log's words for it."""
        match self.decision:
            case "remind":
                return ("reminded" if self.block.kind == "tool" else "deferred"), "pending"
            case "suppressed":
                return "suppressed", "violated again"
            case "exhausted":
                return "exhausted", "violated again"
            case _:
                return "observed", "undelivered"


class Attempt:
    """`number` counts from 1 within the response."""

    def __init__(
        self, protocol: WireProtocol, client: ClientResponse, hold: HoldSettings, number: int
    ) -> None:
        self.number = number
        self.reader: ResponseReader = protocol.reader()
        self.delivery = Delivery(client, hold, first=number == 1)
        self.inbox: deque[ProtocolEvent] = deque()
        self.blocks: dict[int, WatchedBlock] = {}
        """Open blocks by upstream's index."""
        self.order: list[WatchedBlock] = []
        """All blocks in the order in which they began."""
        self.values: dict[int, JsonObject] = {}
        """Complete blocks as history carries them, by position in `order`."""
        self.noticed: list[Noticed] = []
        self.usage: Usage | None = None
        self.ending: ResponseEnding | None = None
        self.last_words = b""
        """A retry's stop reason and usage, kept until the terminal event comes; else the proxy ends it."""
        self.model = ""
        self.response_id = ""
        self.heard = False
        """Upstream has sent an event of this attempt."""
        self.over = False
        """The terminal event came, or the attempt was given up."""
        self.closed: str | None = None
        """How upstream's answer ended: `end` in order, else the reason."""
        self.kept_bytes = 0
        """Bytes of the events that make up its blocks, which are kept until the response is over."""
        self.passing = False
        """It is not read any more: what comes passes as it is."""
        self.whole_body: tuple[int, bytes] | None = None
        """Status and body of an answer that is not streamed."""

    def add(self, block: WatchedBlock) -> None:
        self.blocks[block.index] = block
        self.order.append(block)

    def first_deltas(self, limit: int) -> list[BlockDelta]:
        """The deltas of one block that wait first in the inbox, at most `limit`."""
        run: list[BlockDelta] = []
        for event in islice(self.inbox, limit):
            if not isinstance(event, BlockDelta) or (run and event.index != run[0].index):
                break
            run.append(event)
        return run

    def complete(self, block: WatchedBlock, value: JsonObject) -> None:
        self.blocks.pop(block.index, None)
        self.values[self.order.index(block)] = value

    def reopen(self, block: WatchedBlock) -> None:
        """The block is cut in prose that upstream had completed: its whole is not what the client has."""
        self.values.pop(self.order.index(block), None)

    @property
    def received_chars(self) -> int:
        return sum(block.received for block in self.order)

    def finished(self, protocol: WireProtocol) -> list[ShadowBlock]:
        """All complete blocks, as the client was given them."""
        return [
            self.shadow(protocol, value, block.client_index if block.begun else None)
            for position, block in enumerate(self.order)
            if (value := self.values.get(position)) is not None
        ]

    def answers(self, protocol: WireProtocol) -> list[ShadowBlock]:
        """The results of the calls that the proxy has answered, in their order."""
        items = [
            protocol.tool_result_item(
                block.start.call_id or "", block.answer.text, is_error=block.answer.is_error
            )
            for block in self.order
            if block.answer is not None
        ]
        return [ShadowBlock("user", item.kind, item.value, None) for item in items]

    def whole(self, protocol: WireProtocol) -> list[ShadowBlock]:
        """The answer when it has said all that it will, with what the proxy answered to it."""
        return [*self.finished(protocol), *self.answers(protocol)]

    def delivered(
        self, protocol: WireProtocol, client: ClientResponse, cut_texts: Mapping[int, str]
    ) -> list[ShadowBlock]:
        """What the client has of this attempt, if it ends here.

        Complete blocks whole, cut prose as far as it went (or as `cut_texts`, by position, has it); thinking
        that was cut carries no signature and is left out.
        """
        values: list[JsonObject] = []
        given: list[int] = []
        cut: set[int] = set()
        for position, block in enumerate(self.order):
            if not block.begun:
                continue
            value = self.values.get(position)
            if value is None and block.kind == "text":
                text = cut_texts.get(position) or client.given_text(block.client_index)
                value = protocol.text_block(text) if text.strip() else None
                cut.add(len(values))
            if value is not None:
                values.append(value)
                given.append(block.client_index)
        return [
            self.shadow(protocol, value, index)
            for value, index in zip(protocol.salvage(values, cut), given, strict=True)
            if value is not None
        ]

    @staticmethod
    def shadow(protocol: WireProtocol, value: JsonObject, given: int | None) -> ShadowBlock:
        item = protocol.item_of_block(value, "assistant")
        return ShadowBlock("assistant", item.kind, value, given)
