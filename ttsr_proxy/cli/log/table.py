"""Entries and totals as tables."""

from __future__ import annotations

from datetime import datetime

from rich.table import Table
from rich.text import Text

from ttsr_proxy.cli.log.record import ACTION_STYLES, OUTCOME_STYLES
from ttsr_proxy.cli.terminal import cell
from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.interrupts.store import Page
from ttsr_proxy.interrupts.summary import Summary

_MATCHED_CHARACTERS = 60
_ID_CHARACTERS = 16
"""Of an id: twelve of the time and four by chance."""


def entries(page: Page) -> Table:
    """One row an entry."""
    table = Table(
        "time", "rule", "action", "outcome", "where", "matched", "model", "id", box=None, pad_edge=False
    )
    for record in page.items:
        table.add_row(*cells(record))
    return table


def totals(summary: Summary) -> Table:
    """One row a rule, the most frequent first."""
    table = Table(
        "rule",
        "matches",
        "actions",
        "outcomes",
        "tokens wasted",
        "seconds added",
        "last",
        box=None,
        pad_edge=False,
    )
    rows = sorted(summary.rules.items(), key=lambda entry: (-entry[1].count, entry[0]))
    for name, rule in rows:
        table.add_row(
            cell(name, "bold"),
            cell(str(rule.count)),
            cell(", ".join(f"{count} {action}" for action, count in rule.actions.most_common())),
            cell(", ".join(f"{count} {outcome}" for outcome, count in rule.outcomes.most_common())),
            cell(f"{rule.tokens_wasted:,}"),
            cell(f"{rule.seconds_added:.1f}"),
            cell(_local(rule.last_time), "dim"),
        )
    return table


def _local(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%m-%d %H:%M:%S")


def cells(record: InterruptRecord) -> tuple[Text, ...]:
    """An entry's row."""
    place = " ".join(part for part in (record.tool or record.source, *record.paths) if part)
    return (
        cell(_local(record.time), "dim"),
        cell(record.rule, "bold"),
        cell(
            f"{record.action} (late)" if record.late else record.action, ACTION_STYLES.get(record.action, "")
        ),
        cell(record.outcome, OUTCOME_STYLES.get(record.outcome, "dim")),
        cell(place),
        cell(record.matched, limit=_MATCHED_CHARACTERS),
        cell(record.model, "dim"),
        cell(record.id[:_ID_CHARACTERS], "dim"),
    )
