"""Connections to upstream are kept for the next request, and upstream may have closed one meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from proxy_under_test import Workspace, running_proxy
from raw_http import ask, response
from raw_http.messages import BODY, HEADERS, events


class Forgetful:
    """Answers the first request on each connection and hangs up at the second one."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, bytes]] = []
        self.connections = 0
        self.answers = True
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        for place in (1, 2):
            head = await reader.readuntil(b"\r\n\r\n")
            for line in head.lower().split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    await reader.readexactly(int(line.partition(b":")[2]))
            self.seen.append((number, head.partition(b" HTTP")[0]))
            if place == 2 or not self.answers:
                break
            writer.write(response(b"".join(events("Fine.")), kind="text/event-stream"))
        writer.close()


@pytest.fixture
async def upstream() -> AsyncIterator[Forgetful]:
    async with forgetful() as server:
        yield server


@asynccontextmanager
async def forgetful() -> AsyncIterator[Forgetful]:
    upstream = Forgetful()
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0)
    upstream.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield upstream
    server.close()


async def test_a_model_is_asked_once_more_when_its_idle_connection_was_closed(
    workspace: Workspace, upstream: Forgetful
) -> None:
    workspace.rule("no-bad-word", "BADWORD", scope="text")
    async with running_proxy(workspace, upstream.url) as proxy:
        for _ in range(2):
            answer = await ask(proxy.url, "POST", "/v1/messages", *HEADERS, body=BODY)
            assert b"message_stop" in answer.body
    assert [number for number, _ in upstream.seen] == [1, 1, 2]


async def test_a_new_connection_that_is_closed_unanswered_is_a_failure(
    workspace: Workspace, upstream: Forgetful
) -> None:
    workspace.rule("no-bad-word", "BADWORD", scope="text")
    upstream.answers = False
    async with running_proxy(workspace, upstream.url) as proxy:
        answer = await ask(proxy.url, "POST", "/v1/messages", *HEADERS, body=BODY)
    assert answer.status == 502
    assert len(upstream.seen) == 1


async def test_other_requests_are_not_repeated(workspace: Workspace, upstream: Forgetful) -> None:
    async with running_proxy(workspace, upstream.url) as proxy:
        statuses = [(await ask(proxy.url, "POST", "/v1/files", body=b"{}")).status for _ in range(2)]
    assert statuses == [200, 502]
    assert [number for number, _ in upstream.seen] == [1, 1]
