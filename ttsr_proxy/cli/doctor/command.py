"""`ttsr-proxy doctor`: the checks in their order, and the report."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec
from rich.text import Text

from ttsr_proxy import jsontext
from ttsr_proxy.cli.doctor import agents, configuration, parts, port, rules, server, state, upstreams
from ttsr_proxy.cli.doctor.finding import Finding, Level
from ttsr_proxy.cli.options import place_options, read_settings, rule_source_options, state_option
from ttsr_proxy.cli.terminal import cell, console, counted
from ttsr_proxy.config import ConfigError, Settings, State
from ttsr_proxy.redis import RedisUrl

_STYLES: Mapping[Level, str] = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    findings: tuple[Finding, ...]


@click.command()
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
@click.option("--host", help="Address that the proxy listens on, or would.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port that it listens on, or would.")
@click.option(
    "--upstream",
    "upstreams_given",
    metavar="[anthropic=|openai=]URL",
    multiple=True,
    help="Where requests go; a bare URL serves both. [default: the public APIs]",
)
@place_options
@rule_source_options
@state_option
@click.pass_context
def doctor(
    ctx: click.Context,
    as_json: bool,
    host: str | None,
    port: int | None,
    upstreams_given: tuple[str, ...],
    project: Path,
    config: Path | None,
    rule_directories: tuple[Path, ...],
    extensions: tuple[Path, ...],
    state: str | None,
) -> None:
    """Look for what is wrong, and say how to mend it.

    Looks at the configuration, the rules, the upstreams, the state, the port, the agents' settings and what
    is installed. Nothing is written, and nothing but the upstreams' hosts and the proxy's own port is asked;
    no credentials are sent.

    Exit status: 0 nothing failed (there may be warnings), 1 something failed.
    """
    try:
        settings = read_settings(
            project,
            config,
            rule_directories=rule_directories,
            extensions=extensions,
            upstreams=upstreams_given,
            host=host,
            port=port,
            state=state,
        )
    except ConfigError as error:
        # What else there is to check depends on the settings.
        sections = [_Section("configuration", tuple(configuration.of_error(error)))]
    else:
        sections = asyncio.run(_examine(settings, os.environ))
    findings = [finding for section in sections for finding in section.findings]
    failed = sum(finding.level == "fail" for finding in findings)
    if as_json:
        report = {
            "ok": not failed,
            "findings": [
                {"section": section.name, **msgspec.to_builtins(finding)}
                for section in sections
                for finding in section.findings
            ],
        }
        click.echo(jsontext.encode(report))
    else:
        _print(sections)
        warned = sum(finding.level == "warn" for finding in findings)
        click.echo(f"\n{counted(failed, 'failure')}, {counted(warned, 'warning')}")
    ctx.exit(1 if failed else 0)


async def _examine(settings: Settings, environ: Mapping[str, str]) -> list[_Section]:
    answers, held, worker = await asyncio.gather(
        upstreams.of_upstreams(settings), port.of_port(settings), parts.of_ast_worker()
    )
    sections: dict[str, Iterable[Finding]] = {
        "configuration": configuration.of_settings(settings),
        "rules": rules.of_projects(settings),
        "upstreams": answers,
        "state": await _of_state(settings.state),
        "port": (held,),
        "agents": agents.of_agents(settings, environ),
        "installation": (worker, *parts.of_extras(), *parts.of_models(settings, environ)),
    }
    return [_Section(name, tuple(findings)) for name, findings in sections.items()]


async def _of_state(place: State) -> Iterable[Finding]:
    if isinstance(place, RedisUrl):
        return (await server.of_server(place),)
    return state.of_state(place)


def _print(sections: Iterable[_Section]) -> None:
    out = console()
    for number, section in enumerate(sections):
        out.print(Text(("\n" if number else "") + section.name, style="bold"))
        for finding in section.findings:
            level = cell(finding.level.ljust(4), _STYLES[finding.level])
            out.print(Text.assemble("  ", level, "  ", cell(finding.what)), soft_wrap=True)
            if finding.mend:
                out.print(Text.assemble("        mend: ", cell(finding.mend)), soft_wrap=True)
