"""`ttsr-proxy serve`: run the proxy."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from ttsr_proxy.cli.logging import configure_logging
from ttsr_proxy.cli.options import place_options, rule_source_options, settings_for, state_option
from ttsr_proxy.errors import TtsrError
from ttsr_proxy.web.guard import is_loopback
from ttsr_proxy.web.server import run_server
from ttsr_proxy.web.workers import run_workers


@click.command()
@click.option("--host", help="Address to listen on. [default: 127.0.0.1]")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 takes a free one. [default: 8787]"
)
@click.option(
    "--upstream",
    "upstreams",
    metavar="[anthropic=|openai=]URL",
    multiple=True,
    help="Where requests go; a bare URL serves both. [default: the public APIs]",
)
@click.option("--workers", type=click.IntRange(1), help="Processes that serve the port. [default: 1]")
@place_options
@rule_source_options
@state_option
def serve(
    host: str | None,
    port: int | None,
    upstreams: tuple[str, ...],
    workers: int | None,
    project: Path,
    config: Path | None,
    rule_directories: tuple[Path, ...],
    extensions: tuple[Path, ...],
    state: str | None,
) -> None:
    """Run the proxy until it is told to stop (Ctrl-C or SIGTERM)."""
    settings = settings_for(
        project,
        config,
        rule_directories=rule_directories,
        extensions=extensions,
        upstreams=upstreams,
        host=host,
        port=port,
        workers=workers,
        state=state,
    )
    if settings.token is None and not is_loopback(settings.host):
        click.echo(
            f"ttsr-proxy: others can reach {settings.host}; without `token` the log is served to nobody",
            err=True,
        )
    configure = partial(configure_logging, form=settings.log.format)
    configure()
    try:
        if settings.workers > 1:
            run_workers(settings, ready=_tell, prepare=configure)
        else:
            run_server(settings, ready=_tell)
    except OSError as error:
        raise TtsrError(f"cannot listen on {settings.host} port {settings.port}: {error.strerror}") from error


def _tell(url: str) -> None:
    click.echo(f"ttsr-proxy listens on {url}, dashboard at {url}/ttsr/")
