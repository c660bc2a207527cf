"""Fetches one text from a public URL: no redirect, address or size goes unchecked."""

from __future__ import annotations

import html.parser
import ipaddress
import re
import socket
from dataclasses import dataclass

import aiohttp
from yarl import URL

from ttsr_proxy.library.errors import InvalidArgument, LibraryError, Refused
from ttsr_proxy.library.ingestion.addresses import PublicResolver
from ttsr_proxy.library.ingestion.archives import decode_text

MAX_BODY = 2 * 1024 * 1024
"""Bytes of a body, decompressed."""

MAX_REDIRECTS = 3
CONNECT_SECONDS = 10.0
TOTAL_SECONDS = 30.0

_PORTS = (80, 443)
_TYPES = ("text/", "application/json", "application/yaml", "application/x-yaml")
_REDIRECTS = (301, 302, 303, 307, 308)


class FetchFailed(LibraryError):
    """The URL could not be fetched, or holds no text."""

    code = "PROCESSING_ERROR"


def checked_url(text: str) -> URL:
    """The URL if it may be fetched as far as that can be seen without looking up its host.

    Raises InvalidArgument for what is no http or https URL, Refused for a host that is not public.
    """
    try:
        url = URL(text)
    except ValueError as error:
        raise InvalidArgument(f"{text[:200]!r} is not a URL") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidArgument(f"{text[:200]!r}: only http:// and https:// URLs can be fetched")
    if url.user or url.password:
        raise InvalidArgument("a URL must not hold credentials")
    return url


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Fetches texts. `resolver` and `ports` are for tests."""

    resolver: PublicResolver
    ports: tuple[int, ...] = _PORTS

    def check(self, text: str) -> URL:
        """As `checked_url`; also refuses ports other than the usual ones and addresses in any spelling."""
        url = checked_url(text)
        # A dot at the end only says that a name is complete.
        host = (url.host or "").removesuffix(".")
        if url.port not in self.ports:
            raise Refused(f"port {url.port} may not be fetched from")
        address = _as_address(host)
        if address is not None:
            self.resolver.check(address, host)
        elif host == "localhost" or host.endswith((".localhost", ".local", ".internal")):
            raise Refused(f"{host} is not a public host")
        return url

    async def fetch(self, text: str) -> tuple[str, str]:
        """The text at a URL and its last path segment. Raises LibraryError."""
        url = self.check(text)
        connector = aiohttp.TCPConnector(resolver=self.resolver, use_dns_cache=False, force_close=True)
        timeout = aiohttp.ClientTimeout(total=TOTAL_SECONDS, sock_connect=CONNECT_SECONDS)
        try:
            async with aiohttp.ClientSession(
                connector=connector, timeout=timeout, trust_env=False
            ) as session:
                for _ in range(MAX_REDIRECTS + 1):
                    async with session.get(url, allow_redirects=False) as answer:
                        if answer.status not in _REDIRECTS:
                            return await _text(answer), url.name or (url.host or "")
                        target = url.join(URL(answer.headers.get("location", "")))
                        url = self.check(str(target))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            reason = "it took too long" if isinstance(error, TimeoutError) else str(error)
            raise FetchFailed(f"{text} cannot be fetched: {reason}") from error
        raise FetchFailed(f"{text} redirects more than {MAX_REDIRECTS} times")


async def _text(answer: aiohttp.ClientResponse) -> str:
    if answer.status != 200:
        raise FetchFailed(f"{answer.url} answers with status {answer.status}")
    if not answer.content_type.startswith(_TYPES):
        raise FetchFailed(f"{answer.url} is {answer.content_type}; only text, JSON and YAML are read")
    data = bytearray()
    async for chunk in answer.content.iter_chunked(64 * 1024):
        data += chunk
        if len(data) > MAX_BODY:
            raise FetchFailed(f"{answer.url} is larger than {MAX_BODY:,} bytes")
    text = decode_text(bytes(data))
    if text is None:
        raise FetchFailed(f"{answer.url} holds no text")
    return _visible(text) if answer.content_type == "text/html" else text


def _as_address(host: str) -> str | None:
    """The IP address that a host is, in any spelling that systems accept (`2130706433`, `0x7f.1`)."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except (OSError, ValueError):
        return None


class _Visible(html.parser.HTMLParser):
    _BLOCKS = frozenset("p div section article ul ol table tr br pre blockquote dl dt dd".split())  # noqa: SIM905
    _HIDDEN = frozenset("script style template noscript head nav".split())  # noqa: SIM905

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self._HIDDEN:
            self._hidden += 1
        elif tag == "li":
            self.parts.append("\n- ")
        elif tag in self._BLOCKS:
            self.parts.append("\n\n")
        elif len(tag) == 2 and tag[0] == "h" and tag[1] in "123456":
            self.parts.append(f"\n\n{'#' * int(tag[1])} ")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._HIDDEN:
            self._hidden = max(0, self._hidden - 1)
        elif tag in self._BLOCKS or (len(tag) == 2 and tag[0] == "h"):
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(re.sub(r"\s+", " ", data))


def _visible(text: str) -> str:
    """The text of an HTML page as simple Markdown."""
    parser = _Visible()
    parser.feed(text)
    parser.close()
    return "".join(parser.parts).strip()
