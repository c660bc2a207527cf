"""Options that several commands share, and the settings that they lead to."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

from ttsr_proxy.config import ConfigError, Settings, load_settings
from ttsr_proxy.toolcalls.families import FamilyTable, ToolFamilyError

Command = TypeVar("Command", bound=Callable[..., Any])

_DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

_PLACE = (
    click.option(
        "--project", type=_DIRECTORY, default=Path("."), help="Project directory. [default: this one]"
    ),
    click.option(
        "--config", type=_FILE, help="Configuration file. [default: ttsr-proxy.yaml in the project]"
    ),
)
_RULE_SOURCES = (
    click.option(
        "--rules", "rule_directories", type=_DIRECTORY, multiple=True, help="Directory of rules to add."
    ),
    click.option(
        "--extension", "extensions", type=_DIRECTORY, multiple=True, help="Package root with rules/."
    ),
)
_STATE = (click.option("--state", metavar="PLACE", help="State: an SQLite file or a redis:// URL."),)

FailOn = Literal["any", "interrupting", "nothing"]

fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(["any", "interrupting", "nothing"]),
    default="any",
    show_default=True,
    help="Which matches make the exit status 1.",
)
jobs_option = click.option(
    "--jobs", type=click.IntRange(min=1), help="Worker processes. [default: one per processor]"
)


def place_options(command: Command) -> Command:
    """`--project` and `--config`."""
    return _decorated(_PLACE, command)


def rule_source_options(command: Command) -> Command:
    """`--rules` and `--extension`."""
    return _decorated(_RULE_SOURCES, command)


def state_option(command: Command) -> Command:
    """`--state`."""
    return _decorated(_STATE, command)


def settings_for(
    project: Path,
    config: Path | None,
    *,
    rule_directories: Sequence[Path] = (),
    extensions: Sequence[Path] = (),
    upstreams: Sequence[str] = (),
    **flags: Any,
) -> Settings:
    """The settings of a command's options, as `read_settings` gives them; their warnings are told."""
    settings = read_settings(
        project,
        config,
        rule_directories=rule_directories,
        extensions=extensions,
        upstreams=upstreams,
        **flags,
    )
    for warning in settings.warnings:
        click.echo(f"ttsr-proxy: {warning}", err=True)
    return settings


def read_settings(
    project: Path,
    config: Path | None,
    *,
    rule_directories: Sequence[Path] = (),
    extensions: Sequence[Path] = (),
    upstreams: Sequence[str] = (),
    **flags: Any,
) -> Settings:
    """The settings of a command's options. `flags` are named as the keys they set. Raises ConfigError."""
    given = {
        "rules": [str(path) for path in rule_directories] or None,
        "extensions": [str(path) for path in extensions] or None,
        **flags,
    }
    settings = load_settings(
        project=project, home=Path.home(), environ=os.environ, config=config, flags=given, upstreams=upstreams
    )
    for place in settings.projects:
        try:
            FamilyTable.default().with_custom(place.ttsr.tool_families)
        except ToolFamilyError as error:
            raise ConfigError([f"{settings.config_file}: project {place.name}: {error}"]) from error
    return settings


def _decorated(options: Sequence[Callable[[Command], Command]], command: Command) -> Command:
    return reduce(lambda decorated, option: option(decorated), reversed(options), command)
