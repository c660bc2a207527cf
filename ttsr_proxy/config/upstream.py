"""Upstream URLs: which are allowed, and how one is put before a client's path."""

from __future__ import annotations

from urllib.parse import urlsplit


def checked_upstream(url: str) -> str:
    """The URL without a trailing slash. Raises ValueError, saying what an upstream URL must be."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is not an http:// or https:// URL with a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("an upstream URL must not contain credentials; clients send their own")
    if parts.query or parts.fragment:
        raise ValueError(f"{url!r} must end with its path: no query and no fragment")
    _ = parts.port  # raises ValueError on a port that is not a number up to 65535
    return url.rstrip("/")


def join_upstream(base: str, path_qs: str) -> str:
    """The URL to ask for a client's path and query, both as they came (percent-encoding is kept).

    Some clients' base URLs end in `/v1` and some add it themselves, so a `/v1` that ends the base and also
    begins the path is written once.
    """
    base = base.rstrip("/")
    if base.endswith("/v1") and (path_qs == "/v1" or path_qs.startswith(("/v1/", "/v1?"))):
        path_qs = path_qs.removeprefix("/v1")
    return base + path_qs
