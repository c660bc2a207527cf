"""`serve --workers`: several processes on one port are one proxy."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from proxy_under_test import Proxy, Workspace
from raw_http import RawUpstream, ask, raw_upstream, response, send
from raw_http.messages import BODY, HEADERS, events
from scraped import figures_once
from served_processes import (
    BAD,
    HEAD,
    Start,
    goes_on,
    held_stream,
    interrupted,
    refuses_connections,
    serving,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

MANY = 32
"""Connections of which it is as good as certain that each of two workers gets some."""


@pytest.fixture
async def upstream() -> AsyncIterator[RawUpstream]:
    async with raw_upstream() as server:
        yield server


@pytest.fixture
async def start(workspace: Workspace, upstream: RawUpstream) -> AsyncIterator[Start]:
    async with serving(workspace, upstream) as begin:
        yield begin


def workers_of(process: Process) -> list[int]:
    """The processes that serve: those children that listen on a port have spawned with a pipe to it."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def counted_in(pid: int) -> bytes:
    """The directory of a worker's metrics."""
    variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    (value,) = (value for value in variables if value.startswith(b"PROMETHEUS_MULTIPROC_DIR="))
    return value.partition(b"=")[2]


def sockets_of(pid: int) -> set[str]:
    return {os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.exists()}


