"""`ttsr-proxy serve` and `ttsr-proxy demo`, as processes."""

from __future__ import annotations

import asyncio
import re
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from anthropic import AsyncAnthropic

from ttsr_proxy.cli.demo import REQUEST
from ttsr_proxy.cli.demo_model import CLEAN, FILE

Start = Callable[..., Awaitable[Process]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts the command line in an empty directory and home; ends what is still running."""
    processes: list[Process] = []
    (tmp_path / "project").mkdir()

    async def begin(*arguments: str) -> Process:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "ttsr_proxy", *arguments),
            cwd=tmp_path / "project",
            env={"HOME": str(tmp_path), "PATH": ""},
            stdout=PIPE,
            stderr=PIPE,
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def url_told_by(process: Process) -> str:
    """The URL in the first line that has one."""
    assert process.stdout is not None
    async for line in process.stdout:
        if found := re.search(rb"http://127\.0\.0\.1:\d+", line):
            return found[0].decode()
    raise AssertionError((await process.communicate())[1].decode())


async def test_serve_tells_its_url_forwards_requests_and_ends_on_sigterm(
    start: Start, tmp_path: Path
) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"path": request.path_qs})

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    async with TestServer(app) as upstream, aiohttp.ClientSession() as session:
        state = tmp_path / "s.db"
        upstream_url = str(upstream.make_url("/v1"))
        process = await start("serve", "--port", "0", "--upstream", upstream_url, "--state", str(state))
        url = await url_told_by(process)
        async with session.get(f"{url}/healthz") as health:
            assert health.status == 200
        async with session.get(f"{url}/v1/models?limit=2") as forwarded:
            assert await forwarded.json() == {"path": "/v1/models?limit=2"}
    process.terminate()
    assert await process.wait() == 0
    assert state.exists()


async def test_a_port_that_is_taken_is_told_without_a_traceback(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = await start("serve", "--port", str(port))
        _, told = await process.communicate()
    assert process.returncode == 2
    assert f"cannot listen on 127.0.0.1 port {port}" in told.decode()
    assert "Traceback" not in told.decode()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--upstream", "ftp://x"], "--upstream: 'ftp://x'"),
        (["--state", "redis://x"], "command line: state: on Redis"),
        (["--state", "mysql://me:s3cret@x"], "--state: expected redis://HOST"),
        (["--rules", "nowhere"], "Directory 'nowhere' does not exist"),
        (["--config", "nowhere.yaml"], "File 'nowhere.yaml' does not exist"),
    ],
)
async def test_a_wrong_option_is_told_without_a_traceback(
    start: Start, arguments: list[str], part: str
) -> None:
    process = await start("serve", *arguments)
    _, told = await process.communicate()
    assert process.returncode == 2
    assert part in told.decode()
    assert "Traceback" not in told.decode()


async def test_the_demo_shows_the_interrupt_and_what_the_client_saw(start: Start) -> None:
    process = await start("demo")
    shown, told = (output.decode() for output in await process.communicate())
    assert process.returncode == 0, told
    assert told == ""
    wrote, interrupt, saw = (
        shown.index(title) for title in ("What the model wrote", "The interrupt", "What the client saw")
    )
    assert "return eval(" in shown[wrote:interrupt]
    assert "outcome: clean" in shown[interrupt:saw]
    assert "<system-interrupt" in shown[interrupt:saw]
    assert "eval(" not in shown[saw:]
    assert "ast.parse(expression" in shown[saw:]
    assert "ttsr-proxy serve" in shown[saw:]


async def test_the_demo_can_stay_up_for_another_client(start: Start) -> None:
    process = await start("demo", "--serve")
    url = await url_told_by(process)
    async with AsyncAnthropic(base_url=url, api_key="none") as client:
        answer = await client.messages.create(**{**REQUEST, "stream": False})
    assert answer.content[-1].input == {"file_path": FILE, "content": CLEAN}
    process.terminate()
    assert await process.wait() == 0
