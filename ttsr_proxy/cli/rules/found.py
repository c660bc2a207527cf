"""What the `rules` commands share: the rules of a project, and rules by name."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

import click

from ttsr_proxy.cli.options import settings_for
from ttsr_proxy.errors import TtsrError
from ttsr_proxy.judges import why_no_judge
from ttsr_proxy.library.enforcement import enforced_rules
from ttsr_proxy.library.errors import LibraryError
from ttsr_proxy.library.storage.libraries import Libraries
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.toolcalls.families import FamilyTable
from ttsr_proxy.triggers.inventory import Effect, ProjectRules, project_rules

json_option = click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")


def rules_of(
    project: Path, config: Path | None, rule_directories: Sequence[Path], extensions: Sequence[Path]
) -> ProjectRules:
    """The rules of a command's project, compiled ones included. Raises ConfigError.

    A library that cannot be read is told, and its rules are missing.
    """
    settings = settings_for(project, config, rule_directories=rule_directories, extensions=extensions)
    place = settings.projects[0]
    compiled: Sequence[tuple[str, Rule]] = ()
    try:
        compiled = enforced_rules(Libraries(settings.library_root).of(place.library_user).snapshot())
    except LibraryError as error:
        click.echo(f"ttsr-proxy: {error}", err=True)
    return project_rules(place, why_no_judge(settings.library.judge), compiled)


def shown_effect(effect: Effect | None) -> str:
    """What comes of a match, in words."""
    match effect:
        case "reminds":
            return "reminds only"
        case "would interrupt" | "would remind":
            return f"{effect}; observed only"
        case _:
            return effect or ""


def check_names(found: ProjectRules, names: Sequence[str]) -> None:
    """Raise TtsrError for a name that no rule has."""
    known = dict.fromkeys(entry.rule.name for entry in found.inventory.entries)
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise TtsrError(
                f"there is no rule {name!r}{hint or '.'} Rules here: {', '.join(known) or 'none'}"
            )


def kind_of(found: ProjectRules, tool: str) -> str | None:
    """The kind of tool that a tool's name stands for in this project, if any."""
    return FamilyTable.default().with_custom(found.project.ttsr.tool_families).family_of(tool).kind


def known_tools(found: ProjectRules) -> set[str]:
    """The names and kinds of the tools of this project's table of families."""
    families = FamilyTable.default().with_custom(found.project.ttsr.tool_families).families
    kinds = {kind for family in families for kind in family.kinds if kind}
    return kinds | {tool for family in families for tool in family.tools}
