"""`ttsr-proxy library`: the rule library on the terminal.

Compiling and searching ask a running proxy; the other commands work on the files, whether one runs or not.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ttsr_proxy import jsontext
from ttsr_proxy.cli.options import Command, place_options, settings_for, state_option
from ttsr_proxy.cli.terminal import cell, console, printable
from ttsr_proxy.client import SyncHTTPClient
from ttsr_proxy.config import Settings
from ttsr_proxy.errors import TtsrError
from ttsr_proxy.library.clock import now
from ttsr_proxy.library.drafting import Draft
from ttsr_proxy.library.errors import NotFound
from ttsr_proxy.library.model import LibraryRule, Snapshot
from ttsr_proxy.library.storage.libraries import Libraries
from ttsr_proxy.library.storage.user_library import UserLibrary

POLL_SECONDS = 0.2
_FINISHED = ("completed", "failed", "cancelled")

json_option = click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
_user_option = click.option("--user", help="Whose library. [default: library.user]")


def _server_options(command: Command) -> Command:
    """Options that say which proxy is asked, and as whom."""
    url = click.option("--url", help="The proxy's URL. [default: host and port of the configuration]")
    key = click.option(
        "--api-key", envvar="LIBRARY_API_KEY", show_envvar=True, help="Your key, if one is needed."
    )
    return url(key(place_options(command)))


@click.group()
def library() -> None:
    """Compile constraints into rules that are kept, and look after them."""


@library.command("compile")
@click.argument("instruction", required=False)
@click.option(
    "--source",
    "sources",
    multiple=True,
    help="A file or directory, a URL, or a viking:// URI (repeatable).",
)
@json_option
@_server_options
def compile_rules(
    instruction: str | None,
    sources: tuple[str, ...],
    as_json: bool,
    url: str | None,
    api_key: str | None,
    project: Path,
    config: Path | None,
) -> None:
    """Compile INSTRUCTION and the sources into rules; `-` reads the instruction from standard input."""
    if instruction == "-":
        instruction = sys.stdin.read()
    if instruction is None and not sources:
        raise click.UsageError("give an INSTRUCTION or a --source")
    client = _client(url, api_key, project, config)
    try:
        task = client.rule_compile(instruction, {"sources": list(sources)})
    except OSError as error:
        raise TtsrError(f"{error.filename} cannot be read: {error.strerror}") from error
    while task["status"] not in _FINISHED:
        time.sleep(POLL_SECONDS)
        found = client.get_task(task["task_id"])
        if found is None:
            raise TtsrError(f"the task {task['task_id']} is gone")
        task = found
    if as_json:
        click.echo(jsontext.encode(task))
    if task["status"] != "completed":
        raise TtsrError(task["error"] or f"the task was {task['status']}")
    if not as_json:
        _show_operations(task["result"])


@library.command("search")
@click.argument("context")
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    help="Only rules of at least this probability. [default: 0.65]",
)
@json_option
@_server_options
def search(
    context: str,
    threshold: float | None,
    as_json: bool,
    url: str | None,
    api_key: str | None,
    project: Path,
    config: Path | None,
) -> None:
    """Find the rules that apply to the task described in CONTEXT; `-` reads it from standard input."""
    if context == "-":
        context = sys.stdin.read()
    options = {} if threshold is None else {"rule_probability_threshold": threshold}
    result = _client(url, api_key, project, config).rule_search(context, options)
    if as_json:
        click.echo(jsontext.encode(result))
        return
    click.echo(printable(result["rendered"], keep="\n\t"))
    if result.get("warning"):
        click.echo(f"ttsr-proxy: {printable(result['warning'])}", err=True)


def _library_command(name: str) -> Callable[[Callable[..., None]], click.Command]:
    """A command that works on the files: its place and its user are given as options."""

    def decorate(function: Callable[..., None]) -> click.Command:
        for option in (state_option, place_options, _user_option):
            function = option(function)
        return library.command(name)(function)

    return decorate


@_library_command("list")
@json_option
def list_rules(as_json: bool, **place: Any) -> None:
    """List the rules, active and paused."""
    snapshot = _open(**place).snapshot()
    if as_json:
        click.echo(jsontext.encode({"rules": [_to_dict(snapshot, rule) for rule in snapshot.rules.values()]}))
        return
    table = Table("rule", "status", "scenario", "revision", "enforced", "title", box=None, pad_edge=False)
    for rule in snapshot.rules.values():
        table.add_row(
            cell(rule.atomic_id, "bold"),
            cell(rule.status, "green" if rule.status == "active" else "dim"),
            cell(rule.scenario_id),
            cell(str(rule.revision)),
            cell(", ".join(rule.triggers.kinds) or "-", "dim"),
            cell(rule.title),
        )
    if snapshot.rules:
        console().print(table)
    else:
        click.echo(f"No rules in {snapshot.root}.", err=True)


@_library_command("show")
@click.argument("rule_id", metavar="RULE")
def show_rule(rule_id: str, **place: Any) -> None:
    """Show the file of RULE."""
    snapshot = _open(**place).snapshot()
    click.echo(printable(_rule(snapshot, rule_id).content, keep="\n\t"), nl=False)


@_library_command("pause")
@click.argument("rule_id", metavar="RULE")
def pause(rule_id: str, **place: Any) -> None:
    """Switch RULE off; `restore` brings it back."""
    _change(_open(**place), lambda draft: draft.set_status("PAUSE", rule_id))


@_library_command("restore")
@click.argument("rule_id", metavar="RULE")
def restore(rule_id: str, **place: Any) -> None:
    """Switch RULE, which is paused, on again."""
    _change(_open(**place), lambda draft: draft.set_status("RESTORE", rule_id))


@_library_command("archive")
@click.argument("rule_id", metavar="RULE")
@click.confirmation_option(prompt="There is no way back. Archive it?")
def archive(rule_id: str, **place: Any) -> None:
    """Take RULE out of the library for good."""
    _change(_open(**place), lambda draft: draft.archive(rule_id, "on the command line"))


def _client(url: str | None, api_key: str | None, project: Path, config: Path | None) -> SyncHTTPClient:
    if url is None:
        settings = settings_for(project, config)
        host = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else settings.host  # noqa: S104
        url = f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"
    return SyncHTTPClient(url, api_key)


def _open(*, user: str | None, project: Path, config: Path | None, state: str | None) -> UserLibrary:
    settings: Settings = settings_for(project, config, state=state)
    return Libraries(settings.library_root).of(user or settings.projects[0].library_user)


def _rule(snapshot: Snapshot, rule_id: str) -> LibraryRule:
    rule = snapshot.rules.get(rule_id)
    if rule is None:
        state = "is archived" if rule_id in snapshot.archived else "is not in the library"
        raise NotFound(f"rule {rule_id} {state}")
    return rule


def _change(library: UserLibrary, change: Callable[[Draft], None]) -> None:
    base = library.snapshot(fresh=True)
    draft = Draft(base, now(), "")
    change(draft)
    (operation,) = draft.operations
    if operation["operation"] == "UNCERTAIN":
        raise NotFound(operation["reason"])
    if changes := draft.changes():
        library.commit(changes, base)
    _show([operation])


def _to_dict(snapshot: Snapshot, rule: LibraryRule) -> dict[str, Any]:
    return {
        "atomic_id": rule.atomic_id,
        "scenario_id": rule.scenario_id,
        "revision": rule.revision,
        "status": rule.status,
        "title": rule.title,
        "constraint": rule.constraint,
        "applies_when": rule.applies_when,
        "exception": rule.exception,
        "triggers": rule.triggers.kinds,
        "uri": snapshot.uri(rule),
    }


def _show_operations(result: dict[str, Any]) -> None:
    _show(result["operations"])
    click.echo(printable(result["plan_reason"]), err=True)


def _show(operations: Sequence[dict[str, Any]]) -> None:
    table = Table("operation", "rule", "note", box=None, pad_edge=False, show_header=False)
    for operation in operations:
        notes = [operation.get("reason", ""), operation.get("excerpt", ""), *operation.get("warnings", ())]
        if operation.get("triggers"):
            notes.append(f"enforced by {', '.join(operation['triggers'])}")
        table.add_row(
            cell(operation["operation"], "bold"),
            cell(operation.get("atomic_id", "")),
            cell("; ".join(note for note in notes if note)),
        )
    console().print(table)
