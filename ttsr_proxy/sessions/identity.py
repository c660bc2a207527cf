"""Who is asking: which agent, which of its sessions and sub-agents, and whether this is its side traffic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ttsr_proxy.jsontext import JsonObject


@dataclass(frozen=True, slots=True)
class Identity:
    """What a client tells about itself."""

    client: str
    """`claude-code`, `codex`, `opencode`, `aider`, `omp`, `anthropic-sdk`, ... or `unknown`."""
    session: str | None
    """The client's own session id. It groups conversations in the log and decides nothing."""
    agent: str
    """`main`, or the name or id of the sub-agent."""
    helper: str | None
    """Why this is side traffic of a recognised agent (`no tools`, `compaction`, ...), else None."""
    keepalive_active: bool
    """The client gives up on a stream of mere pings or comments: keep-alives must carry (empty) content."""


def identify(headers: Mapping[str, str], body: JsonObject, *, path: str = "") -> Identity:
    """Who sent this request. `headers` have lower-case names; `path` is the request's, without its query."""
    raise NotImplementedError
