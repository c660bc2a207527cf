"""`ttsr-proxy rules test`: the rules, tried on a text."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click
from rich.text import Text

from ttsr_proxy import jsontext
from ttsr_proxy.cli.options import place_options, rule_source_options
from ttsr_proxy.cli.rules.found import check_names, json_option, kind_of, rules_of, shown_effect
from ttsr_proxy.cli.rules.verdicts import Trial, Verdict, place, surroundings, to_dict, try_rules
from ttsr_proxy.cli.terminal import cell, console, printable
from ttsr_proxy.triggers.inventory import ProjectRules
from ttsr_proxy.triggers.match import Match, Source, StreamContext

_MATCHED_CHARACTERS = 80
_SHOWN_MATCHES = 5


class _Fired(click.ParamType[tuple[str, int]]):
    """A rule's name and how many answers ago it fired: `no-eval` (the last answer) or `no-eval:3`."""

    name = "rule[:answers]"

    def convert(
        self, value: str | tuple[str, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        rule, colon, count = value.rpartition(":")
        if not colon:
            return value, 1
        if not count.isdecimal() or int(count) < 1:
            self.fail(f"{count!r} is not a number of answers, 1 or more", param, ctx)
        return rule, int(count)


@click.command("test")
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
@click.option("--agent", help="The agent that writes it. [default: main]")
@click.option(
    "--fired",
    type=_Fired(),
    multiple=True,
    help="As if this rule had fired in the last answer, or so many answers ago (repeatable).",
)
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
    agent: str | None,
    fired: tuple[tuple[str, int], ...],
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
            text = opened.read().decode("utf-8-sig", "replace")
        paths = paths or (() if file == "-" else (file,))
    found = rules_of(project, config, rule_directories, extensions)
    check_names(found, (*names, *(name for name, _ in fired)))
    context = _context(found, source or ("tool" if tool or paths else "text"), tool, paths)
    verdicts = list(try_rules(found, text, Trial(context, agent, dict(fired)), names))
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
        for line in _told(verdict, text):
            out.print(line, soft_wrap=True)
    if not verdicts:
        click.echo("There are no rules here.", err=True)


def _context(found: ProjectRules, source: Source, tool: str | None, paths: tuple[str, ...]) -> StreamContext:
    if source != "tool":
        return StreamContext(source, paths=paths)
    tool = tool or "write"
    return StreamContext("tool", tool, paths, kind_of(found, tool))


def _told(verdict: Verdict, text: str) -> list[Text]:
    name = printable(verdict.entry.rule.name)
    if not verdict.fires:
        return [Text.assemble(("-     ", "dim"), (name, "bold"), ": ", cell(verdict.reason or ""))]
    first, *others = verdict.matches
    lines = [
        Text.assemble(
            ("FIRES ", "red bold"),
            (name, "bold"),
            ": ",
            _hit(first, text),
            f" ({shown_effect(verdict.effect)})",
        ),
        *(Text.assemble("        also ", _hit(match, text)) for match in others[: _SHOWN_MATCHES - 1]),
    ]
    if len(others) >= _SHOWN_MATCHES:
        lines.append(Text(f"        and {len(others) - _SHOWN_MATCHES + 1:,} more"))
    return lines


def _hit(match: Match, text: str) -> Text:
    line, column = place(text, match.start)
    before, inside, after = surroundings(text, match)
    what = "condition" if match.trigger == "regex" else "astCondition"
    return Text.assemble(
        f"{what} ",
        cell(match.pattern),
        f" matches at line {line}, column {column}: ",
        cell(before.lstrip(), "dim"),
        cell(inside, "red", limit=_MATCHED_CHARACTERS),
        cell(after.rstrip(), "dim"),
    )
