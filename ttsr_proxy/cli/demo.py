"""`ttsr-proxy demo`: an interrupt from end to end, with a prepared model instead of a real one."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Final

import aiohttp
import click
from aiohttp import web
from rich.panel import Panel
from rich.text import Text

from ttsr_proxy import jsontext
from ttsr_proxy.cli.demo_model import MODEL, DemoModel
from ttsr_proxy.cli.logging import configure_logging
from ttsr_proxy.cli.terminal import console, printable
from ttsr_proxy.config import DEFAULT_PROJECT, ProjectSettings, Settings, State, TtsrSettings, Upstreams
from ttsr_proxy.errors import TtsrError
from ttsr_proxy.interrupts.place import interrupts_at
from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.interrupts.store import InterruptFilter
from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.web.server import run_server

RULE: Final = r"""---
description: Parse input, never evaluate it
condition: '\beval\('
scope: [text, tool:write, tool:edit]
---
Never call `eval` on input. Parse it with `ast` or `json`, and allow only what you expect.
"""

REQUEST: Final[JsonObject] = {
    "model": MODEL,
    "max_tokens": 1024,
    "stream": True,
    "tools": [
        {
            "name": "Write",
            "description": "Write a file.",
            "input_schema": {
                "type": "object",
                "properties": {"file_path": {"type": "string"}, "content": {"type": "string"}},
            },
        }
    ],
    "messages": [{"role": "user", "content": "Write a function that calculates an arithmetic expression."}],
}

_PACE: Final = 0.02
"""Seconds between two deltas of the model, so that the interrupt happens in the middle of its answer."""

_COLUMNS: Final = 110

_NEXT: Final = """\
Next: put rules of your own into .omp/rules/*.md of your project, run

    ttsr-proxy serve
    ANTHROPIC_BASE_URL=http://127.0.0.1:8787 claude

and watch the interrupts with `ttsr-proxy log --follow`."""


@click.command()
@click.option("--serve", "keep", is_flag=True, help="Stay up, for a client of yours to try.")
def demo(keep: bool) -> None:
    """See an interrupt happen: a prepared model, no key, no network."""
    configure_logging(level=logging.WARNING)
    with (
        TemporaryDirectory(prefix="ttsr-proxy-demo-") as directory,
        _running(DemoModel(_PACE)) as (model, upstream),
    ):
        settings = _settings(Path(directory), upstream)
        visit = _Visit(settings, model, keep)
        run_server(settings, ready=visit.begin)
        visit.end()


def _settings(directory: Path, upstream: str) -> Settings:
    project = directory / "project"
    rules = project / ".omp" / "rules"
    rules.mkdir(parents=True)
    (rules / "no-eval.md").write_text(RULE)
    return Settings(
        state=directory / "state.db",
        port=0,
        upstreams=Upstreams(upstream, upstream),
        projects=(
            ProjectSettings(DEFAULT_PROJECT, project, directory, ttsr=TtsrSettings(builtin_rules=False)),
        ),
    )


@contextmanager
def _running(model: DemoModel) -> Iterator[tuple[DemoModel, str]]:
    """The model on a free port of this machine, in a thread with an event loop of its own; with its URL."""
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(model.application(), access_log=None, handler_cancellation=True)
    thread = Thread(target=loop.run_forever, name="demo-model", daemon=True)
    thread.start()
    try:
        port = asyncio.run_coroutine_threadsafe(_listen(runner), loop).result()
        yield model, f"http://127.0.0.1:{port}"
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _listen(runner: web.AppRunner) -> int:
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, shutdown_timeout=1.0)
    await site.start()
    port: int = runner.addresses[0][1]
    return port


class _Visit:
    """The demo's client, in a thread beside the proxy, which has the main one."""

    def __init__(self, settings: Settings, model: DemoModel, keep: bool) -> None:
        self._settings = settings
        self._model = model
        self._keep = keep
        self._error: BaseException | None = None
        self._over = Event()
        self._thread: Thread | None = None

    def begin(self, url: str) -> None:
        """The proxy listens."""
        self._thread = Thread(target=self._run, args=(url,), name="demo-client", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """The proxy has ended. Raises what went wrong on the way."""
        if self._thread is not None and not self._keep:
            self._thread.join()
        if self._error is not None:
            raise TtsrError(f"the demo failed: {self._error}") from self._error

    def _run(self, url: str) -> None:
        try:
            asyncio.run(self._show(url))
        except Exception as error:  # the boundary of the thread: `end` raises it in the main one
            self._error = error
        if self._error is not None or not self._keep:
            os.kill(os.getpid(), signal.SIGTERM)

    async def _show(self, url: str) -> None:
        seen = [piece async for piece in _ask(url)]
        record = await _logged(self._settings.state)
        out = console()
        out.width = min(out.width, _COLUMNS)
        out.print(_panel("The rule, in .omp/rules/no-eval.md", RULE, "blue"))
        out.print(_panel("What the model wrote, until it was interrupted", self._model.attempts[0], "red"))
        out.print(_panel("The interrupt, as `ttsr-proxy log` has it", _told(record), "yellow"))
        out.print(_panel("What the client saw: one clean response", "".join(seen), "green"))
        if not self._keep:
            out.print(Text(_NEXT))
            return
        out.print(Text(f"The proxy stays up at {url} (Ctrl-C ends it). Try a client of yours:\n"))
        out.print(Text(f"    ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY=none claude"))


async def _ask(url: str) -> AsyncIterator[str]:
    """The text of the deltas that the client is sent."""
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/v1/messages", json=REQUEST, headers={"x-api-key": "none"}) as response,
    ):
        response.raise_for_status()
        async for line in response.content:
            if line.startswith(b"data:"):
                event = jsontext.decode_object(line.removeprefix(b"data:")) or {}
                delta = event.get("delta") or {}
                yield delta.get("text") or delta.get("partial_json") or ""
                if event.get("type") == "content_block_stop":
                    yield "\n"


async def _logged(state: State) -> InterruptRecord:
    store = interrupts_at(state)
    try:
        page = await store.page(InterruptFilter(), 1, None)
    finally:
        await store.close()
    if not page.items:
        raise TtsrError("no interrupt was logged")
    return page.items[0]


def _told(record: InterruptRecord) -> str:
    where = " ".join((record.tool or record.source, *record.paths))
    return (
        f"{record.action}: rule {record.rule} matched {record.matched!r} in {where}\n"
        f"outcome: {record.outcome}\n\n"
        f"The model was reminded, out of the client's sight:\n{record.injected}"
    )


def _panel(title: str, content: str, style: str) -> Panel:
    # Tool arguments are JSON; its escapes are undone so that the code can be read.
    readable = content.replace("\\n", "\n").replace('\\"', '"').strip()
    return Panel(
        Text(printable(readable, keep="\n")), title=Text(title), title_align="left", border_style=style
    )
