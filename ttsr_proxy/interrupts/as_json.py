"""The log as JSON: what the API, the feed and `ttsr-proxy log --json` show."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.interrupts.store import Page
from ttsr_proxy.jsontext import JsonObject


def item(record: InterruptRecord) -> JsonObject:
    """One record: its fields by name, with `time` as ISO 8601 in UTC with milliseconds."""
    fields: JsonObject = msgspec.to_builtins(record)
    lists = {name: list(value) for name, value in fields.items() if isinstance(value, tuple)}
    return fields | lists | {"time": iso_time(record.time)}


def page(found: Page) -> JsonObject:
    """One page: `{"items": [...], "next": cursor or null}`."""
    return {"items": [item(record) for record in found.items], "next": found.next}


def iso_time(seconds: float) -> str:
    """`2026-03-01T12:00:00.250Z` for seconds since the epoch."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
