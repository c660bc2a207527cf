"""The figures of the pages, from counts that the store makes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ttsr_proxy.interrupts.store import InterruptFilter, InterruptStore, Tally
from ttsr_proxy.web.dashboard.charts import Chart, chart, period_of

_INTERRUPTING = frozenset({"interrupted", "truncated"})
_KEPT = frozenset({"clean"})
_BROKEN = frozenset({"violated again", "failed"})


@dataclass(slots=True)
class Totals:
    """Counts of some records."""

    matches: int = 0
    interrupts: int = 0
    held: int = 0
    """Corrected after the reminder."""
    again: int = 0
    """Violated again, or not corrected since the retry failed."""
    tokens_wasted: int = 0
    seconds_added: float = 0.0
    false_positives: int = 0
    last_time: float = 0.0

    def add(self, action: str, outcome: str, tally: Tally) -> None:
        """Count further records of one action and outcome."""
        self.matches += tally.count
        self.interrupts += tally.count if action in _INTERRUPTING else 0
        self.held += tally.count if outcome in _KEPT else 0
        self.again += tally.count if outcome in _BROKEN else 0
        self.tokens_wasted += tally.tokens_wasted
        self.seconds_added += tally.seconds_added
        self.false_positives += tally.false_positives
        self.last_time = max(self.last_time, tally.last_time)

    @property
    def held_percent(self) -> int | None:
        """The share of reminders that were kept to, of those whose outcome is known."""
        known = self.held + self.again
        return round(100 * self.held / known) if known else None


@dataclass(frozen=True, slots=True)
class Overview:
    """What happened in a span of time."""

    totals: Totals
    rules: Sequence[tuple[str, Totals]]
    """By name, the most frequent first."""
    chart: Chart


async def overview(store: InterruptStore, where: InterruptFilter, since: float, until: float) -> Overview:
    """The figures of the records that `where` selects, drawn from `since` to `until`."""
    period = period_of(until - since)
    tallies = await store.tally(where, ("period", "rule", "action", "outcome"), width=period)
    totals, rules = Totals(), dict[str, Totals]()
    for tally in tallies:
        _, rule, action, outcome = tally.keys
        totals.add(action, outcome, tally)
        rules.setdefault(rule, Totals()).add(action, outcome, tally)
    drawn = chart(((tally.keys[0], tally.keys[3], tally) for tally in tallies), since, until, period)
    return Overview(totals, sorted(rules.items(), key=lambda rule: (-rule[1].matches, rule[0])), drawn)


async def by_rule(store: InterruptStore, where: InterruptFilter) -> dict[str, Totals]:
    """Counts of each rule."""
    return _grouped(
        (tally.keys[0], tally) for tally in await store.tally(where, ("rule", "action", "outcome"))
    )


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation's entries in the log."""

    name: str
    project: str
    client: str
    totals: Totals


async def conversations(store: InterruptStore, where: InterruptFilter, limit: int) -> list[Conversation]:
    """The conversations in which a rule matched, the latest first."""
    tallies = await store.tally(
        where, ("conversation", "project", "client", "action", "outcome"), latest=limit
    )
    grouped: dict[tuple[str, str, str], Totals] = {}
    for tally in tallies:
        name, project, client, action, outcome = tally.keys
        grouped.setdefault((name, project, client), Totals()).add(action, outcome, tally)
    latest = sorted(grouped.items(), key=lambda entry: -entry[1].last_time)[:limit]
    return [Conversation(*keys, totals) for keys, totals in latest]


def _grouped(tallies: Iterable[tuple[str, Tally]]) -> dict[str, Totals]:
    grouped: dict[str, Totals] = {}
    for name, tally in tallies:
        grouped.setdefault(name, Totals()).add(tally.keys[-2], tally.keys[-1], tally)
    return grouped
