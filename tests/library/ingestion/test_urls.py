"""URLs: only public addresses are connected to, whatever names, spellings and redirects say."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.test_utils import TestServer

from ttsr_proxy.library.errors import InvalidArgument, LibraryError, Refused
from ttsr_proxy.library.ingestion import urls
from ttsr_proxy.library.ingestion.addresses import PublicResolver, is_public
from ttsr_proxy.library.ingestion.urls import MAX_BODY, Fetcher, FetchFailed

LOCAL = "127.0.0.1"


class Names(AbstractResolver):
    """A name server whose answers are given one after the other."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked += 1
        addresses = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [
            ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=0)
            for address in addresses
        ]

    async def close(self) -> None:
        """Nothing to close."""


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1",
        "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "::ffff:127.0.0.1",
        "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "ff02::1", "fe80::1%eth0", "not an address",
    ],
)  # fmt: skip
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822"])
def test_addresses_that_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/", "http://localhost/", "http://2130706433/", "http://0x7f000001/", "http://0177.1/",
        "http://127.1/", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://[64:ff9b::7f00:1]/",
        "http://0.0.0.0/", "http://169.254.169.254/latest/meta-data", "http://printer.local/",
        "http://example.com:22/", "http://metadata.google.internal/", "http://[2002:7f00:1::]/",
        "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/", "http://[fe80::1]/", "http://10.0.0.1/",
        "http://localhost./", "http://127.0.0.1./", "http://017700000001/", "http://\uff11\uff12\uff17.0.0.1/",
    ],
)  # fmt: skip
async def test_private_places_are_refused_before_anything_is_sent(url: str) -> None:
    with pytest.raises(Refused):
        Fetcher(PublicResolver(Names(["93.184.216.34"]))).check(url)


@pytest.mark.parametrize("url", ["ftp://example.com/x", "file:///etc/passwd", "http://a:b@example.com/", "x"])
async def test_what_is_no_plain_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgument):
        Fetcher(PublicResolver(Names([]))).check(url)


@pytest.mark.parametrize("addresses", [["10.0.0.1"], ["93.184.216.34", "127.0.0.1"]])
async def test_a_name_with_any_private_address_is_refused(addresses: list[str]) -> None:
    with pytest.raises(LibraryError, match="not public"):
        await Fetcher(PublicResolver(Names(addresses))).fetch("http://example.com/x")


Serve = Callable[[Callable[[web.Request], Awaitable[web.StreamResponse]]], Awaitable[int]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Serve one handler for every path; the result is the port."""
    servers: list[TestServer] = []

    async def start(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> int:
        app = web.Application()
        app.router.add_get("/{path:.*}", handler)
        server = TestServer(app, host=LOCAL)
        await server.start_server()
        servers.append(server)
        assert server.port is not None
        return server.port

    yield start
    for server in servers:
        await server.close()


def fetcher(port: int, *answers: list[str]) -> Fetcher:
    """A fetcher for which loopback is public under the test's names."""
    return Fetcher(PublicResolver(Names(*answers or ([LOCAL],)), allowed=(LOCAL,)), ports=(port,))


async def test_a_text_is_fetched(serve: Serve) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="# Rules\n", content_type="text/markdown")

    port = await serve(answer)
    text, name = await fetcher(port).fetch(f"http://docs.example:{port}/a/standards.md")
    assert (text, name) == ("# Rules\n", "standards.md")


async def test_a_page_is_read_as_its_visible_text(serve: Serve) -> None:
    async def answer(request: web.Request) -> web.Response:
        head = "<head><title>x</title></head><script>bad()</script>"
        page = f"{head}<h2>Rules</h2><ul><li>One <b>must</b> go.</ul>"
        return web.Response(text=page, content_type="text/html")

    port = await serve(answer)
    text, _ = await fetcher(port).fetch(f"http://docs.example:{port}/")
    assert text.split("\n") == ["## Rules", "", "", "", "", "- One must go."]


async def test_a_redirect_to_a_private_place_is_not_followed(serve: Serve) -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        raise web.HTTPFound("http://169.254.169.254/secret")

    port = await serve(answer)
    with pytest.raises(Refused):
        await fetcher(port).fetch(f"http://docs.example:{port}/start")
    assert asked == ["/start"]


