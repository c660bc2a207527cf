"""What `doctor` says of the upstreams."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
import trustme
from aiohttp import web

from ttsr_proxy.cli.doctor.finding import Finding
from ttsr_proxy.cli.doctor.upstreams import of_upstreams
from ttsr_proxy.config import Settings, Upstreams

MakeSettings = Callable[..., Settings]
Answering = Callable[..., AbstractAsyncContextManager[str]]


@pytest.fixture(autouse=True)
def _no_http_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def ask(settings: MakeSettings, url: str, other: str | None = None) -> list[Finding]:
    return await of_upstreams(settings(upstreams=Upstreams(url, other or url)))


@asynccontextmanager
async def server(answer: bytes, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Answers every connection with these bytes; gives its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with listener:
        yield listener.sockets[0].getsockname()[1]


@pytest.mark.parametrize("status", [200, 401, 404, 500])
async def test_any_http_answer_counts_as_reachable(settings: MakeSettings, status: int) -> None:
    async with server(f"HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n".encode()) as port:
        (finding,) = await ask(settings, f"http://127.0.0.1:{port}")
    assert (finding.level, f"HTTP {status}" in finding.what) == ("ok", True)


async def test_no_credentials_are_sent_and_no_redirect_is_followed(
    settings: MakeSettings, answering: Answering, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[web.Request] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request)
        return web.Response(status=302, headers={"Location": "/elsewhere"})

    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    async with answering(answer) as url:
        (finding,) = await ask(settings, url)
    assert finding.level == "ok"
    (request,) = asked
    assert not {"authorization", "x-api-key", "cookie"} & {name.lower() for name in request.headers}


async def test_each_upstream_is_asked_once(settings: MakeSettings) -> None:
    async with server(b"HTTP/1.1 200 x\r\ncontent-length: 0\r\n\r\n") as port:
        same = await ask(settings, f"http://127.0.0.1:{port}")
        two = await ask(settings, f"http://127.0.0.1:{port}/a", f"http://127.0.0.1:{port}/b")
    assert same[0].what.startswith("anthropic and openai at")
    assert [finding.what.split()[0] for finding in two] == ["anthropic", "openai"]


async def test_a_port_where_nobody_listens_is_a_failure(settings: MakeSettings) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        (finding,) = await ask(settings, f"http://127.0.0.1:{held.getsockname()[1]}")
    assert (finding.level, "cannot connect" in finding.what) == ("fail", True)


async def test_a_certificate_of_an_unknown_authority_is_named_as_such(settings: MakeSettings) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    async with server(b"", context) as port:
        (finding,) = await ask(settings, f"https://127.0.0.1:{port}")
    assert finding.level == "fail"
    assert "certificate is not accepted" in finding.what
    assert "SSL_CERT_FILE" in finding.mend


async def test_https_to_a_plain_server_is_named_as_such(settings: MakeSettings) -> None:
    async with server(b"HTTP/1.1 400 x\r\ncontent-length: 0\r\n\r\n") as port:
        (finding,) = await ask(settings, f"https://127.0.0.1:{port}")
    assert (finding.level, "TLS failed" in finding.what) == ("fail", True)
    assert "http://" in finding.mend


async def test_what_does_not_speak_http_is_a_failure(settings: MakeSettings) -> None:
    async with server(b"\x15\x03\x01\x00\x02\x02\x16") as port:
        (finding,) = await ask(settings, f"http://127.0.0.1:{port}")
    assert (finding.level, "no HTTP server" in finding.what) == ("fail", True)


async def test_an_upstream_that_is_the_proxy_itself_is_a_failure_and_not_asked(
    settings: MakeSettings,
) -> None:
    upstream = "http://localhost:8787"
    (finding,) = await of_upstreams(settings(upstreams=Upstreams(upstream, upstream), port=8787))
    assert (finding.level, "round in circles" in finding.what) == ("fail", True)


async def test_an_http_proxy_of_the_environment_is_asked_for(
    settings: MakeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with server(b"HTTP/1.1 204 x\r\n\r\n") as port:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        (finding,) = await ask(settings, "http://api.invalid")
    assert (finding.level, "HTTP 204" in finding.what) == ("ok", True)
