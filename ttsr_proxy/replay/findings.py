"""What a replay finds: a match, where it stands, and what would have been done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ttsr_proxy.interception.blocks import BlockMatch, WatchedBlock
from ttsr_proxy.interception.journal import CONTEXT_CHARS, MATCHED_CHARS
from ttsr_proxy.interrupts.masking import mask_together
from ttsr_proxy.interrupts.record import Action
from ttsr_proxy.replay.steps import Output
from ttsr_proxy.triggers.match import Source

INTERRUPTING: frozenset[Action] = frozenset(("interrupted", "truncated", "blocked"))
"""The actions that take output back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One match. The names are those of the interrupt log; texts are masked."""

    line: int
    time: str
    conversation: str
    client: str
    agent: str
    model: str
    turn: int
    attempt: int
    rule: str
    trigger: Literal["regex", "ast"]
    pattern: str
    source: Source
    tool: str | None
    paths: tuple[str, ...]
    matched: str
    before: str
    after: str
    action: Action
    detail: str
    identity: tuple[str, ...] | None
    """Equal for the same match in a copy of the same output; None if copies cannot be told."""


def finding(
    one: BlockMatch, block: WatchedBlock, output: Output, line: int, turn: int, action: Action, detail: str
) -> Finding:
    """A match in a block that is complete, as it may be shown."""
    match, text = one.match, block.view_text(one.view)
    start, end = match.start, match.end
    (before, matched, after), (_, *paths) = mask_together(
        (
            text[max(0, start - CONTEXT_CHARS) : start],
            text[start:end][:MATCHED_CHARS],
            text[end : end + CONTEXT_CHARS],
        ),
        (text, *one.context.paths),
    )
    speaker = output.speaker
    where = (output.identity, block.start.call_id or "", match.rule.name, str(one.view), str(start), str(end))
    return Finding(
        line=line,
        time=output.time,
        conversation=speaker.conversation,
        client=speaker.client,
        agent=speaker.agent,
        model=speaker.model,
        turn=turn,
        attempt=output.attempt,
        rule=match.rule.name,
        trigger=match.trigger,
        pattern=match.pattern,
        source=one.context.source,
        tool=one.context.tool,
        paths=tuple(paths),
        matched=matched,
        before=before,
        after=after,
        action=action,
        detail=detail,
        identity=(*where, matched) if output.identity else None,
    )
