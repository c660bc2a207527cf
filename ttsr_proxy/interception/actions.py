"""What an exchange asks its driver to do, in order. The driver finishes one action before the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.sessions.record import ResponseRecord
from ttsr_proxy.sessions.store import Unfinished
from ttsr_proxy.triggers.ast import AstCheck

if TYPE_CHECKING:
    # An inquiry ends in actions itself.
    from ttsr_proxy.interception.inquiry import Inquiry


@dataclass(frozen=True, slots=True)
class StartAttempt:
    """Send this request body upstream; answer with `attempt_answered` or `attempt_lost`.

    `delay` seconds pass first (upstream's `retry-after`).
    """

    body: bytes
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class AbortAttempt:
    """Close the current upstream call at once."""


@dataclass(frozen=True, slots=True)
class Send:
    """Write bytes of the streamed response. The first sends the current attempt's status and headers."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer the client with a complete response; nothing was sent before, nothing follows but `Finish`.

    Without `headers`, those of the current attempt are used.
    """

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True, slots=True)
class Relay:
    """Pass the current attempt's answer through as it comes: status, headers and the rest of its body."""


@dataclass(frozen=True, slots=True)
class CheckAst:
    """Run the ast-grep jobs and answer with `ast_checked`, a result (or None: not inspected) for each."""

    jobs: tuple[AstCheck, ...]


@dataclass(frozen=True, slots=True)
class Save:
    """Keep the record; durable before going on if upstream saw something hidden or a reminder waits."""

    record: ResponseRecord


@dataclass(frozen=True, slots=True)
class Ask:
    """Put the questions about what was delivered to the judge, without anybody waiting for the answers."""

    inquiry: Inquiry


@dataclass(frozen=True, slots=True)
class Log:
    """Add records to the interrupt log."""

    records: tuple[InterruptRecord, ...]


@dataclass(frozen=True, slots=True)
class UpdateLog:
    """Change fields of a log record: what came of a match that was logged before."""

    record_id: str
    changes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LeaveUnfinished:
    """Remember what a retry of this request by the client inherits."""

    left: Unfinished


@dataclass(frozen=True, slots=True)
class Note:
    """Something for the process log: an event name and its fields, never content."""

    event: str
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finish:
    """The exchange is over. `broken`: the client's connection breaks as upstream's did, with no clean end."""

    broken: bool = False


Action: TypeAlias = (
    StartAttempt
    | AbortAttempt
    | Send
    | Reply
    | Relay
    | CheckAst
    | Save
    | Ask
    | Log
    | UpdateLog
    | LeaveUnfinished
    | Note
    | Finish
)
