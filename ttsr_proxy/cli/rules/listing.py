"""`ttsr-proxy rules list` and `rules show`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ttsr_proxy import jsontext
from ttsr_proxy.cli.options import place_options, rule_source_options
from ttsr_proxy.cli.rules.found import check_names, json_option, rules_of
from ttsr_proxy.cli.terminal import cell, console, printable
from ttsr_proxy.rules.buckets import Entry
from ttsr_proxy.triggers.inventory import ProjectRules

_COLUMNS = ("rule", "bucket", "provider", "watches", "interrupts", "repeats", "file", "note")
_TABLE_COLUMNS = 150
"""A terminal with fewer shows each rule as some lines of its own."""

_BUCKET_STYLES = {"ttsr": "green", "always-apply": "cyan", "rulebook": "blue", None: "dim"}


@click.command("list")
@json_option
@place_options
@rule_source_options
def list_rules(
    as_json: bool,
    project: Path,
    config: Path | None,
    rule_directories: tuple[Path, ...],
    extensions: tuple[Path, ...],
) -> None:
    """List every rule with its file, its state and the reason for it.

    A * marks what the rule sets itself, where the configuration says something else for the others.
    """
    found = rules_of(project, config, rule_directories, extensions)
    problems = found.inventory.problems
    if as_json:
        listed = {
            "rules": [found.to_dict(entry) for entry in found.inventory.entries],
            "problems": [{"path": problem.path, "message": problem.message} for problem in problems],
        }
        click.echo(jsontext.encode(listed))
        return
    out = console()
    rows = [_row(found, entry) for entry in found.inventory.entries]
    if out.width < _TABLE_COLUMNS:
        for row in rows:
            _print_block(out, row)
    else:
        table = Table(box=None, pad_edge=False)
        for name in _COLUMNS:
            table.add_column(name, overflow="fold")
        for row in rows:
            table.add_row(*row)
        out.print(table)
    for problem in problems:
        click.echo(f"{printable(problem.path)}: {printable(problem.message)}", err=True)


@click.command("show")
@click.argument("name")
@json_option
@place_options
@rule_source_options
def show_rule(
    name: str,
    as_json: bool,
    project: Path,
    config: Path | None,
    rule_directories: tuple[Path, ...],
    extensions: tuple[Path, ...],
) -> None:
    """Show all of the rule NAME: its keys, what holds for it, and its text."""
    found = rules_of(project, config, rule_directories, extensions)
    check_names(found, [name])
    entries = [entry for entry in found.inventory.entries if entry.rule.name == name]
    if as_json:
        shown = [{**found.to_dict(entry), "content": entry.rule.content} for entry in entries]
        click.echo(jsontext.encode({"rules": shown}))
        return
    out = console()
    for entry in entries:
        for key, value in found.to_dict(entry).items():
            if value not in (None, [], ""):
                text = jsontext.encode(value).decode() if isinstance(value, dict | list) else str(value)
                out.print(Text.assemble((f"{key}: ", "bold"), cell(text)), soft_wrap=True)
        out.print(Text("\n" + printable(entry.rule.content, keep="\n\t") + "\n"), soft_wrap=True)


def _row(found: ProjectRules, entry: Entry) -> tuple[Text, ...]:
    rule = entry.rule
    watches = interrupts = repeats = ""
    if entry.bucket == "ttsr":
        watches, interrupts, repeats = (
            _watches(found, entry),
            _interrupts(found, entry),
            _repeats(found, entry),
        )
    agents = f"for {', '.join(rule.agents)}" if rule.agents else None
    notes = [entry.reason, agents, *rule.warnings, *found.warnings(entry)]
    return (
        cell(rule.name, "bold" if entry.bucket else "dim"),
        cell(entry.bucket or entry.state, _BUCKET_STYLES[entry.bucket]),
        cell(entry.provider),
        cell(watches),
        cell(interrupts),
        cell(repeats),
        cell(found.shown_path(entry.rule)),
        cell("; ".join(note for note in notes if note), "yellow" if entry.bucket else "dim"),
    )


def _print_block(out: Console, row: tuple[Text, ...]) -> None:
    name, bucket, provider, watches, interrupts, repeats, file, note = row
    out.print(Text("  ").join(part for part in (name, bucket, provider, interrupts, repeats) if part))
    for part in (watches, file, note):
        if part:
            out.print(Text.assemble("    ", part), soft_wrap=True)


def _watches(found: ProjectRules, entry: Entry) -> str:
    """The scope, with tools that share a glob together: `edit, write: *.py`."""
    by_glob: dict[str, list[str]] = {}
    for token in found.effective(entry)["scope"]:
        name, opening, glob = token.partition("(")
        by_glob.setdefault(glob.removesuffix(")") if opening else "", []).append(name.removeprefix("tool:"))
    parts = [", ".join(tools) + (f": {glob}" if glob else "") for glob, tools in by_glob.items()]
    gate = f" in {', '.join(entry.rule.globs)}" if entry.rule.globs else ""
    return "; ".join(parts) + gate


def _interrupts(found: ProjectRules, entry: Entry) -> str:
    holds = found.effective(entry)
    own = holds["overrides"]
    if entry.rule.question is not None:
        return "judged, observed" if holds["observe"] else "judged, never"
    if holds["observe"]:
        return "observed" + ("*" if "observe" in own else "")
    mode = holds["interruptMode"] + ("*" if "interruptMode" in own else "")
    if holds["interruptMode"] == "never":
        return str(mode)
    budget = f"{holds['maxInterrupts']}x" + ("*" if "maxInterrupts" in own else "")
    spent = " then block" if holds["onExhausted"] == "block" else ""
    return f"{mode} {budget}{spent}" + ("*" if "onExhausted" in own else "")


def _repeats(found: ProjectRules, entry: Entry) -> str:
    holds = found.effective(entry)
    gap = f" {holds['repeatGap']}" if holds["repeatMode"] == "after-gap" else ""
    own = {"repeatMode", "repeatGap"} & set(holds["overrides"])
    return f"{holds['repeatMode']}{gap}" + ("*" if own else "")
