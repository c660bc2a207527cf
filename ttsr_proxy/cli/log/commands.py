"""`ttsr-proxy log` and its options."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
import time
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import get_args

import click
from click.core import ParameterSource
from rich.console import Console
from rich.text import Text

from ttsr_proxy import jsontext
from ttsr_proxy.cli.log import reading, table
from ttsr_proxy.cli.log.record import print_record
from ttsr_proxy.cli.options import place_options, settings_for, state_option
from ttsr_proxy.cli.terminal import console
from ttsr_proxy.config import Settings
from ttsr_proxy.interrupts import as_csv, as_json
from ttsr_proxy.interrupts.record import Action, InterruptRecord, Outcome
from ttsr_proxy.interrupts.store import InterruptFilter

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_PLACE = ("project", "config", "state")
"""Options that mean the same for `log` and `log show`."""


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


@click.group(invoke_without_command=True)
@click.option("--follow", "-f", is_flag=True, help="Go on with new entries as they arrive.")
@click.option(
    "--json", "as_lines", is_flag=True, help="JSON as the API gives it; one entry a line with --follow."
)
@click.option("--csv", "as_table", is_flag=True, help="Every field as comma-separated values.")
@click.option("--totals", is_flag=True, help="Totals by rule instead of entries.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="The newest so many."
)
@click.option("--all", "everything", is_flag=True, help="All entries instead of the newest.")
@click.option("--rule", help="Only this rule.")
@click.option("--file", "path", help="Only entries with a path that contains this text.")
@click.option("--model", help="Only this model.")
@click.option("--conversation", help="Only this conversation.")
@click.option("--request", help="Only this request: an answer's x-ttsr-request-id.")
@click.option("--action", type=click.Choice(get_args(Action)), help="Only this action.")
@click.option("--outcome", type=click.Choice(get_args(Outcome)), help="Only this outcome.")
@click.option("--client", help="Only this agent, as the log names it (claude-code, codex, ...).")
@click.option("--source", type=click.Choice(["text", "thinking", "tool"]), help="Only this kind of output.")
@click.option("--of-project", metavar="NAME", help="Only the configured project of this name.")
@click.option("--since", type=_Moment(), help="Only since then: 30m, 2h, 7d, or a date.")
@click.option("--until", type=_Moment(), help="Only until then.")
@place_options
@state_option
@click.pass_context
def log(
    ctx: click.Context,
    follow: bool,
    as_lines: bool,
    as_table: bool,
    totals: bool,
    limit: int,
    everything: bool,
    rule: str | None,
    path: str | None,
    model: str | None,
    conversation: str | None,
    request: str | None,
    action: str | None,
    outcome: str | None,
    client: str | None,
    source: str | None,
    of_project: str | None,
    since: float | None,
    until: float | None,
    project: Path,
    config: Path | None,
    state: str | None,
) -> None:
    """Show the interrupt log, newest first; with --follow, newest last.

    In CSV a text that a spreadsheet would take for a formula has an apostrophe before it.
    """
    if ctx.invoked_subcommand:
        _leave_to_subcommand(ctx)
        return
    where = InterruptFilter(
        rule=rule,
        path=path,
        model=model,
        conversation=conversation,
        request=request,
        action=action,
        outcome=outcome,
        client=client,
        source=source,
        project=of_project,
        since=since,
        until=until,
    )
    forms = {"--follow": follow, "--totals": totals, "--csv": as_table}
    _refuse_together(name for name, chosen in forms.items() if chosen)
    _refuse_together(name for name, chosen in {"--json": as_lines, "--csv": as_table}.items() if chosen)
    _refuse_together(name for name, chosen in {"--follow": follow, "--all": everything}.items() if chosen)
    settings = settings_for(project, config, state=state)
    most = None if everything else limit
    with contextlib.suppress(KeyboardInterrupt):
        if totals:
            asyncio.run(_print_totals(settings, where, as_lines))
        elif follow:
            asyncio.run(_follow(settings, where, limit, as_lines))
        elif as_table:
            asyncio.run(_print_csv(settings, where, most))
        else:
            asyncio.run(_print_entries(settings, where, most, as_lines))


@log.command("show")
@click.argument("record_id", metavar="ID")
@click.option("--json", "as_lines", is_flag=True, help="JSON as the API gives it.")
@place_options
@state_option
@click.pass_context
def show(
    ctx: click.Context, record_id: str, as_lines: bool, project: Path, config: Path | None, state: str | None
) -> None:
    """Show one entry whole: what the model wrote, the reminder, and what it wrote then.

    The beginning of an ID will do where only one entry begins so.
    """
    settings = settings_for(project, config, state=state)
    record = asyncio.run(reading.find(settings.state, record_id))
    if as_lines:
        click.echo(jsontext.encode(as_json.item(record)))
    else:
        print_record(console(), record)


def _leave_to_subcommand(ctx: click.Context) -> None:
    """Where the log is may be said before the subcommand's name too; all else would have no effect there."""
    place = {}
    for option in ctx.command.params:
        name = option.name
        if name is None or ctx.get_parameter_source(name) is ParameterSource.DEFAULT:
            continue
        if name not in _PLACE:
            raise click.UsageError(f"{option.opts[0]} does not go with {ctx.invoked_subcommand}")
        place[name] = ctx.params[name]
    ctx.default_map = {str(ctx.invoked_subcommand): place}


def _refuse_together(options: Iterable[str]) -> None:
    given = tuple(options)
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} do not go together")


async def _print_totals(settings: Settings, where: InterruptFilter, as_lines: bool) -> None:
    summary = await reading.summary(settings.state, where)
    if as_lines:
        click.echo(jsontext.encode(summary.to_json()))
    elif summary.count:
        console().print(table.totals(summary))
    else:
        _tell_of_nothing(settings)


async def _print_entries(
    settings: Settings, where: InterruptFilter, limit: int | None, as_lines: bool
) -> None:
    page = await reading.one_page(settings.state, where, limit)
    if as_lines:
        click.echo(jsontext.encode(as_json.page(page)))
    elif page.items:
        console().print(table.entries(page))
    else:
        _tell_of_nothing(settings)


def _tell_of_nothing(settings: Settings) -> None:
    click.echo(f"Nothing in the log at {settings.state}.", err=True)


async def _print_csv(settings: Settings, where: InterruptFilter, limit: int | None) -> None:
    # In bytes, since a text stream would change the line ends that RFC 4180 asks for.
    out = sys.stdout.buffer
    out.write(as_csv.header().encode())
    async for page in reading.pages(settings.state, where, limit):
        # What UTF-8 cannot hold (lone surrogates) is shown escaped.
        out.write(as_csv.lines(page.items).encode("utf-8", "backslashreplace"))


async def _follow(settings: Settings, where: InterruptFilter, limit: int, as_lines: bool) -> None:
    out = console()
    async with reading.log_at(settings.state) as store:
        feed = store.follow(where, None)
        # The feed starts at the call, so an entry that arrives before this page is read is in both.
        shown = (await store.page(where, limit, None)).items
        for record in reversed(shown):
            _print_line(out, record, as_lines)
        known = {record.id for record in shown}
        async for record in feed:
            if record.id not in known:
                _print_line(out, record, as_lines)


def _print_line(out: Console, record: InterruptRecord, as_lines: bool) -> None:
    if as_lines:
        click.echo(jsontext.encode(as_json.item(record)))
    else:
        out.print(Text("  ").join(table.cells(record)), soft_wrap=True)
