"""What commands that go through many files tell meanwhile and afterwards, on standard error."""

from __future__ import annotations

from collections.abc import Iterable

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

from ttsr_proxy.cli.terminal import printable


def progress(doing: str, amount: ProgressColumn) -> Progress:
    """A progress bar if standard error is a terminal; `amount` shows how far it is."""
    errors = Console(stderr=True)
    return Progress(
        TextColumn(doing),
        BarColumn(),
        amount,
        TimeRemainingColumn(),
        console=errors,
        transient=True,
        disable=not errors.is_terminal,
    )


def tell_by_reason(what: str, notes: Iterable[tuple[str, str]]) -> None:
    """One line for each reason, with the first path that it is said of."""
    reasons: dict[str, list[str]] = {}
    for path, reason in notes:
        reasons.setdefault(reason, []).append(path)
    for reason, paths in sorted(reasons.items()):
        more = f" and {len(paths) - 1:,} more" if len(paths) > 1 else ""
        click.echo(f"{what}, {printable(reason)}: {printable(paths[0])}{more}", err=True)
