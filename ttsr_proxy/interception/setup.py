"""Everything an exchange needs to know before it starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ttsr_proxy.config import TtsrSettings
from ttsr_proxy.protocols.protocol import WireProtocol
from ttsr_proxy.protocols.request import ApiRequest
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.sessions.identity import Activity
from ttsr_proxy.sessions.recall import Recalled
from ttsr_proxy.sessions.store import Unfinished
from ttsr_proxy.toolcalls.families import FamilyTable
from ttsr_proxy.triggers.ruleset import RuleSet


@dataclass(frozen=True, slots=True)
class Requester:
    """Who asks, as records and the log name it."""

    tenant: str
    project: str
    project_root: str | None
    session: str | None
    """What the client sent to identify its conversation; groups the log and decides nothing."""
    client: str
    agent: str
    activity: Activity
    observed: str | None
    """Why this request is only observed (a helper call of a known agent), else None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    id: str
    """The exchange's: the id of the client's request."""
    protocol: WireProtocol
    request: ApiRequest
    raw: bytes
    """The request body as the client sent it."""
    recalled: Recalled
    ruleset: RuleSet
    families: FamilyTable
    settings: TtsrSettings
    requester: Requester
    left: Unfinished | None
    """What an unfinished exchange of the same request left behind."""
    new_id: Callable[[], str]
    rule_path: Callable[[Rule], str]
    """A rule's path as it may be shown: relative to the project or home."""
    wall_offset: float
    """Seconds to add to `now` for the time since the epoch."""
    prompt: str = ""
    """What the rulebook adds to the system prompt of a conversation that begins with this request."""
    readable: Mapping[str, str] = field(default_factory=dict)
    """Name to content of the rules that the proxy reads to the model."""
    judged: RuleSet = field(default_factory=lambda: RuleSet((), judged=True))
    """The rules that a judge is asked about; none without a judge."""
