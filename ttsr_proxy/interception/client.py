"""What the client of a streamed response was given: one legal response, however many attempts it took."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ttsr_proxy.growing import GrowingText
from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.protocols.events import (
    BlockDelta,
    BlockEnded,
    BlockKind,
    BlockStarted,
    Other,
    ResponseEnded,
    ResponseEnding,
    ResponseStarted,
)
from ttsr_proxy.protocols.history import HistoryItem, ItemKind
from ttsr_proxy.protocols.protocol import ResponseWriter, WireProtocol
from ttsr_proxy.protocols.request import ApiRequest
from ttsr_proxy.sessions.record import GivenBlock

Stage: TypeAlias = Literal["unsent", "opened", "content"]
"""No byte yet; something is out; a block is closed."""

_KINDS: dict[BlockKind, ItemKind] = {"text": "text", "thinking": "thinking", "tool": "tool_call"}


@dataclass(slots=True)
class _Given:
    number: int
    """The block's index as the client has it."""
    kind: ItemKind
    anchor: str | None
    alias: str | None
    choice: int
    said: GrowingText = field(default_factory=GrowingText)
    settled: GivenBlock | None = None

    def block(self) -> GivenBlock:
        return self.settled or GivenBlock(self.kind, self.anchor, self.said.text, self.alias)


def _given_block(item: HistoryItem) -> GivenBlock:
    return GivenBlock(item.kind, item.anchor, item.text, item.alias)


class ClientResponse:
    """Blocks are known by their position among all that the client was given, over all attempts.

    The client sees upstream's own indexes, gaps and all, until an attempt is aborted or a block is kept from
    it; later blocks are counted on from there.

    Thinking that was cut off is closed with a signature of the proxy's own, which clients send back and the
    proxy takes out again. It names the `exchange`, so that it also tells which response it stands in.
    """

    def __init__(self, protocol: WireProtocol, request: ApiRequest, exchange: str, prompt: str) -> None:
        self._protocol = protocol
        self._exchange = exchange
        self._writer: ResponseWriter = protocol.writer(request, prompt)
        self._given: list[_Given] = []
        self._open: dict[int, BlockKind] = {}
        self._spliced = False
        self.stage: Stage = "unsent"
        self.begun = False
        """The response itself has begun, not only comments and the like before it."""
        self.tool_delivered = False
        self.text_delivered = False
        """Prose, or the work of a server tool, has reached the client."""
        self.ended = False
        self.response_id = ""
        """The id that the client knows the response by."""

    @property
    def given(self) -> tuple[GivenBlock, ...]:
        return tuple(given.block() for given in self._given)

    @property
    def choices(self) -> tuple[int, ...]:
        """For each given block, which of several answers it belongs to."""
        return tuple(given.choice for given in self._given)

    @property
    def open_block(self) -> tuple[int, BlockKind] | None:
        return next(iter(self._open.items()), None)

    @property
    def call_open(self) -> bool:
        """The client has the beginning of a call, which nothing but its rest can close."""
        return "tool" in self._open.values()

    def given_text(self, index: int) -> str:
        """The text of a given block that is still open."""
        return self._given[index].said.text

    def start(self, event: ResponseStarted) -> bytes:
        self.response_id = event.response_id
        data = self._writer.start(event)
        self.begun = bool(data)
        return self._sent(data)

    def begin(self, event: BlockStarted) -> tuple[int, bytes]:
        """Open a block: its position and the bytes."""
        index = len(self._given)
        number = (
            1 + max((given.number for given in self._given), default=-1) if self._spliced else event.index
        )
        item = self._protocol.item_of_block(event.value, "assistant")
        kind = _KINDS.get(event.kind) or item.kind
        self._given.append(_Given(number, kind, item.anchor, item.alias, event.choice))
        self._open[index] = event.kind
        self.begun = True
        if event.kind == "tool":
            self.tool_delivered = True
        elif event.kind == "opaque" and kind != "thinking":
            self.text_delivered = True
        initial = self._protocol.initial_text(event)
        if initial and event.kind in ("text", "thinking"):
            self._add_text(index, initial)
        return index, self._sent(self._writer.reindex(event, number))

    def delta(self, event: BlockDelta, index: int) -> bytes:
        if event.channel in ("text", "thinking"):
            self._add_text(index, event.text)
        return self._sent(self._writer.reindex(event, self._given[index].number))

    def part_of(self, event: BlockDelta, index: int, text: str) -> bytes:
        self._add_text(index, text)
        return self._sent(self._writer.part_of(event, self._given[index].number, text))

    def break_off(self) -> bytes:
        """The attempt is aborted: what of its delivered output was not written yet."""
        self._spliced = True
        return self._sent(self._writer.break_off())

    def leave_out(self) -> bytes:
        """A block of upstream's is not for the client: what follows is counted on without it."""
        self._spliced = True
        return self._sent(self._writer.leave_out())

    def end_block(self, event: BlockEnded, index: int) -> bytes:
        item = self._protocol.item_of_block(event.value, "assistant")
        self._given[index].settled = _given_block(item)
        del self._open[index]
        self.stage = "content"
        return self._writer.reindex(event, self._given[index].number)

    def close_cut(self) -> bytes:
        """Close what an aborted attempt left open: prose as it stands, thinking with the proxy's mark."""
        out = b""
        for index, kind in sorted(self._open.items()):
            number = self._given[index].number
            if kind == "thinking":
                marker = f"ttsr:{self._exchange}:{index}"
                signed = self._writer.marker(number, marker)
                if signed:
                    value = {"type": "thinking", "thinking": self.given_text(index), "signature": marker}
                    item = self._protocol.item_of_block(value, "assistant")
                    self._given[index].settled = GivenBlock("thinking", item.anchor, item.text)
                out += signed
            out += self._writer.stop_block(number)
            self.stage = "content"
        self._open.clear()
        return out

    def take(self, value: JsonObject, choice: int) -> int:
        """A complete block of an answer that is not streamed: its position."""
        item = self._protocol.item_of_block(value, "assistant")
        index = len(self._given)
        self._given.append(
            _Given(index, item.kind, item.anchor, item.alias, choice, settled=_given_block(item))
        )
        return index

    def other(self, event: Other) -> bytes:
        return self._sent(self._writer.other(event))

    def ending(self, event: ResponseEnding, usage_changes: dict[str, int] | None) -> bytes:
        return self._writer.ending(event, usage_changes=usage_changes)

    def end(self, event: ResponseEnded) -> bytes:
        self.ended = True
        return self._writer.end(event)

    def finish(self, stop_reason: str, usage: dict[str, int]) -> bytes:
        """A legal end of the proxy's own."""
        self.ended = True
        return self.close_cut() + self._writer.finish(stop_reason, usage)

    def keepalive(self, active: bool) -> bytes:
        open_block = self.open_block
        if open_block is not None:
            index, kind = open_block
            open_block = self._given[index].number, kind
        return self._writer.keepalive(open_block, active)

    def error(self, error: dict[str, object]) -> bytes:
        return self._writer.error(error)

    def _sent(self, data: bytes) -> bytes:
        if data and self.stage == "unsent":
            self.stage = "opened"
        return data

    def _add_text(self, index: int, text: str) -> None:
        given = self._given[index]
        given.said.add(text)
        if given.kind == "text" and not self.text_delivered and text.strip():
            self.text_delivered = True
