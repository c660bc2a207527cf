"""`ttsr-proxy rules`: what rules there are, and what they do."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import click
from rich.table import Table
from rich.text import Text

from ttsr_proxy import jsontext
from ttsr_proxy.cli.options import place_options, rule_source_options, settings_for
from ttsr_proxy.cli.terminal import cell, console, printable
from ttsr_proxy.cli.trial import Verdict, place, to_dict, try_rules
from ttsr_proxy.errors import TtsrError
from ttsr_proxy.rules.buckets import Entry
from ttsr_proxy.toolcalls.families import FamilyTable
from ttsr_proxy.triggers.inventory import ProjectRules, effective, project_rules
from ttsr_proxy.triggers.match import Source, StreamContext

_MATCHED_CHARACTERS = 80
_BUCKET_STYLES = {"ttsr": "green", "always-apply": "cyan", "rulebook": "blue", None: "dim"}

json_option = click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")


@click.group()
def rules() -> None:
    """See what rules there are, and try them."""


@rules.command("list")
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
    """List every rule with its file, its state and the reason for it."""
    found = _found(project, config, rule_directories, extensions)
    problems = found.inventory.problems
    if as_json:
        listed = {
            "rules": [found.to_dict(entry) for entry in found.inventory.entries],
            "problems": [{"path": problem.path, "message": problem.message} for problem in problems],
        }
        click.echo(jsontext.encode(listed))
        return
    table = Table(
        "rule", "bucket", "provider", "watches", "interrupts", "file", "note", box=None, pad_edge=False
    )
    for entry in found.inventory.entries:
        table.add_row(*_row(found, entry))
    console().print(table)
    for problem in problems:
        click.echo(f"{printable(problem.path)}: {printable(problem.message)}", err=True)


@rules.command("show")
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
    found = _found(project, config, rule_directories, extensions)
    _check_names(found, [name])
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


@rules.command("test")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True), required=False)
@click.option("--text", "snippet", help="The text to try, instead of FILE.")
@click.option(
    "--source",
    type=click.Choice(get_args(Source)),
    help="Where the text stands. [default: tool if a file, path or tool is given, else text]",
)
@click.option("--tool", help="The tool that writes it. [default: write]")
@click.option("--path", "paths", multiple=True, help="A path that the call names. [default: FILE]")
@click.option("--rule", "names", multiple=True, help="Only this rule (repeatable).")
@json_option
@place_options
@rule_source_options
def test_rules(
    file: str | None,
    snippet: str | None,
    source: Source | None,
    tool: str | None,
    paths: tuple[str, ...],
    names: tuple[str, ...],
    as_json: bool,
    project: Path,
    config: Path | None,
    rule_directories: tuple[Path, ...],
    extensions: tuple[Path, ...],
) -> None:
    """Try the rules on FILE (- for standard input) or on a text, as if a model wrote it.

    Says which condition matches where, and for each rule that does not fire the reason.
    """
    if (file is None) == (snippet is None):
        raise click.UsageError("give either a FILE (- for standard input) or --text")
    text = snippet or ""
    if file is not None:
        with click.open_file(file, "rb") as opened:
            text = opened.read().decode("utf-8", "replace")
        paths = paths or (() if file == "-" else (file,))
    found = _found(project, config, rule_directories, extensions)
    _check_names(found, names)
    context = _context(found, source or ("tool" if tool or paths else "text"), tool, paths)
    verdicts = list(try_rules(found, text, context, names))
    if as_json:
        result = {
            "source": context.source,
            "tool": context.tool,
            "kind": context.kind,
            "paths": context.paths,
            "rules": [to_dict(verdict, text) for verdict in verdicts],
        }
        click.echo(jsontext.encode(result))
        return
    out = console()
    for verdict in verdicts:
        out.print(_told(verdict, text), soft_wrap=True)
    if not verdicts:
        click.echo("There are no rules here.", err=True)


def _found(
    project: Path, config: Path | None, rule_directories: Sequence[Path], extensions: Sequence[Path]
) -> ProjectRules:
    settings = settings_for(project, config, rule_directories=rule_directories, extensions=extensions)
    return project_rules(settings.projects[0])


def _context(found: ProjectRules, source: Source, tool: str | None, paths: tuple[str, ...]) -> StreamContext:
    if source != "tool":
        return StreamContext(source, paths=paths)
    tool = tool or "write"
    families = FamilyTable.default().with_custom(found.project.ttsr.tool_families)
    return StreamContext("tool", tool, paths, families.family_of(tool).kind)


def _check_names(found: ProjectRules, names: Sequence[str]) -> None:
    known = dict.fromkeys(entry.rule.name for entry in found.inventory.entries)
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise TtsrError(
                f"there is no rule {name!r}{hint or '.'} Rules here: {', '.join(known) or 'none'}"
            )


def _row(found: ProjectRules, entry: Entry) -> tuple[Text, ...]:
    rule = entry.rule
    watches = ", ".join(rule.scope or ()) or "text, tool" if entry.bucket == "ttsr" else ""
    gate = f" in {', '.join(rule.globs)}" if rule.globs and entry.bucket == "ttsr" else ""
    mode = effective(rule, found.project.ttsr)["interruptMode"] if entry.bucket == "ttsr" else ""
    notes = [entry.reason, *rule.warnings, *found.warnings(entry)]
    return (
        cell(rule.name, "bold" if entry.bucket else "dim"),
        cell(entry.bucket or entry.state, _BUCKET_STYLES[entry.bucket]),
        cell(entry.provider),
        cell(watches + gate),
        cell(mode),
        cell(found.shown_path(entry.rule)),
        cell("; ".join(note for note in notes if note), "yellow" if entry.bucket else "dim"),
    )


def _told(verdict: Verdict, text: str) -> Text:
    name = printable(verdict.entry.rule.name)
    match = verdict.match
    if match is None:
        return Text.assemble(("-     ", "dim"), (name, "bold"), ": ", cell(verdict.reason or ""))
    line, column = place(text, match.start)
    what = "condition" if match.trigger == "regex" else "astCondition"
    effect = "interrupts" if verdict.interrupts else "reminds only"
    return Text.assemble(
        ("FIRES ", "red bold"),
        (name, "bold"),
        f": {what} ",
        cell(match.pattern),
        f" matches at line {line}, column {column}: ",
        cell(text[match.start : match.end], "red", limit=_MATCHED_CHARACTERS),
        f" ({effect})",
    )