async def gone(pids: list[int]) -> None:
    """Returns when none of the processes runs any more."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for pid in pids:
        try:
            watched = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        ended.clear()
        loop.add_reader(watched, ended.set)
        try:
            await asyncio.wait_for(ended.wait(), 20)
        finally:
            loop.remove_reader(watched)
            os.close(watched)


async def requests(proxy: Proxy, count: int) -> list[int]:
    answers = await asyncio.gather(*(ask(proxy.url, "GET", "/healthz") for _ in range(count)))
    return [answer.status for answer in answers]


async def test_connections_go_to_every_worker(start: Start) -> None:
    process, proxy = await start("--workers", "2")
    address = urlsplit(proxy.url)
    before = [sockets_of(pid) for pid in workers_of(process)]
    held = [await asyncio.open_connection(address.hostname, address.port) for _ in range(MANY)]
    for reader, writer in held:
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"ok")
    taken = [len(sockets_of(pid) - known) for pid, known in zip(workers_of(process), before, strict=True)]
    for _, writer in held:
        writer.close()
    assert len(taken) == 2
    assert min(taken) > 0


async def test_a_conversation_goes_on_in_any_worker(start: Start, upstream: RawUpstream) -> None:
    _, proxy = await start("--workers", "2")
    await interrupted(proxy, upstream)
    for _ in range(MANY):
        assert "system-interrupt" in str(await goes_on(proxy, upstream))
    await proxy.log(("interrupted", "clean"))


async def test_every_worker_answers_for_all_how_many_requests_were_inspected(
    start: Start, upstream: RawUpstream
) -> None:
    _, proxy = await start("--workers", "2")
    for number in range(1, MANY + 1):
        await goes_on(proxy, upstream)
        ready = await ask(proxy.url, "GET", "/readyz")
        assert json.loads(ready.body)["inspected"] == number
        overview = await ask(proxy.url, "GET", "/ttsr/", ("Host", "localhost"))
        assert f">{number}<" in overview.body.decode()


async def test_changed_rules_count_in_every_worker(
    start: Start, upstream: RawUpstream, workspace: Workspace
) -> None:
    _, proxy = await start("--workers", "2")
    await requests(proxy, MANY)
    workspace.rule("no-bad-word", "NOTHING", scope="text")
    for _ in range(MANY):
        upstream.script.append(response(b"".join(events(BAD)), kind="text/event-stream"))
        answer = await ask(proxy.url, "POST", "/v1/messages", *HEADERS, body=BODY)
        assert BAD.encode() in answer.body


async def test_a_live_feed_tells_what_happens_in_every_worker(start: Start, upstream: RawUpstream) -> None:
    _, proxy = await start("--workers", "2")
    async with aiohttp.ClientSession() as session:
        feed = await session.get(f"{proxy.url}/ttsr/api/interrupts", headers={"accept": "text/event-stream"})
        await feed.content.readuntil(b"\n\n")
        for _ in range(8):
            await interrupted(proxy, upstream)
        seen: list[Any] = []
        async with asyncio.timeout(20):
            async for line in feed.content:
                if line.startswith(b"data: "):
                    seen.append(json.loads(line.removeprefix(b"data: ")))
                if len({item["id"] for item in seen}) == 8:
                    break


async def test_a_worker_that_dies_is_replaced_and_its_connections_wait_for_the_next(start: Start) -> None:
    process, proxy = await start("--workers", "2")
    first, other = workers_of(process)
    os.kill(first, signal.SIGKILL)
    await gone([first])
    assert await asyncio.wait_for(requests(proxy, MANY), 30) == [200] * MANY
    now = workers_of(process)
    assert len(now) == 2
    assert other in now
    assert first not in now
    process.terminate()
    assert await asyncio.wait_for(process.wait(), 20) == 0
    assert process.stderr is not None
    assert b'"worker_replaced"' in await process.stderr.read()


async def test_sigterm_lets_running_answers_finish_in_every_worker(
    start: Start, upstream: RawUpstream
) -> None:
    process, proxy = await start("--workers", "2")
    pids = workers_of(process)
    go_on = held_stream(upstream)
    async with send(proxy.url, HEAD + BODY) as (reader, _):
        await reader.readuntil(b"Begun. ")
        process.terminate()
        await refuses_connections(proxy)
        assert process.returncode is None
        go_on.set()
        assert b"message_stop" in await asyncio.wait_for(reader.read(), 10)
    assert await asyncio.wait_for(process.wait(), 20) == 0
    await gone(pids)


async def test_a_terminal_s_interrupt_reaches_the_whole_group_and_still_lets_answers_finish(
    start: Start, upstream: RawUpstream
) -> None:
    process, proxy = await start("--workers", "2")
    go_on = held_stream(upstream)
    async with send(proxy.url, HEAD + BODY) as (reader, _):
        await reader.readuntil(b"Begun. ")
        os.killpg(process.pid, signal.SIGINT)
        await refuses_connections(proxy)
        go_on.set()
        assert b"message_stop" in await asyncio.wait_for(reader.read(), 10)
    assert await asyncio.wait_for(process.wait(), 20) == 0


async def test_a_second_signal_ends_what_still_runs(start: Start, upstream: RawUpstream) -> None:
    process, proxy = await start("--workers", "2")
    held_stream(upstream)
    async with send(proxy.url, HEAD + BODY) as (reader, _):
        await reader.readuntil(b"Begun. ")
        process.terminate()
        await refuses_connections(proxy)
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 20) == 0
        assert b"message_stop" not in await reader.read()


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGKILL])
async def test_workers_end_with_their_supervisor_and_leave_nothing_behind(
    start: Start, stop: signal.Signals
) -> None:
    process, proxy = await start("--workers", "2")
    await requests(proxy, MANY)
    pids = workers_of(process)
    shared = counted_in(pids[0])
    assert os.listdir(shared)
    os.kill(pids[0], signal.SIGKILL)
    await gone(pids[:1])
    process.send_signal(stop)
    await process.wait()
    await gone(pids)
    assert not os.access(shared, os.F_OK)


async def test_a_port_that_other_workers_have_is_not_shared_with_them(
    start: Start, workspace: Workspace
) -> None:
    _, proxy = await start("--workers", "2")
    port = str(urlsplit(proxy.url).port)
    other = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ttsr_proxy", "serve", "--port", port, "--workers", "2"),
        *("--state", str(workspace.state), "--project", str(workspace.project)),
        env={"HOME": str(workspace.home), "PATH": ""},
        stderr=asyncio.subprocess.PIPE,
    )
    _, told = await asyncio.wait_for(other.communicate(), 30)
    assert other.returncode == 2
    assert f"cannot listen on 127.0.0.1 port {port}" in told.decode()


async def test_a_worker_that_cannot_start_ends_the_server_with_its_reason(workspace: Workspace) -> None:
    keys = workspace.home / "keys.yaml"
    keys.write_text("not: [right")
    (workspace.project / "ttsr-proxy.yaml").write_text(
        f"library:\n  auth:\n    mode: api_key\n    keysFile: {keys}\n"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ttsr_proxy", "serve", "--port", "0", "--workers", "2"),
        *("--state", str(workspace.state), "--project", str(workspace.project)),
        env={"HOME": str(workspace.home), "PATH": ""},
        stderr=asyncio.subprocess.PIPE,
    )
    _, told = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 2
    assert "cannot start" in told.decode()
    assert "keys.yaml" in told.decode()
    assert "Traceback" not in told.decode()


async def test_metrics_are_those_of_all_workers_whoever_is_asked(start: Start, upstream: RawUpstream) -> None:
    process, proxy = await start("--workers", "2")
    for _ in range(MANY):
        await ask(proxy.url, "GET", "/v1/models")
    for _ in range(5):
        told = await figures_once(
            proxy.url,
            lambda now: now.value("ttsr_requests_total", protocol="other", outcome="completed") == MANY,
        )
        assert told.value("ttsr_worker_starts_total") == 2
        assert told.value("ttsr_rules", project="default", state="active") >= 1
    os.kill(workers_of(process)[0], signal.SIGKILL)
    told = await figures_once(proxy.url, lambda now: now.value("ttsr_worker_starts_total") == 3)
    assert told.value("ttsr_requests_total", protocol="other", outcome="completed") == MANY
