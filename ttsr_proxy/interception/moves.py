"""What follows an interrupt: which move, and what the next attempt's conversation looks like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def cut_texts(attempt: Attempt, block: WatchedBlock, *, keep: bool) -> Mapping[int, str]:
    """What stands in the retry's history for prose that was cut, by position, if not what was delivered."""
    if not keep or block.kind != "text":
        return {}
    return {attempt.order.index(block): block.text}


def open_place(
    protocol: WireProtocol,
    attempt: Attempt,
    block: WatchedBlock,
    violations: Sequence[Violation],
    delivered: Sequence[ShadowBlock],
    *,
    keep: bool,
) -> Place:
    """The reminder for the next attempt, with the violating output if it is to be kept."""
    siblings = [
        other.start.tool or "tool" for other in attempt.order if other.kind == "tool" and other is not block
    ]
    rules = tuple(violation.rule.name for violation in violations)
    reminder = interrupt(violations, siblings if block.kind == "tool" else ())
    if not keep:
        return Place(rules, reminder)
    kept, results = _kept(protocol, attempt, block, with_earlier=not delivered)
    return Place(rules, reminder, kept, results)


def _kept(
    protocol: WireProtocol, attempt: Attempt, block: WatchedBlock, *, with_earlier: bool
) -> tuple[tuple[ShadowBlock, ...], tuple[HistoryItem, ...]]:
    kept: list[ShadowBlock] = []
    if with_earlier:
        # Signed thinking that led to the violation stands before it, as the model produced it.
        kept = [shadow for shadow in attempt.finished(protocol) if shadow.kind == "thinking"]
    if block.kind == "tool":
        value = attempt.values.get(attempt.order.index(block))
        value = value or {**block.start.value, "input": close_partial(block.text)}
        kept.append(Attempt.shadow(protocol, value, None))
        call_id = block.start.call_id or ""
        return tuple(kept), (protocol.tool_result_item(call_id, NOT_EXECUTED, is_error=True),)
    if block.kind == "text" and with_earlier and block.text.strip():
        kept.append(Attempt.shadow(protocol, protocol.text_block(block.text), None))
        return tuple(kept), ()
    return (), ()
