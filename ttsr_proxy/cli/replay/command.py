"""`ttsr-proxy replay`: recorded conversations against today's rules."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import click
from rich.progress import DownloadColumn

from ttsr_proxy import jsontext
from ttsr_proxy.cli.options import (
    FailOn,
    fail_on_option,
    jobs_option,
    place_options,
    rule_source_options,
)
from ttsr_proxy.cli.progress import progress
from ttsr_proxy.cli.replay.judging import Manner, Replayed, replay_all, size_of
from ttsr_proxy.cli.replay.report import Report
from ttsr_proxy.cli.rules.found import check_names, json_option, rules_of
from ttsr_proxy.cli.rules.tree import Unread, files_of
from ttsr_proxy.errors import TtsrError
from ttsr_proxy.interrupts.record import Action
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.triggers.inventory import ProjectRules
from ttsr_proxy.triggers.ruleset import RuleSet


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--rule", "names", multiple=True, help="Only this rule, even if it is off (repeatable).")
@click.option(
    "--action",
    "actions",
    type=click.Choice(get_args(Action)),
    multiple=True,
    help="Only matches that would have led to this (repeatable).",
)
@click.option("--totals", is_flag=True, help="Totals by rule instead of matches.")
@json_option
@fail_on_option
@jobs_option
@place_options
@rule_source_options
def replay(
    paths: tuple[Path, ...],
    names: tuple[str, ...],
    actions: tuple[str, ...],
    totals: bool,
    as_json: bool,
    fail_on: FailOn,
    jobs: int | None,
    project: Path,
    config: Path | None,
    rule_directories: tuple[Path, ...],
    extensions: tuple[Path, ...],
) -> None:
    """Judge recorded conversations by today's rules: what would have been done, and where.

    PATHS are transcripts of Claude Code (~/.claude/projects) or Codex (~/.codex/sessions), captures of this
    proxy, or directories that hold them (*.jsonl).

    Exit status: 0 nothing found, 1 matches found (see --fail-on), 2 an error.
    """
    started = time.monotonic()
    rules = rules_of(project, config, rule_directories, extensions)
    check_names(rules, names)
    chosen = _chosen(rules, names)
    report = Report([rule.name for rule in chosen], frozenset(actions))
    files: list[Path] = []
    for item in _files(paths):
        if isinstance(item, Unread):
            report.take(Replayed(str(item.path), skipped=item.reason))
        else:
            files.append(item)
    manner = Manner(chosen, rules.project.ttsr, os.path.abspath(rules.project.path))
    with progress("replaying", DownloadColumn()) as bar:
        task = bar.add_task("", total=sum(map(size_of, files)))
        for replayed in replay_all(
            manner, files, jobs or os.cpu_count() or 1, lambda size: bar.advance(task, size)
        ):
            report.take(replayed)
    if as_json:
        click.echo(jsontext.encode(report.as_json()))
    else:
        if not totals:
            report.print_matches()
        report.print_totals()
    report.tell(time.monotonic() - started)
    if report.failing(fail_on):
        raise click.exceptions.Exit(1)


def _chosen(rules: ProjectRules, names: Sequence[str]) -> tuple[Rule, ...]:
    """The rules that take part: those that watch the stream, or those that are named, active or not.

    Raises TtsrError for a named rule that cannot watch the stream.
    """
    if not names:
        return rules.ruleset.rules
    first: dict[str, Rule] = {}
    for entry in rules.inventory.entries:
        if entry.rule.name in names and entry.rule.name not in first:
            first[entry.rule.name] = replace(entry.rule, enabled=True)
            if entry.bucket != "ttsr" and entry.reason:
                off = f"{entry.rule.name} is not in use ({entry.reason})"
                click.echo(f"ttsr-proxy: {off}; it takes part because it is named", err=True)
    for name, reason in RuleSet(first.values()).rejected.items():
        raise TtsrError(f"rule {name!r} cannot be replayed: {reason}")
    return tuple(first.values())


def _files(paths: Sequence[Path]) -> Iterator[Path | Unread]:
    """Files that are named, and all `*.jsonl` below the directories."""
    for item in files_of(paths, honour_gitignore=False):
        if isinstance(item, Unread) or item.suffix == ".jsonl" or item in paths:
            yield item
