"""The server as a process: it stops when told, comes back after a crash, and shares its state."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator

import pytest
from proxy_under_test import Workspace
from raw_http import RawRequest, RawUpstream, ask, raw_upstream, response, send
from raw_http.messages import BODY, HEADERS, events
from served_processes import (
    HEAD,
    SSE,
    Start,
    follow_up,
    goes_on,
    held_stream,
    interrupted,
    refuses_connections,
    serving,
)


@pytest.fixture
async def upstream() -> AsyncIterator[RawUpstream]:
    async with raw_upstream() as server:
        yield server


@pytest.fixture
async def start(workspace: Workspace, upstream: RawUpstream) -> AsyncIterator[Start]:
    async with serving(workspace, upstream) as begin:
        yield begin


async def test_sigterm_lets_running_answers_finish_and_refuses_new_connections(
    start: Start, upstream: RawUpstream
) -> None:
    process, proxy = await start()
    go_on = held_stream(upstream)
    async with send(proxy.url, HEAD + BODY) as (reader, _):
        await reader.readuntil(b"Begun. ")
        process.terminate()
        await refuses_connections(proxy)
        assert process.returncode is None
        go_on.set()
        assert b"message_stop" in await asyncio.wait_for(reader.read(), 10)
    assert await asyncio.wait_for(process.wait(), 10) == 0
    assert process.stderr is not None
    assert b"stopping" in await process.stderr.read()


async def test_a_second_signal_ends_what_still_runs(start: Start, upstream: RawUpstream) -> None:
    process, proxy = await start()
    held_stream(upstream)
    async with send(proxy.url, HEAD + BODY) as (reader, _):
        await reader.readuntil(b"Begun. ")
        process.terminate()
        await refuses_connections(proxy)
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 10) == 0
        assert b"message_stop" not in await reader.read()
    await asyncio.wait_for(upstream.received[0].gone.wait(), 10)


async def test_idle_connections_and_live_feeds_do_not_keep_it_from_stopping(start: Start) -> None:
    process, proxy = await start()
    feed = b"GET /ttsr/api/interrupts HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
    idle = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with send(proxy.url, feed) as (live, _), send(proxy.url, idle) as (kept, _):
        await live.readuntil(b"the records arrive here")
        await kept.readuntil(b"ok")
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 10) == 0


async def test_after_kill_9_the_conversation_and_the_log_are_still_there(
    start: Start, upstream: RawUpstream
) -> None:
    process, proxy = await start()
    await interrupted(proxy, upstream)
    await proxy.log(("interrupted", "clean"))
    process.kill()
    await process.wait()
    _, again = await start()
    await again.log(("interrupted", "clean"))
    assert "system-interrupt" in str(await goes_on(again, upstream))


async def test_two_processes_share_conversations_and_the_log(start: Start, upstream: RawUpstream) -> None:
    (_, one), (_, two) = await asyncio.gather(start(), start())
    await interrupted(one, upstream)
    assert "system-interrupt" in str(await goes_on(two, upstream))
    await interrupted(two, upstream)
    for proxy in (one, two):
        await proxy.log(("interrupted", "clean"), ("interrupted", "clean"))


async def test_a_state_file_that_another_program_has_locked_does_not_stop_traffic(
    start: Start, upstream: RawUpstream, workspace: Workspace
) -> None:
    _, proxy = await start()
    await interrupted(proxy, upstream)
    await proxy.log(("interrupted", "clean"))
    other = sqlite3.connect(workspace.state, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        fine = response(b"".join(events("Fine.")), kind="text/event-stream")
        upstream.script.extend([fine] * LOAD)
        asking = [
            ask(proxy.url, "POST", "/v1/messages", *HEADERS, body=follow_up(str(number)))
            for number in range(LOAD)
        ]
        for answer in await asyncio.gather(*asking):
            assert b"message_stop" in answer.body
        async with asyncio.timeout(15):
            while (await ask(proxy.url, "GET", "/readyz")).status != 503:
                pass
    finally:
        other.execute("ROLLBACK")
        other.close()


LOAD = 24


def load_stream(upstream: RawUpstream) -> asyncio.Event:
    """Script answers that stop in the middle until the event is set, one for each client of a load."""
    go_on = asyncio.Event()

    async def play(request: RawRequest, writer: asyncio.StreamWriter) -> None:
        parts = events("Begun. ", "Done.")
        writer.write(SSE + b"".join(parts[:3]))
        await writer.drain()
        await go_on.wait()
        writer.write(b"".join(parts[3:]))

    upstream.script.extend(play for _ in range(LOAD))
    return go_on


async def test_sigterm_under_load_loses_no_answer(start: Start, upstream: RawUpstream) -> None:
    process, proxy = await start()
    go_on = load_stream(upstream)

    async def client() -> bytes:
        async with send(proxy.url, HEAD + BODY) as (reader, _):
            return await reader.read()

    clients = [asyncio.create_task(client()) for _ in range(LOAD)]
    await upstream.next_request(LOAD)
    process.terminate()
    await refuses_connections(proxy)
    go_on.set()
    answers = await asyncio.wait_for(asyncio.gather(*clients), 20)
    assert all(b"message_stop" in answer for answer in answers)
    assert await asyncio.wait_for(process.wait(), 20) == 0


async def test_kill_9_under_load_leaves_a_sound_state_and_no_connection(
    start: Start, upstream: RawUpstream, workspace: Workspace
) -> None:
    process, proxy = await start()
    await interrupted(proxy, upstream)
    await proxy.log(("interrupted", "clean"))
    load_stream(upstream)

    async def client() -> bytes:
        async with send(proxy.url, HEAD + BODY) as (reader, _):
            try:
                return await reader.read()
            except ConnectionError:
                return b""

    clients = [asyncio.create_task(client()) for _ in range(LOAD)]
    await upstream.next_request(LOAD + 2)
    process.kill()
    answers = await asyncio.wait_for(asyncio.gather(*clients), 20)
    assert not any(b"message_stop" in answer for answer in answers)
    await asyncio.wait_for(
        asyncio.gather(*(request.gone.wait() for request in upstream.received[-LOAD:])), 20
    )
    with contextlib.closing(sqlite3.connect(workspace.state)) as state:
        assert state.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    upstream.script.clear()
    _, again = await start()
    assert "system-interrupt" in str(await goes_on(again, upstream))
