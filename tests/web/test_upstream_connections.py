"""Connections to upstream: kept for the next request, though upstream may close them, and by which way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from proxy_under_test import Workspace, running_proxy
from raw_http import ask, raw_upstream, response
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


async def test_the_environment_may_name_a_forward_proxy(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    async with raw_upstream() as forward, raw_upstream() as direct:
        monkeypatch.setenv("HTTP_PROXY", forward.url.replace("//", "//user:word@"))
        forward.script.append(response(b"{}"))
        async with running_proxy(workspace, "http://models.test") as proxy:
            assert (await ask(proxy.url, "POST", "/v1/files", body=b"{}")).status == 200
        assert forward.received[0].target == "http://models.test/v1/files"
        assert forward.received[0].all("proxy-authorization") == ["Basic dXNlcjp3b3Jk"]
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        direct.script.append(response(b"{}"))
        async with running_proxy(workspace, direct.url) as proxy:
            assert (await ask(proxy.url, "POST", "/v1/files", body=b"{}")).status == 200
        assert direct.received[0].target == "/v1/files"


async def test_credentials_that_the_client_did_not_send_are_not_looked_up(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login a password b\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with raw_upstream() as upstream, running_proxy(workspace, upstream.url) as proxy:
        for headers in ([], [("Authorization", "Bearer client")]):
            upstream.script.append(response(b"{}"))
            assert (await ask(proxy.url, "POST", "/v1/files", *headers, body=b"{}")).status == 200
        assert [one.all("authorization") for one in upstream.received] == [[], ["Bearer client"]]
