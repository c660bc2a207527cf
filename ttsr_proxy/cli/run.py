"""`ttsr-proxy run -- AGENT ...`: an agent, and a proxy that lives as long as it does."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shutil import which

import click
import structlog

from ttsr_proxy.cli.agents import Pointed, agent_of
from ttsr_proxy.cli.logging import configure_logging
from ttsr_proxy.cli.options import place_options, rule_source_options, settings_for, state_option
from ttsr_proxy.config import LogFormat, Settings, Upstreams
from ttsr_proxy.config.upstream import checked_upstream
from ttsr_proxy.errors import TtsrError
from ttsr_proxy.web.app import create_app
from ttsr_proxy.web.keys import PARTS, Parts
from ttsr_proxy.web.server import listen, make_runner

NOT_FOUND = 127
"""The shell's exit status for a program that does not exist."""

_DRAIN_SECONDS = 1.0
"""The agent is gone, so nobody waits for what is still running."""

_TROUBLE_CHARS = 4_000
"""How much of the proxy's own warnings is told after the run; the terminal is the agent's until then."""

_BASE_URLS = {
    "anthropic": ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"),
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
}
"""Where the agent's requests would go without the proxy: that is the proxy's upstream."""

_INTERRUPTS = ("interrupted", "truncated", "blocked")
_REMINDERS = ("reminded", "deferred")


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--upstream",
    "upstreams",
    metavar="[anthropic=|openai=]URL",
    multiple=True,
    help="Where requests go. [default: the agent's present base URL, else the public APIs]",
)
@click.option(
    "--log-file", type=click.Path(dir_okay=False, path_type=Path), help="Append the proxy's own log here."
)
@place_options
@rule_source_options
@state_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True, metavar="-- AGENT [ARGS]...")
@click.pass_context
def run(
    ctx: click.Context,
    upstreams: tuple[str, ...],
    log_file: Path | None,
    project: Path,
    config: Path | None,
    rule_directories: tuple[Path, ...],
    extensions: tuple[Path, ...],
    state: str | None,
    command: tuple[str, ...],
) -> None:
    """Run an agent through a proxy of its own.

    Starts the proxy on a free port of this machine, points the agent at it, and ends with the agent's exit
    status. Claude Code, Codex, opencode, aider and omp are known; any other program gets the variables that
    the official SDKs read.
    """
    agent = agent_of(command)
    program = which(command[0])
    if program is None:
        click.echo(f"ttsr-proxy: {command[0]}: command not found", err=True)
        ctx.exit(NOT_FOUND)
    settings = settings_for(
        project,
        config,
        rule_directories=rule_directories,
        extensions=extensions,
        upstreams=upstreams,
        host="127.0.0.1",
        port=0,
        state=state,
    )
    settings = replace(settings, upstreams=_upstreams(settings.upstreams, os.environ))

    def start(url: str) -> Pointed:
        return agent.point(url, os.environ)

    with _log(log_file, settings.log.format) as trouble:
        status, parts = asyncio.run(_together(settings, program, command, start))
    if told := trouble():
        click.echo(told, err=True)
    click.echo(f"ttsr-proxy: {summary(parts.stores.counts, parts.inspected())}", err=True)
    ctx.exit(status)


def summary(counts: Mapping[tuple[str, str], int], inspected: int) -> str:
    """One line on what happened; `counts` by rule and action."""
    if not inspected:
        return "no model request came through the proxy, so nothing was watched"
    parts = []
    for actions, word in ((_INTERRUPTS, "interrupt"), (_REMINDERS, "reminder")):
        rules = Counter[str]()
        for (rule, action), count in counts.items():
            if action in actions:
                rules[rule] += count
        if total := rules.total():
            named = ", ".join(f"{rule} {count}" for rule, count in rules.most_common())
            parts.append(f"{total} {word}{'s' if total > 1 else ''} ({named})")
    requests = f"{inspected} request{'s' if inspected > 1 else ''} watched"
    return f"{requests}, {', '.join(parts)}; see ttsr-proxy log" if parts else f"{requests}, no rule broken"


def _upstreams(given: Upstreams, environ: Mapping[str, str]) -> Upstreams:
    """What the settings leave at its default is where the agent is pointed now."""
    default = Upstreams()
    changes = {}
    for name, variables in _BASE_URLS.items():
        variable = next((variable for variable in variables if environ.get(variable)), None)
        if variable is None or getattr(given, name) != getattr(default, name):
            continue
        try:
            changes[name] = checked_upstream(environ[variable])
        except ValueError as error:
            raise TtsrError(f"environment: {variable}: {error}; it would be the proxy's upstream") from error
    return replace(given, **changes)


@contextmanager
def _log(file: Path | None, form: LogFormat) -> Iterator[Callable[[], str]]:
    """The proxy's log, kept off the agent's terminal: in `file`, or its warnings in what is yielded."""
    kept = io.StringIO()
    try:
        stream = file.open("a", encoding="utf-8") if file else kept
    except OSError as error:
        raise TtsrError(f"cannot write the log file {file}: {error.strerror}") from error
    configure_logging(stream, level=logging.INFO if file else logging.WARNING, form=form)
    try:
        yield lambda: kept.getvalue()[-_TROUBLE_CHARS:].rstrip()
    finally:
        configure_logging(form=form)
        if stream is not kept:
            stream.close()


async def _together(
    settings: Settings, program: str, command: tuple[str, ...], point: Callable[[str], Pointed]
) -> tuple[int, Parts]:
    """The proxy, and the agent while the proxy listens. Its exit status, as a shell gives it."""
    app = create_app(settings)
    runner = make_runner(app, drain_seconds=_DRAIN_SECONDS)
    await runner.setup()
    try:
        url = await listen(runner, settings.host, settings.port)
        structlog.get_logger().info("running", program=program, url=url)
        status = await _run_agent(program, command[1:], point(url))
        return status, app[PARTS]
    finally:
        await runner.cleanup()


async def _run_agent(program: str, arguments: tuple[str, ...], pointed: Pointed) -> int:
    environ = {**os.environ, **pointed.variables, **_unproxied(os.environ)}
    process = await asyncio.create_subprocess_exec(program, *pointed.arguments, *arguments, env=environ)
    with _passed_on(process):
        status = await process.wait()
    return status if status >= 0 else 128 - status


def _unproxied(environ: Mapping[str, str]) -> dict[str, str]:
    """Requests to this machine must not go to an HTTP proxy of the user's."""
    given = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    hosts = ",".join(filter(None, (given, "127.0.0.1")))
    return {"NO_PROXY": hosts, "no_proxy": hosts}


@contextmanager
def _passed_on(process: asyncio.subprocess.Process) -> Iterator[None]:
    """Signals to the proxy are for the agent: it decides when it ends."""
    loop = asyncio.get_running_loop()

    def pass_on(number: int) -> None:
        # A terminal sends its interrupt to the whole foreground group, so the agent has that one already.
        if process.returncode is None and not (number in _FROM_TERMINAL and _in_foreground()):
            process.send_signal(number)

    for number in _PASSED_ON:
        loop.add_signal_handler(number, pass_on, number)
    try:
        yield
    finally:
        for number in _PASSED_ON:
            loop.remove_signal_handler(number)


_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
_PASSED_ON = (*_FROM_TERMINAL, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return False
