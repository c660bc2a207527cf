"""The forward proxies that the environment names (`HTTPS_PROXY`, `NO_PROXY` and so on) for calls to upstream.

aiohttp's `trust_env` would look into the environment anew for every request, in a thread, and also send what
`~/.netrc` has for upstream's host: credentials that the client never gave.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp
from yarl import URL


@dataclass(frozen=True, slots=True)
class ForwardProxy:
    """Where requests go instead of straight to upstream; nowhere else if there is no `url`."""

    url: URL | None = None
    headers: Mapping[str, str] | None = None
    """What the proxy is told besides: credentials."""


class ForwardProxies:
    """The environment's answer for each scheme and host, asked once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], ForwardProxy] = {}

    def of(self, url: URL) -> ForwardProxy:
        """The forward proxy for this URL."""
        place = (url.scheme, url.host or "")
        known = self._known.get(place)
        if known is None:
            known = self._known[place] = _ask_environment(*place)
        return known


def _ask_environment(scheme: str, host: str) -> ForwardProxy:
    named = urllib.request.getproxies().get(scheme)
    if not named or urllib.request.proxy_bypass(host):
        return ForwardProxy()
    url = URL(named if "://" in named else f"http://{named}")
    if url.user is None:
        return ForwardProxy(url)
    credentials = aiohttp.encode_basic_auth(url.user, url.password or "")
    return ForwardProxy(url.with_user(None), {"Proxy-Authorization": credentials})
