"""`ttsr-proxy rules scan`: what of a tree of files the rules would have taken back."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click
from rich.progress import MofNCompleteColumn
from rich.text import Text

from ttsr_proxy import jsontext
from ttsr_proxy.cli.options import FailOn, fail_on_option, jobs_option, place_options, rule_source_options
from ttsr_proxy.cli.progress import progress, tell_by_reason
from ttsr_proxy.cli.rules.found import check_names, kind_of, rules_of, shown_effect
from ttsr_proxy.cli.rules.judging import Judged, Manner, judge_all
from ttsr_proxy.cli.rules.sarif import sarif_log
from ttsr_proxy.cli.rules.tree import Unread, files_of
from ttsr_proxy.cli.terminal import cell, console, counted, printable
from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.triggers.globs import path_names
from ttsr_proxy.triggers.inventory import Effect, ProjectRules

_MATCHED_CHARACTERS = 80
_MEBIBYTE = 1_048_576


@dataclass(slots=True)
class Scan:
    """What a scan found so far."""

    project: Path
    effects: Mapping[str, Effect]
    """What a match of each rule would bring about, by its name."""
    files: int = 0
    lines: int = 0
    found: list[Judged] = field(default_factory=list)
    """The files with findings."""
    skipped: list[tuple[str, str]] = field(default_factory=list)
    """Paths that were not read, each with the reason."""
    not_inspected: list[tuple[str, str]] = field(default_factory=list)
    """Files that were read but not searched by everything, each with what was left out."""
    outside: int = 0
    """Files outside the project, which only absolute globs reach."""

    def take(self, judged: Judged) -> None:
        """Add the verdict on one file."""
        path = self.shown(judged.path)
        if judged.skipped is not None:
            self.skipped.append((path, judged.skipped))
            return
        self.files += 1
        self.lines += judged.lines
        self.not_inspected += ((path, what) for what in judged.not_inspected)
        if judged.findings:
            self.found.append(judged)

    def shown(self, path: str) -> str:
        """A path as a report names it: relative to the project if it is in there, else absolute."""
        absolute = os.path.abspath(path)
        names = path_names(absolute, str(self.project))
        return absolute if names.outside else names.names[0]

    @property
    def failing(self) -> dict[FailOn, int]:
        """How many findings count for each choice of `--fail-on`."""
        rules = [finding.rule for judged in self.found for finding in judged.findings]
        return {
            "any": len(rules),
            "interrupting": sum(self.effects[rule] == "interrupts" for rule in rules),
            "nothing": 0,
        }


@click.command("scan")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--rule", "names", multiple=True, help="Only this rule (repeatable).")
@click.option("--tool", default="write", show_default=True, help="Judge each file as if this tool wrote it.")
@click.option("--json", "form", flag_value="json", help="JSON instead of text.")
@click.option("--sarif", "form", flag_value="sarif", help="SARIF 2.1.0 instead of text.")
@fail_on_option
@click.option("--no-gitignore", is_flag=True, help="Read files that git ignores too.")
@click.option(
    "--max-size", metavar="MIB", type=click.FloatRange(min=0), default=1.0, show_default=True,
    help="Skip larger files.",
)  # fmt: skip
@jobs_option
@place_options
@rule_source_options
def scan_files(
    paths: tuple[Path, ...],
    names: tuple[str, ...],
    tool: str,
    form: str | None,
    fail_on: FailOn,
    no_gitignore: bool,
    max_size: float,
    jobs: int | None,
    project: Path,
    config: Path | None,
    rule_directories: tuple[Path, ...],
    extensions: tuple[Path, ...],
) -> None:
    """Judge the files under PATHS by the rules, each as if a tool had written it.

    Without PATHS the whole project is scanned. Files that git ignores, links, binary files, very large files
    and the rule files themselves are left out.

    Exit status: 0 nothing found, 1 matches found (see --fail-on), 2 an error.
    """
    started = time.monotonic()
    rules = rules_of(project, config, rule_directories, extensions)
    check_names(rules, names)
    chosen = [rule for rule in rules.ruleset.rules if not names or rule.name in names]
    kind = kind_of(rules, tool)
    reaching = {rule.name for rule in rules.ruleset.reaching("tool", tool, kind)}
    chosen = [rule for rule in chosen if rule.name in reaching]
    scan = Scan(
        Path(os.path.abspath(rules.project.path)),
        {rule.name: rules.effect(rule, "tool") for rule in chosen},
    )
    files: list[Path] = []
    # Every rule file has in it what it forbids.
    rule_files = {os.path.abspath(entry.rule.path) for entry in rules.inventory.entries if entry.rule.path}
    for item in files_of(paths or (rules.project.path,), honour_gitignore=not no_gitignore):
        if isinstance(item, Unread):
            scan.skipped.append((scan.shown(str(item.path)), item.reason))
        elif item in paths or os.path.abspath(item) not in rule_files:
            files.append(item)
    scan.outside = sum(scan.shown(str(path)).startswith("/") for path in files)
    manner = Manner(
        tuple(chosen),
        rules.ruleset.interrupt_mode,
        str(scan.project),
        tool,
        kind,
        int(max_size * _MEBIBYTE),
    )
    with progress("scanning", MofNCompleteColumn()) as bar:
        task = bar.add_task("", total=len(files))
        for judged in judge_all(
            manner, files, jobs or os.cpu_count() or 1, lambda count: bar.advance(task, count)
        ):
            scan.take(judged)
    if form == "json":
        click.echo(jsontext.encode(_as_json(scan)))
    elif form == "sarif":
        click.echo(jsontext.encode(_as_sarif(scan, rules, chosen)))
    else:
        _print(scan)
    _summarise(scan, time.monotonic() - started)
    if scan.failing[fail_on]:
        raise click.exceptions.Exit(1)


def _as_json(scan: Scan) -> JsonObject:
    return {
        "matches": [
            {
                "path": scan.shown(judged.path),
                "line": finding.line,
                "column": finding.column,
                "endLine": finding.end_line,
                "endColumn": finding.end_column,
                "rule": finding.rule,
                "interrupts": scan.effects[finding.rule] == "interrupts",
                "effect": scan.effects[finding.rule],
                "trigger": finding.trigger,
                "pattern": finding.pattern,
                "start": finding.start,
                "end": finding.end,
                "text": finding.text,
            }
            for judged in scan.found
            for finding in judged.findings
        ],
        "skipped": [{"path": path, "reason": reason} for path, reason in scan.skipped],
        "notInspected": [{"path": path, "what": what} for path, what in scan.not_inspected],
        "files": scan.files,
        "lines": scan.lines,
    }


def _as_sarif(scan: Scan, rules: ProjectRules, chosen: Sequence[Rule]) -> JsonObject:
    results = [(scan.shown(judged.path), finding) for judged in scan.found for finding in judged.findings]
    notes = [*scan.skipped, *scan.not_inspected]
    return sarif_log(chosen, scan.effects, results, notes, scan.project, rules.shown_path)


def _print(scan: Scan) -> None:
    out = console()
    for judged in scan.found:
        for finding in judged.findings:
            effect = scan.effects[finding.rule]
            note = "" if effect in ("interrupts", "reminds") else f" ({shown_effect(effect)})"
            out.print(
                Text.assemble(
                    cell(f"{scan.shown(judged.path)}:{finding.line}:{finding.column}: "),
                    cell(finding.rule, "bold red" if effect == "interrupts" else "bold yellow"),
                    ": ",
                    cell(finding.text, limit=_MATCHED_CHARACTERS),
                    note,
                ),
                soft_wrap=True,
            )


def _summarise(scan: Scan, seconds: float) -> None:
    rules = {finding.rule for judged in scan.found for finding in judged.findings}
    found = f"{counted(scan.failing['any'], 'match', 'matches')} of {counted(len(rules), 'rule')}"
    where = f"{counted(len(scan.found), 'file')} ({scan.files:,} read, {scan.lines:,} lines"
    click.echo(f"{found} in {where}, {seconds:.1f} s)", err=True)
    tell_by_reason("skipped", scan.skipped)
    for path, what in scan.not_inspected:
        click.echo(f"not inspected: {printable(path)}: {printable(what)}", err=True)
    if scan.outside:
        click.echo(
            f"{counted(scan.outside, 'file')} outside the project: rules with relative globs do not"
            " reach them; name their directory with --project",
            err=True,
        )
