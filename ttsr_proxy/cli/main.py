"""The `ttsr-proxy` command: its subcommands, and how errors of the package are told."""

from __future__ import annotations

from typing import IO, Any

import click

from ttsr_proxy.cli.demo import demo
from ttsr_proxy.cli.library import library
from ttsr_proxy.cli.log import log
from ttsr_proxy.cli.rules import rules
from ttsr_proxy.cli.run import run
from ttsr_proxy.cli.serve import serve
from ttsr_proxy.errors import TtsrError


class _Failure(click.ClickException):
    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        for line in self.message.splitlines():
            click.echo(f"ttsr-proxy: {line}", file=file, err=file is None)


class _Commands(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except TtsrError as error:
            raise _Failure(str(error)) from error


@click.group(
    cls=_Commands,
    commands=(serve, run, demo, rules, library, log),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="ttsr-proxy", prog_name="ttsr-proxy")
def main() -> None:
    """A proxy that keeps coding agents to your rules.

    Point your agent's base URL at it. It watches the model's stream, takes back output that breaks a rule,
    reminds the model of the rule, and lets it try again.
    """