@pytest.mark.parametrize(
    "target",
    [
        "ftp://docs.example/x", "file:///etc/passwd", "gopher://docs.example/", "http://docs.example:22/",
        "http://user:pass@docs.example/", "http://[::ffff:127.0.0.1]/", "http://2130706433/",
        "//169.254.169.254/x",
    ],
)  # fmt: skip
async def test_each_redirect_is_checked_as_the_first_url_was(serve: Serve, target: str) -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(status=302, headers={"Location": target})

    port = await serve(answer)
    with pytest.raises((Refused, InvalidArgument)):
        await fetcher(port).fetch(f"http://docs.example:{port}/start")
    assert asked == ["/start"]


@pytest.mark.parametrize(
    ("kind", "taken"),
    [
        ("text/plain", True), ("text/markdown", True), ("text/html; charset=utf-8", True),
        ("application/json", True), ("application/yaml", True), ("application/x-yaml", True),
        ("application/octet-stream", False), ("application/zip", False), ("image/svg+xml", False),
    ],
)  # fmt: skip
async def test_only_texts_are_taken(serve: Serve, kind: str, *, taken: bool) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=b"Rules.", headers={"Content-Type": kind})

    port = await serve(answer)
    fetching = fetcher(port).fetch(f"http://docs.example:{port}/x")
    if taken:
        assert (await fetching)[0] == "Rules."
    else:
        with pytest.raises(FetchFailed, match="only text"):
            await fetching


async def test_a_proxy_named_in_the_environment_is_not_used(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=f"asked for {request.path}")

    port = await serve(answer)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    text, _ = await fetcher(port).fetch(f"http://docs.example:{port}/x")
    assert text == "asked for /x"


async def test_the_limits_are_those_that_are_documented() -> None:
    assert (urls.MAX_BODY, urls.MAX_REDIRECTS) == (2 * 2**20, 3)
    assert (urls.CONNECT_SECONDS, urls.TOTAL_SECONDS) == (10.0, 30.0)
    assert Fetcher(PublicResolver()).ports == (80, 443)


async def test_redirects_are_followed_a_few_times_only(serve: Serve) -> None:
    async def answer(request: web.Request) -> web.Response:
        raise web.HTTPFound(request.path + "x")

    port = await serve(answer)
    with pytest.raises(FetchFailed, match="redirects more than 3 times"):
        await fetcher(port).fetch(f"http://docs.example:{port}/x")


async def test_a_name_that_changes_its_address_after_the_check_is_refused(serve: Serve) -> None:
    async def answer(request: web.Request) -> web.Response:
        raise web.HTTPFound("/again")

    port = await serve(answer)
    rebinding = fetcher(port, [LOCAL], ["10.0.0.1"])
    with pytest.raises(LibraryError, match="not public"):
        await rebinding.fetch(f"http://docs.example:{port}/x")


@pytest.mark.parametrize("compressed", [False, True])
async def test_a_body_that_is_too_large_is_given_up(serve: Serve, *, compressed: bool) -> None:
    async def answer(request: web.Request) -> web.Response:
        response = web.Response(body=b"a" * (MAX_BODY + 1), content_type="text/plain")
        if compressed:
            response.enable_compression()
        return response

    port = await serve(answer)
    with pytest.raises(FetchFailed, match="larger than"):
        await fetcher(port).fetch(f"http://docs.example:{port}/x")


@pytest.mark.parametrize(("status", "kind"), [(404, "text/plain"), (200, "image/png")])
async def test_what_is_no_text_fails(serve: Serve, status: int, kind: str) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, body=b"x", content_type=kind)

    port = await serve(answer)
    with pytest.raises(FetchFailed):
        await fetcher(port).fetch(f"http://docs.example:{port}/x")


async def test_a_host_that_does_not_answer_fails_with_its_reason() -> None:
    with socket.create_server((LOCAL, 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(FetchFailed, match="cannot be fetched"):
        await fetcher(port).fetch(f"http://docs.example:{port}/x")
