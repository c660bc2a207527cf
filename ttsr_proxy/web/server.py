"""Running the application on a socket until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Awaitable, Callable, Sequence

import structlog
from aiohttp import web

from ttsr_proxy.config import Settings
from ttsr_proxy.web.app import create_app

DRAIN_SECONDS = 60.0
"""How long running responses may take to finish after SIGTERM; a second signal ends the wait."""

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

_AT_ONCE_SECONDS = 0.1
"""For aiohttp zero means without limit."""

_log = structlog.get_logger()


def make_runner(app: web.Application, *, drain_seconds: float = DRAIN_SECONDS) -> web.AppRunner:
    """A runner with the settings that the proxy relies on.

    A handler is cancelled when its client leaves, so that the upstream call ends with it; bodies are handed
    on as they came.
    """
    return web.AppRunner(
        app,
        handler_cancellation=True,
        auto_decompress=False,
        access_log=None,
        shutdown_timeout=drain_seconds,
    )


def run_server(settings: Settings, ready: Callable[[str], None] | None = None) -> None:
    """Serve until SIGTERM or SIGINT, then let running responses finish. `ready` gets the URL once it listens.

    Raises OSError when the address cannot be used.
    """

    async def start(runner: web.AppRunner) -> None:
        url = await listen(runner, settings.host, settings.port)
        if ready is not None:
            ready(url)

    async def serve() -> None:
        await serve_until(asyncio.Event(), settings, start)

    asyncio.run(serve())


async def serve_until(
    stop: asyncio.Event,
    settings: Settings,
    start: Callable[[web.AppRunner], Awaitable[None]],
    *,
    signals: Sequence[signal.Signals] = STOP_SIGNALS,
) -> None:
    """Serve until `stop` is set, by one of the signals or otherwise; then let running responses finish.

    `start` makes the runner listen.
    """
    runner = make_runner(create_app(settings))
    loop = asyncio.get_running_loop()
    await runner.setup()
    try:
        for number in signals:
            loop.add_signal_handler(number, stop.set)
        await start(runner)
        await stop.wait()
        _log.info("stopping")
    finally:
        await _drain(runner, signals)


async def _drain(runner: web.AppRunner, signals: Sequence[signal.Signals]) -> None:
    """Refuse new connections, let running responses finish, close what they used."""
    again = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in signals:
        loop.add_signal_handler(number, again.set)
    draining = asyncio.create_task(runner.cleanup())
    hurry = asyncio.create_task(again.wait())
    await asyncio.wait({draining, hurry}, return_when=asyncio.FIRST_COMPLETED)
    hurry.cancel()
    if not draining.done():
        draining.cancel()
        await asyncio.wait({draining})
        if runner.server is not None:
            await runner.server.shutdown(_AT_ONCE_SECONDS)
        draining = asyncio.create_task(runner.cleanup())
    await draining


async def listen(runner: web.AppRunner, host: str, port: int) -> str:
    """Listen, and the URL to be reached at. Raises OSError when the address cannot be used."""
    await web.TCPSite(runner, host, port).start()
    keep_for_good()
    return shown_url(host, runner.addresses[0][1])


def keep_for_good() -> None:
    """Leave the rules and modules that stay out of garbage collection, whose pauses delay streams."""
    gc.collect()
    gc.freeze()


def shown_url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
