"""A background task as its owner sees it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from ttsr_proxy.jsontext import JsonObject

TaskStatus: TypeAlias = Literal["pending", "running", "cancelling", "completed", "failed", "cancelled"]

FINISHED: tuple[TaskStatus, ...] = ("completed", "failed", "cancelled")

MAX_ERROR = 500

_SECRETS = re.compile(r"(?i)\b(?:sk-[\w-]{8,}|bearer\s+[\w.~+/=-]{8,}|[\w-]*api[_-]?key[\w-]*[=:]\s*\S+)")


@dataclass(frozen=True, slots=True)
class Task:
    """One task. Times are seconds since the epoch."""

    id: str
    user: str
    type: str
    status: TaskStatus
    stage: str
    resource_id: str
    created_at: float
    updated_at: float
    payload: JsonObject | None = None
    """What it needs to run; not shown."""
    meta: JsonObject = field(default_factory=dict)
    result: JsonObject | None = None
    error: str | None = None

    def to_json(self) -> JsonObject:
        """The record of the Tasks API."""
        return {
            "task_id": self.id,
            "task_type": self.type,
            "status": self.status,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "processing_seconds": round(self.updated_at - self.created_at, 3),
            "created_at_iso": _iso(self.created_at),
            "updated_at_iso": _iso(self.updated_at),
            "resource_id": self.resource_id,
            "meta": self.meta,
            "stage": self.stage,
            "result": self.result,
            "error": self.error,
        }


def shown_error(text: str) -> str:
    """An error as it may be shown: without secrets, at most `MAX_ERROR` characters."""
    return _SECRETS.sub("[redacted]", text)[:MAX_ERROR]


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
