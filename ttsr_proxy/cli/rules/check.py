"""`ttsr-proxy rules check`: the linter of rule files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
from rich.text import Text

from ttsr_proxy import jsontext
from ttsr_proxy.cli.options import place_options, rule_source_options
from ttsr_proxy.cli.rules.found import json_option, known_tools, rules_of
from ttsr_proxy.cli.terminal import cell, console, counted
from ttsr_proxy.errors import TtsrError
from ttsr_proxy.rules.buckets import NO_BUCKET, Entry
from ttsr_proxy.rules.discovery import Problem, discover
from ttsr_proxy.rules.display import display_path
from ttsr_proxy.rules.frontmatter import read_document
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.rules.providers import BUILTIN_DEFAULTS, RuleDirectories
from ttsr_proxy.rules.repairs import decode
from ttsr_proxy.triggers.inventory import ProjectRules
from ttsr_proxy.triggers.lint import Finding, lint_rule
from ttsr_proxy.triggers.ruleset import NEEDS_JUDGE

_STYLES = {"error": "red bold", "warning": "yellow bold"}


@click.command("check")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--strict", is_flag=True, help="Warnings make the exit status 1 too.")
@json_option
@place_options
@rule_source_options
def check_rules(
    paths: tuple[Path, ...],
    strict: bool,
    as_json: bool,
    project: Path,
    config: Path | None,
    rule_directories: tuple[Path, ...],
    extensions: tuple[Path, ...],
) -> None:
    """Check rule files for mistakes: every rule of the project, or the files and directories PATHS.

    Exit status: 0 no errors (warnings may be there, see --strict), 1 errors, 2 the check could not be done.
    """
    found = rules_of(project, config, rule_directories, extensions)
    if paths:
        rules, findings = _given(paths)
    else:
        entries = found.inventory.entries
        switched_off = () if found.project.ttsr.builtin_rules else (BUILTIN_DEFAULTS,)
        rules = [entry.rule for entry in entries if entry.provider not in switched_off]
        findings = [*_problems(found.inventory.problems), *_states(entries)]
    ttsr, tools = found.project.ttsr, known_tools(found)
    for rule in rules:
        lines = _lines(rule)
        findings += [*lint_rule(rule, lines, ttsr, tools), *_judged(found, rule, lines)]
    errors = sum(finding.level == "error" for finding in findings)
    warnings = len(findings) - errors
    if as_json:
        told = {
            "findings": [finding.to_dict() for finding in findings],
            "rules": len(rules),
            "errors": errors,
            "warnings": warnings,
        }
        click.echo(jsontext.encode(told))
    else:
        _print(found, findings)
        told_counts = f"{counted(errors, 'error')}, {counted(warnings, 'warning')}"
        click.echo(f"{counted(len(rules), 'rule')} checked: {told_counts}", err=True)
    if errors or (strict and warnings):
        raise click.exceptions.Exit(1)


def _given(paths: Sequence[Path]) -> tuple[list[Rule], list[Finding]]:
    """The rules in these files and directories, whether or not a project would find them there."""
    rules: list[Rule] = []
    findings: list[Finding] = []
    nowhere = Path("/nonexistent")
    for path in paths:
        if path.is_dir():
            discovery = discover(RuleDirectories(nowhere, nowhere, mounted=(path,), shipped=None))
            rules += [found.rule for found in discovery.found]
            findings += _problems(discovery.problems)
            continue
        try:
            rules.append(Rule.from_markdown(path, path.read_bytes()))
        except OSError as error:
            raise TtsrError(f"{path}: cannot be read: {error.strerror or error}") from error
    return rules, findings


def _problems(problems: Sequence[Problem]) -> list[Finding]:
    """What discovery could not read, and settings that name nothing."""
    return [
        Finding("error", "unreadable", problem.path, None, None, problem.message, "Correct it or remove it.")
        for problem in problems
    ]


def _states(entries: Sequence[Entry]) -> Iterator[Finding]:
    """Rules that are not active though nobody switched them off."""
    for entry in entries:
        path = entry.rule.path or entry.rule.name
        reason = entry.reason or ""
        if reason.startswith("shadowed by"):
            yield Finding(
                "warning", "shadowed", path, None, None, f"the rule {entry.rule.name} is {reason}",
                "Rename one of the files, if both are meant.",
            )  # fmt: skip
        elif reason == NO_BUCKET:
            yield Finding(
                "warning", "no-bucket", path, None, None,
                f"the rule {entry.rule.name} is not active: {reason}",
                "Give it a condition, a description or alwaysApply: true.",
            )  # fmt: skip


def _judged(found: ProjectRules, rule: Rule, lines: Mapping[str, int]) -> Iterator[Finding]:
    """A rule with a question where nobody can be asked."""
    if rule.question is not None and found.no_judge is not None:
        yield Finding(
            "warning", "no-judge", rule.path or rule.name, lines.get("question"), "question",
            f"the rule is off: {NEEDS_JUDGE}; {found.no_judge}",
            "Set library.judge.provider and what it needs.",
        )  # fmt: skip


def _lines(rule: Rule) -> dict[str, int]:
    """On which line of its file each key of a rule stands; nothing for a rule that is no file."""
    try:
        text, _ = decode(Path(rule.path).read_bytes())
    except (OSError, ValueError):
        return {}
    return dict(read_document(text).lines)


def _print(found: ProjectRules, findings: Sequence[Finding]) -> None:
    out = console()
    for finding in findings:
        path = Path(finding.path)
        shown = (
            display_path(path, found.project.path, found.project.home) if path.is_absolute() else str(path)
        )
        place = f"{shown}:{finding.line}" if finding.line else shown
        key = f"{finding.key}: " if finding.key else ""
        out.print(
            Text.assemble(
                cell(f"{place}: "),
                cell(finding.level, _STYLES[finding.level]),
                cell(f" [{finding.code}] {key}{finding.what}"),
            ),
            soft_wrap=True,
        )
        out.print(cell(f"    {finding.advice}", "dim"), soft_wrap=True)
