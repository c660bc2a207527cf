"""Running the application on a socket until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable

import structlog
from aiohttp import web

from ttsr_proxy.config import Settings
from ttsr_proxy.web.app import create_app

DRAIN_SECONDS = 60.0
"""How long running responses may take to finish after SIGTERM; a second signal ends the wait."""

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
    asyncio.run(_serve(settings, ready))


async def _serve(settings: Settings, ready: Callable[[str], None] | None) -> None:
    runner = make_runner(create_app(settings))
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    await runner.setup()
    try:
        url = await listen(runner, settings.host, settings.port)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        if ready is not None:
            ready(url)
        await stop.wait()
        _log.info("stopping")
    finally:
        await _drain(runner)


async def _drain(runner: web.AppRunner) -> None:
    """Refuse new connections, let running responses finish, close what they used."""
    again = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
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
    """Listen, and the URL to be reached at. Raises OSError when the address cannot be used.

    The rules and modules that stay are left out of garbage collection, whose pauses delay streams.
    """
    await web.TCPSite(runner, host, port).start()
    gc.collect()
    gc.freeze()
    port = runner.addresses[0][1]
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"
