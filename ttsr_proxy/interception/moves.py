"""What follows an interrupt: which move, and what the next attempt's conversation looks like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from ttsr_proxy.config import TtsrSettings
from ttsr_proxy.interception.attempt import Attempt
from ttsr_proxy.interception.blocks import BlockMatch, WatchedBlock
from ttsr_proxy.interception.client import ClientResponse
from ttsr_proxy.interception.draft import Place
from ttsr_proxy.interception.reminders import Fate, Violation, interrupt
from ttsr_proxy.protocols.history import HistoryItem
from ttsr_proxy.protocols.protocol import WireProtocol
from ttsr_proxy.sessions.record import ShadowBlock
from ttsr_proxy.toolcalls.partial import close_partial

Move: TypeAlias = Literal["restart", "continue", "truncate"]

CHARS_PER_TOKEN = 4
"""The usual rule of thumb for text and code; every figure made with it is marked as estimated."""

NOT_EXECUTED = "This call was not executed: it was stopped because it broke a rule."


def estimate_tokens(chars: int) -> int:
    return -(-chars // CHARS_PER_TOKEN)


def next_move(client: ClientResponse) -> Move:
    """By what the client already has. A released call is committed: the client may have run it."""
    if client.tool_delivered:
        return "truncate"
    return "continue" if client.text_delivered else "restart"


def fate(block: WatchedBlock, move: Move) -> Fate:
    """What became of the output that broke the rule, as the model is told."""
    if block.kind == "tool":
        return "not executed"
    return "cut" if block.begun and block.kind == "text" and move != "restart" else "withheld"


def keeps(found: Sequence[BlockMatch], settings: TtsrSettings) -> bool:
    """Whether the violating output stays visible to the model: only if every rule involved wants it."""
    return all((one.match.rule.context_mode or settings.context_mode) == "keep" for one in found)


def split_attempt(
    protocol: WireProtocol,
    client: ClientResponse,
    attempt: Attempt,
    block: WatchedBlock,
    *,
    keep: bool,
    replaces: bool,
) -> tuple[list[ShadowBlock], list[ShadowBlock]]:
    """What of an interrupted attempt the model sees again: what was delivered, and what is kept behind it.

    Delivered are the blocks up to the last prose or server tool that the client has. With `keep` the
    violating block follows, with the thinking that led to it. `replaces`: an open place with nothing
    delivered behind it is about to be replaced: thinking signed over it cannot stay, nor what it led to.
    """
    cut = {attempt.order.index(block): block.text} if keep and block.kind == "text" else {}
    seen = [
        block
        for block in attempt.delivered(protocol, client, cut)
        if block.kind != "thinking" or protocol.signs_thinking
    ]
    last = max((i for i, one in enumerate(seen) if one.kind in ("text", "other")), default=-1)
    delivered, behind = seen[: last + 1], seen[last + 1 :]
    violating = _violating(protocol, attempt, block) if keep else None
    if violating is None or (block.begun and block.kind == "text"):
        return delivered, []
    if behind and replaces and not delivered:
        return delivered, []
    return delivered, [*behind, violating]


def open_place(
    protocol: WireProtocol,
    attempt: Attempt,
    block: WatchedBlock,
    violations: Sequence[Violation],
    kept: Sequence[ShadowBlock],
) -> Place:
    """The reminder for the next attempt, behind the output that is kept."""
    calls = (other for other in attempt.order if other.kind == "tool" and other is not block)
    siblings = [other.start.tool or "tool" for other in calls] if block.kind == "tool" else []
    rules = tuple(violation.rule.name for violation in violations)
    results: tuple[HistoryItem, ...] = ()
    if kept and block.kind == "tool":
        results = (protocol.tool_result_item(block.start.call_id or "", NOT_EXECUTED, is_error=True),)
    return Place(rules, interrupt(violations, siblings), tuple(kept), results)


def without_loose_thinking(blocks: Sequence[ShadowBlock]) -> list[ShadowBlock]:
    """The blocks without the thinking at their end: no assistant message may end with it."""
    last = max((i for i, block in enumerate(blocks) if block.kind != "thinking"), default=-1)
    return list(blocks[: last + 1])


def _violating(protocol: WireProtocol, attempt: Attempt, block: WatchedBlock) -> ShadowBlock | None:
    """The violating block as far as it came; None if no history can carry it (unsigned thinking)."""
    if block.kind == "tool":
        value = attempt.values.get(attempt.order.index(block))
        if value is None:
            arguments = block.text if block.start.freeform else close_partial(block.text)
            value = protocol.with_input(block.start.value, arguments)
        (kept,) = protocol.salvage([value], ())
        return None if kept is None else Attempt.shadow(protocol, kept, None)
    if block.kind == "text" and block.text.strip():
        return Attempt.shadow(protocol, protocol.text_block(block.text), None)
    return None
