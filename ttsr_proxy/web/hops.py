"""Tells when a request has come back to the proxy that sent it, because its upstream leads to itself."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from multidict import CIMultiDict
from yarl import URL

HEADER = "x-ttsr-via"
"""The proxies that a request went through, by ids that they made up when they started."""

_PUBLIC = frozenset(("api.anthropic.com", "api.openai.com"))
"""Hosts that are no proxy of ours, so that they need not be told."""


class Hops:
    """This proxy's place in a chain of proxies."""

    def __init__(self) -> None:
        self._id = secrets.token_hex(8)

    def has_been_here(self, headers: Mapping[str, str]) -> bool:
        """Whether this proxy has sent the request; `headers` by lower-case name."""
        return self._id in _ids(headers)

    def mark(self, upstream_headers: CIMultiDict[str], headers: Mapping[str, str], url: str) -> None:
        """Add this proxy to the hops of a request for `url`; `headers` are those it came with."""
        if URL(url, encoded=True).host not in _PUBLIC:
            upstream_headers[HEADER] = ", ".join([*_ids(headers), self._id])


def _ids(headers: Mapping[str, str]) -> list[str]:
    return [part.strip() for part in headers.get(HEADER, "").split(",") if part.strip()]
