"""Totals over the log: how often each rule fired, what was done, what came of it, what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from ttsr_proxy.interrupts.as_json import iso_time
from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.interrupts.store import InterruptFilter, InterruptStore
from ttsr_proxy.jsontext import JsonObject

_PAGE: Final = 1000


@dataclass(slots=True)
class RuleTotals:
    """One rule's share, and where it fired last."""

    count: int = 0
    actions: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    tokens_wasted: int = 0
    seconds_added: float = 0.0
    last_time: float = 0.0
    last_source: str = ""
    last_paths: tuple[str, ...] = ()


@dataclass(slots=True)
class Summary:
    """Totals of the records that a filter selects."""

    since: float | None = None
    """Time of the oldest record counted, so that a number is never taken for more than it covers."""
    until: float | None = None
    """Time of the newest record counted."""
    count: int = 0
    actions: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    rules: dict[str, RuleTotals] = field(default_factory=dict)
    tokens_wasted: int = 0
    tokens_estimated: bool = False
    """At least one of the token counts is an estimate."""
    seconds_added: float = 0.0

    def add(self, records: Iterable[InterruptRecord]) -> None:
        """Count further records, in any order."""
        for record in records:
            self.count += 1
            self.since = record.time if self.since is None else min(self.since, record.time)
            self.until = record.time if self.until is None else max(self.until, record.time)
            self.tokens_estimated |= record.tokens_estimated and record.tokens_wasted > 0
            rule = self.rules.setdefault(record.rule, RuleTotals())
            rule.count += 1
            if record.time >= rule.last_time:
                rule.last_time, rule.last_source = record.time, record.source
                rule.last_paths = record.paths
            for totals in (self, rule):
                totals.actions[record.action] += 1
                totals.outcomes[record.outcome] += 1
                totals.tokens_wasted += record.tokens_wasted
                totals.seconds_added += record.seconds_added

    def to_json(self) -> JsonObject:
        """The totals with times as in the log's JSON, rules by descending count."""
        rules = sorted(self.rules.items(), key=lambda entry: (-entry[1].count, entry[0]))
        return {
            **msgspec.to_builtins(self),
            "since": None if self.since is None else iso_time(self.since),
            "until": None if self.until is None else iso_time(self.until),
            "rules": {
                name: msgspec.to_builtins(totals) | {"last_time": iso_time(totals.last_time)}
                for name, totals in rules
            },
        }


async def summarise(store: InterruptStore, where: InterruptFilter) -> Summary:
    """Totals of all records that the filter selects. Raises StoreError as the store does."""
    summary = Summary()
    cursor: str | None = None
    while True:
        page = await store.page(where, _PAGE, cursor)
        summary.add(page.items)
        cursor = page.next
        if cursor is None:
            return summary
