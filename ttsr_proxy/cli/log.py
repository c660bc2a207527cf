"""`ttsr-proxy log`: the interrupt log on the terminal."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from datetime import datetime
from pathlib import Path
from typing import get_args

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ttsr_proxy import jsontext
from ttsr_proxy.cli.options import place_options, settings_for, state_option
from ttsr_proxy.cli.terminal import cell, console
from ttsr_proxy.interrupts import as_json
from ttsr_proxy.interrupts.record import Action, InterruptRecord, Outcome
from ttsr_proxy.interrupts.sqlite import SqliteInterruptStore
from ttsr_proxy.interrupts.store import InterruptFilter, Page
from ttsr_proxy.interrupts.summary import Summary, summarise

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_MATCHED_CHARACTERS = 60
_ACTION_STYLES = {"interrupted": "yellow", "truncated": "yellow", "exhausted": "red", "blocked": "red"}
_OUTCOME_STYLES = {"clean": "green", "violated again": "red", "failed": "red", "undelivered": "red"}


class _Moment(click.ParamType[float]):
    """A time in the past: `90s`, `30m`, `2h`, `7d`, or a date and time (local unless it has an offset)."""

    name = "when"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        if ago := re.fullmatch(r"(\d+)([smhdw])", value):
            return time.time() - int(ago[1]) * _UNITS[ago[2]]
        try:
            return datetime.fromisoformat(value).timestamp()
        except ValueError:
            self.fail(f"{value!r} is neither an age (30m, 2h, 7d) nor a date (2026-03-01T12:00)", param, ctx)


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Go on with new entries as they arrive.")
@click.option(
    "--json", "as_lines", is_flag=True, help="JSON as the API gives it; one entry a line with --follow."
)
@click.option("--totals", is_flag=True, help="Totals by rule instead of entries.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="The newest so many."
)
@click.option("--rule", help="Only this rule.")
@click.option("--file", "path", help="Only entries with a path that contains this text.")
@click.option("--model", help="Only this model.")
@click.option("--conversation", help="Only this conversation.")
@click.option("--request", help="Only this request: an answer's x-ttsr-request-id.")
@click.option("--action", type=click.Choice(get_args(Action)), help="Only this action.")
@click.option("--outcome", type=click.Choice(get_args(Outcome)), help="Only this outcome.")
@click.option("--since", type=_Moment(), help="Only since then: 30m, 2h, 7d, or a date.")
@place_options
@state_option
def log(
    follow: bool,
    as_lines: bool,
    totals: bool,
    limit: int,
    rule: str | None,
    path: str | None,
    model: str | None,
    conversation: str | None,
    request: str | None,
    action: str | None,
    outcome: str | None,
    since: float | None,
    project: Path,
    config: Path | None,
    state: str | None,
) -> None:
    """Show the interrupt log, newest first; with --follow, newest last."""
    where = InterruptFilter(
        rule=rule,
        path=path,
        model=model,
        conversation=conversation,
        request=request,
        action=action,
        outcome=outcome,
        since=since,
    )
    file = settings_for(project, config, state=state).state
    if follow and totals:
        raise click.UsageError("--follow and --totals do not go together")
    if totals:
        summary = asyncio.run(_summary(file, where)) if file.exists() else Summary()
        if as_lines:
            click.echo(jsontext.encode(summary.to_json()))
        elif summary.count:
            console().print(_totals(summary))
        else:
            click.echo(f"Nothing in the log at {file}.", err=True)
        return
    if follow:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(_follow(file, where, limit, as_lines))
        return
    # Reading must not create a store at a mistyped path.
    page = asyncio.run(_page(file, where, limit)) if file.exists() else Page((), None)
    if as_lines:
        click.echo(jsontext.encode(as_json.page(page)))
    elif page.items:
        console().print(_table(page))
    else:
        click.echo(f"Nothing in the log at {file}.", err=True)


async def _page(file: Path, where: InterruptFilter, limit: int) -> Page:
    store = SqliteInterruptStore(file)
    try:
        return await store.page(where, limit, None)
    finally:
        await store.close()


async def _summary(file: Path, where: InterruptFilter) -> Summary:
    store = SqliteInterruptStore(file)
    try:
        return await summarise(store, where)
    finally:
        await store.close()


async def _follow(file: Path, where: InterruptFilter, limit: int, as_lines: bool) -> None:
    out = console()
    store = SqliteInterruptStore(file)
    try:
        feed = store.follow(where, None)
        # The feed starts at the call, so an entry that arrives before this page is read is in both.
        shown = (await store.page(where, limit, None)).items
        for record in reversed(shown):
            _print_line(out, record, as_lines)
        known = {record.id for record in shown}
        async for record in feed:
            if record.id not in known:
                _print_line(out, record, as_lines)
    finally:
        await store.close()


def _print_line(out: Console, record: InterruptRecord, as_lines: bool) -> None:
    if as_lines:
        click.echo(jsontext.encode(as_json.item(record)))
    else:
        out.print(Text("  ").join(_cells(record)), soft_wrap=True)


def _table(page: Page) -> Table:
    table = Table("time", "rule", "action", "outcome", "where", "matched", "model", box=None, pad_edge=False)
    for record in page.items:
        table.add_row(*_cells(record))
    return table


def _totals(summary: Summary) -> Table:
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


def _cells(record: InterruptRecord) -> tuple[Text, ...]:
    place = " ".join(part for part in (record.tool or record.source, *record.paths) if part)
    return (
        cell(_local(record.time), "dim"),
        cell(record.rule, "bold"),
        cell(
            f"{record.action} (late)" if record.late else record.action, _ACTION_STYLES.get(record.action, "")
        ),
        cell(record.outcome, _OUTCOME_STYLES.get(record.outcome, "dim")),
        cell(place),
        cell(record.matched, limit=_MATCHED_CHARACTERS),
        cell(record.model, "dim"),
    )
