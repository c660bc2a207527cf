"""The `ttsr-proxy` command: its subcommands, and how errors of the package are told."""

from __future__ import annotations

from importlib import import_module
from typing import IO, Any

import click

from ttsr_proxy.errors import TtsrError

_MODULES = ("serve", "run", "demo", "rules", "library", "log", "replay", "doctor")
"""The subcommands: each is the object of its name in the module of its name.

A module is imported when its command is used, which keeps the start of the others, and the processes that a
server spawns, small.
"""


class _Failure(click.ClickException):
    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        for line in self.message.splitlines():
            click.echo(f"ttsr-proxy: {line}", file=file, err=file is None)


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _MODULES:
            return None
        command = getattr(import_module(f"ttsr_proxy.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except TtsrError as error:
            raise _Failure(str(error)) from error


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="ttsr-proxy", prog_name="ttsr-proxy")
def main() -> None:
    """A proxy that keeps coding agents to your rules.

    Point your agent's base URL at it. It watches the model's stream, takes back output that breaks a rule,
    reminds the model of the rule, and lets it try again.
    """
