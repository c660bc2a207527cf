"""Which headers go through, and in what form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from multidict import CIMultiDict

RawHeaders: TypeAlias = Sequence[tuple[bytes, bytes]]

# RFC 9110 section 7.6.1, with the older proxy headers that some servers still send.
_HOP_BY_HOP = frozenset(
    (
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)
_OURS = frozenset(("host", "accept-encoding", "content-length", "expect"))
"""Request headers that the proxy sets itself for its own connection to upstream, or has answered itself:
an upstream that ignores `Expect: 100-continue` would be waited for without end."""

OWN_PREFIX = "x-ttsr-"
"""Headers that clients send to the proxy; they are not for upstream."""

BYPASS = "x-ttsr-bypass"
"""A client asks for its request to pass without matching."""

INTERRUPTS = "x-ttsr-interrupts"
"""How often the answer was interrupted before its headers were sent."""


def to_upstream(raw: RawHeaders, *, decoded: bool) -> CIMultiDict[str]:
    """The client's headers for upstream. `decoded`: the body's content encoding was taken off.

    `Accept-Encoding: identity` asks for an answer that can be read without decompressing it.
    """
    dropped = _OURS | _named_in_connection(raw)
    if decoded:
        dropped |= {"content-encoding"}
    headers = _kept(raw, dropped)
    headers["Accept-Encoding"] = "identity"
    return headers


def to_client(raw: RawHeaders, *, length_changes: bool, decoded: bool) -> CIMultiDict[str]:
    """Upstream's headers for the client.

    `length_changes` when the body is not passed on as it came, `decoded` when its content encoding was
    taken off.
    """
    dropped = _named_in_connection(raw)
    if length_changes or decoded:
        dropped |= {"content-length"}
    if decoded:
        dropped |= {"content-encoding"}
    return _kept(raw, dropped)


def lower_case(raw: RawHeaders) -> dict[str, str]:
    """Headers by lower-case name; of repeated ones the first."""
    headers: dict[str, str] = {}
    for name, value in raw:
        headers.setdefault(name.decode("latin-1").lower(), value.decode("utf-8", "replace"))
    return headers


def credential(headers: Mapping[str, str]) -> str:
    """What the client authenticates with, only ever used as input of a keyed hash; empty without any."""
    return headers.get("x-api-key") or headers.get("authorization") or headers.get("api-key") or ""


def _kept(raw: RawHeaders, dropped: frozenset[str]) -> CIMultiDict[str]:
    headers: CIMultiDict[str] = CIMultiDict()
    spelled: dict[str, str] = {}
    for name, value in raw:
        text = name.decode("latin-1")
        lower = text.lower()
        if lower not in dropped and not lower.startswith(OWN_PREFIX):
            # Repetitions are spelled like the first: aiohttp's client drops the one before in another case.
            headers.add(spelled.setdefault(lower, text), value.decode("utf-8", "surrogateescape"))
    return headers


def _named_in_connection(raw: Iterable[tuple[bytes, bytes]]) -> frozenset[str]:
    named = set(_HOP_BY_HOP)
    for name, value in raw:
        if name.lower() == b"connection":
            named.update(part.strip().lower() for part in value.decode("latin-1").split(","))
    return frozenset(named)
