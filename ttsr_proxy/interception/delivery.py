"""What is held back of an attempt, and when it goes to the client.

Events leave in upstream's order, as their original bytes. An event waits while its block waits: a tool call
until it is complete and clean, prose up to where a match could still begin. Limits on how much and how long
prose is held change when it is delivered, never the verdict.
"""

from __future__ import annotations

from collections import deque

from msgspec import Struct

from ttsr_proxy.config import HoldSettings
from ttsr_proxy.interception.blocks import WatchedBlock
from ttsr_proxy.interception.client import ClientResponse
from ttsr_proxy.protocols.events import (
    BlockDelta,
    BlockEnded,
    BlockStarted,
    Other,
    ProtocolEvent,
    ResponseEnded,
    ResponseEnding,
    ResponseStarted,
)


class _Held(Struct, frozen=True):
    event: ProtocolEvent
    block: WatchedBlock | None
    end: int
    """Characters of the block up to and including this event."""
    since: float


class Delivery:
    """The queue between one attempt and the client."""

    def __init__(self, client: ClientResponse, hold: HoldSettings, *, first: bool) -> None:
        self._client = client
        self._hold = hold
        self._first = first
        self._leftover = not first
        self._queue: deque[_Held] = deque()

    @property
    def holding(self) -> bool:
        return bool(self._queue)

    @property
    def held_bytes(self) -> int:
        return sum(len(held.event.raw) for held in self._queue)

    def push(self, event: ProtocolEvent, block: WatchedBlock | None, end: int, now: float) -> None:
        """Queue an event; `end` are the characters of its block up to and including it."""
        self._queue.append(_Held(event, block, end, now))

    def judged(self, block: WatchedBlock) -> None:
        """All text of the block so far was judged: what is more than may be held is overdue.

        Text is overdue by the events behind it, not by when bytes arrive or how much comes at once.
        """
        block.overdue = max(block.overdue, block.received - self._hold.max_chars)

    def release(self, now: float) -> bytes:
        """The bytes of everything that may go now."""
        if not self._queue:
            return b""
        out: list[bytes] = []
        while self._queue:
            held = self._queue[0]
            block = held.block
            abandoned = block is not None and block.abandoned
            if not abandoned and not self._may_go(held, now):
                break
            self._queue.popleft()
            if not abandoned:
                out.append(self._send(held))
                if block is not None and self._queue and isinstance(held.event, BlockDelta):
                    self._send_more(block, out)
        return b"".join(out)

    def _send_more(self, block: WatchedBlock, out: list[bytes]) -> None:
        """The deltas behind one that has just gone, up to the same limit: it is the same for all of them."""
        queue, limit, delta, index = self._queue, self._limit(block), self._client.delta, block.client_index
        while queue:
            held = queue[0]
            if held.block is not block or held.end > limit or not isinstance(held.event, BlockDelta):
                break
            queue.popleft()
            out.append(delta(held.event, index))

    def _limit(self, block: WatchedBlock) -> int:
        """How many characters of a block may be shown at once, however long they have waited."""
        if block.cleared or not block.holding:
            return block.received
        return 0 if block.whole else min(block.firm_until, max(block.safe_until, block.overdue))

    def cut(self, block: WatchedBlock, at: int, now: float) -> bytes:
        """The block is interrupted at a character: deliver what stands before it and drop the rest.

        Prose of nothing but white space is not delivered: no history may carry such a block.
        """
        out = [self.release(now)]
        if not block.whole and (block.begun or block.text[:at].strip()):
            for held in self._queue:
                if held.block is not block or isinstance(held.event, BlockEnded):
                    continue
                if held.end <= at:
                    out.append(self._send(held))
                elif isinstance(held.event, BlockDelta):
                    start = held.end - len(held.event.text)
                    if start < at:
                        out.append(
                            self._client.part_of(
                                held.event, block.client_index, held.event.text[: at - start]
                            )
                        )
                    break
        self._queue.clear()
        return b"".join(out)

    def close_leftover(self) -> bytes:
        """Close what the attempt before left open; a retry that says nothing opens no block that would."""
        closing = self._client.close_cut() if self._leftover else b""
        self._leftover = False
        return closing

    def drop(self) -> None:
        """Nothing that is still held will be delivered."""
        self._queue.clear()

    def deadline(self) -> float | None:
        """When held prose has to go for having waited long enough."""
        if not self._queue or not self._timed(self._queue[0]):
            return None
        return self._queue[0].since + self._hold.max_seconds

    def _timed(self, held: _Held) -> bool:
        block = held.block
        if block is None or block.whole or isinstance(held.event, BlockEnded):
            return False
        if isinstance(held.event, BlockStarted):
            return not self._blank(block) and self._first_text_end(block) <= block.firm_until
        return held.end <= block.firm_until

    def _may_go(self, held: _Held, now: float) -> bool:
        block = held.block
        if block is not None and block.undecided:
            return False
        if block is None or block.cleared:
            return True
        if not block.holding:
            # The proxy has to close what a failed retry leaves open, and a text block needs text.
            return self._first or block.kind != "text" or not self._blank(block)
        if block.whole or isinstance(held.event, BlockEnded):
            return False
        waited = held.since + self._hold.max_seconds <= now
        shown = block.firm_until if waited else self._limit(block)
        if isinstance(held.event, BlockStarted):
            return not self._blank(block) and self._first_text_end(block) <= shown
        return held.end <= shown

    def _first_text_end(self, block: WatchedBlock) -> int:
        """Where the first event with visible text ends: a block opens together with it, never empty."""
        visible = block.first_visible or 0
        return next(held.end for held in self._queue if held.block is block and held.end > visible)

    @staticmethod
    def _blank(block: WatchedBlock) -> bool:
        # White space alone is never shown: an upstream refuses such a block in the history.
        return block.first_visible is None

    def _send(self, held: _Held) -> bytes:
        event, block, client = held.event, held.block, self._client
        match event:
            case ResponseStarted():
                return client.start(event)
            case BlockStarted():
                assert block is not None
                closing = self.close_leftover()
                block.client_index, data = client.begin(event)
                block.begun = True
                return closing + data
            case BlockDelta():
                return (
                    client.other(Other(event.raw))
                    if block is None
                    else client.delta(event, block.client_index)
                )
            case BlockEnded():
                return (
                    client.other(Other(event.raw))
                    if block is None
                    else client.end_block(event, block.client_index)
                )
            case Other():
                return client.other(event)
            case ResponseEnding() | ResponseEnded():
                raise AssertionError("the exchange sends the end of a response itself")
            case _:
                return event.raw
