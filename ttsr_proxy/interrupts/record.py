"""One match, as the interrupt log keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Action: TypeAlias = Literal[
    "interrupted", "truncated", "reminded", "deferred", "suppressed", "exhausted", "blocked", "observed"
]
INTERRUPTING: Final[frozenset[Action]] = frozenset(("interrupted", "truncated"))
"""The actions that abort an attempt. The records of one interrupt are logged together."""

Outcome: TypeAlias = Literal["pending", "clean", "violated again", "undelivered", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptRecord:
    """A match and what came of it. Texts are masked before a store keeps them."""

    id: str
    time: float
    """Seconds since the epoch (UTC)."""
    project: str
    conversation: str
    """The client's own session id (with its agent's), else the root record's id."""
    request: str
    """The exchange's id."""
    turn: int
    """Client responses on this chain before this one, from 0."""
    attempt: int
    """Upstream attempt within the response, from 1."""
    client: str
    agent: str
    model: str
    protocol: str
    rule: str
    rule_path: str
    trigger: Literal["regex", "ast", "judged"]
    pattern: str
    """The condition, the ast pattern, or the question that a judge said yes to."""
    source: Literal["text", "thinking", "tool"]
    tool: str | None
    paths: tuple[str, ...]
    matched: str
    """The matched text, at most 2,000 characters."""
    before: str
    """A little of what stood before the match."""
    after: str
    violation: str = ""
    """The block that violated, as far as it had come, at most 20,000 characters."""
    correction: str = ""
    """The output that took its place, filled in when it is known."""
    action: Action
    late: bool = False
    """The match began in text that had already been shown."""
    outcome: Outcome
    detail: str = ""
    """What else there is to say: why it was suppressed, why a retry failed."""
    held_chars: int = 0
    seconds_added: float = 0.0
    tokens_wasted: int = 0
    tokens_estimated: bool = True
    injected: str = ""
    """The reminder's text."""
    upstream_requests: tuple[str, ...] = ()
    """Upstream request ids, in the order of attempts."""
    false_positive: bool = False
    """A person said that the rule should not have matched here."""
