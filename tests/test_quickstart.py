"""A newcomer's path: what the quickstart says, done as it says it."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from raw_http import RawUpstream, raw_upstream, response
from raw_http.messages import events

PAGE = (Path(__file__).parent.parent / "docs/quickstart.md").read_text()


class Newcomer:
    """A shell in a new project, with the page's commands and the programs of this environment."""

    def __init__(self, directory: Path, upstream: str) -> None:
        self.project = directory / "project"
        self.project.mkdir()
        programs = Path(sys.executable).parent
        self.environ = {
            "HOME": str(directory),
            "PATH": f"{programs}{os.pathsep}{os.defpath}",
            "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_BASE_URL": upstream,
            "COLUMNS": "200",
        }

    def writes(self, name: str) -> None:
        """Save the block that the page names."""
        block = re.search(rf"`{re.escape(name)}`[^\n]*:\n\n```\w+\n(.*?)```", PAGE, re.S)
        assert block is not None, f"the quickstart has no block for {name}"
        file = self.project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block[1])

    async def runs(self, command: str) -> str:
        """What a command of the page prints; it must end well."""
        assert re.search(rf"^{re.escape(command)}$", PAGE, re.M), f"the quickstart has no `{command}`"
        process = await asyncio.create_subprocess_exec(
            *shlex.split(command), cwd=self.project, env=self.environ, stdout=PIPE, stderr=PIPE
        )
        shown, told = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 0, told.decode()
        return shown.decode() + told.decode()


@pytest.fixture
async def upstream() -> AsyncIterator[RawUpstream]:
    async with raw_upstream() as server:
        yield server


@pytest.fixture
def newcomer(tmp_path: Path, upstream: RawUpstream) -> Newcomer:
    return Newcomer(tmp_path, upstream.url)


async def test_the_demo_shows_an_interrupt(newcomer: Newcomer) -> None:
    assert "What the client saw: one clean response" in await newcomer.runs("ttsr-proxy demo")


async def test_the_first_rule_is_listed_and_matches(newcomer: Newcomer) -> None:
    newcomer.writes(".omp/rules/no-eval.md")
    assert "no-eval" in await newcomer.runs("ttsr-proxy rules list")
    assert "no-eval" in await newcomer.runs("ttsr-proxy rules test --text 'x = eval(y)' --path app.py")


async def test_the_first_interrupt_is_seen_by_nobody_but_the_log_and_the_dashboard(
    newcomer: Newcomer, upstream: RawUpstream
) -> None:
    newcomer.writes(".omp/rules/plain-words.md")
    newcomer.writes("ask.py")
    for text in ("Reviewers delve into a change.", "Reviewers read a change."):
        upstream.script.append(response(b"".join(events(text)), kind="text/event-stream"))
    shown = await newcomer.runs("ttsr-proxy run -- python ask.py")
    assert "Reviewers read a change." in shown
    assert "delve" not in shown
    assert "1 request watched, 1 interrupt (plain-words 1)" in shown
    logged = await newcomer.runs("ttsr-proxy log")
    assert "plain-words" in logged
    assert "clean" in logged
    process = await asyncio.create_subprocess_exec(
        *("ttsr-proxy", "serve", "--port", "0"), cwd=newcomer.project, env=newcomer.environ, stdout=PIPE
    )
    try:
        assert process.stdout is not None
        dashboard = re.search(rb"dashboard at (\S+)", await process.stdout.readline())
        assert dashboard is not None
        async with aiohttp.ClientSession() as session, session.get(dashboard[1].decode()) as page:
            assert "plain-words" in await page.text()
    finally:
        process.terminate()
        await process.wait()
