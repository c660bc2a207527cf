"""Who may use the proxy's own endpoints: nobody without the token, if there is one, and no web page.

A page in a browser on this machine can send requests to a loopback port. It can read the answers when its own
name is made to resolve to 127.0.0.1 (DNS rebinding): then the `Host` header has that name. And it can send
simple requests from its own origin: then the `Origin` header has it. A TLS proxy before this one makes the
origin an https one; the host says enough, since a page of that name and port came from here.

The token comes as a bearer token, or as the password of basic authentication, for which a browser asks.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
from collections.abc import Callable

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from yarl import URL

Refuse = Callable[[web.Request, int, str], web.Response]
"""The answer that refuses a request, in the form of what it asks for, from a status and a message."""


def own_endpoints_only_for(host: str, is_ours: Callable[[web.Request], bool], refuse: Refuse) -> Middleware:
    """Refuses requests of web pages to the requests that `is_ours` names.

    Hosts are checked only when `host`, the address listened on, is a loopback one: elsewhere the proxy does
    not know its names.
    """
    checks_host = is_loopback(host)

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if is_ours(request):
            if checks_host and not is_loopback(_name(request.host)):
                message = "this address is for local use; ask for it by 127.0.0.1 or localhost"
                return refuse(request, 421, message)
            origin = request.headers.get("origin")
            if origin is not None and not _is_own_origin(origin, request):
                return refuse(request, 403, "requests from pages of other origins are not answered")
        return await handler(request)

    return guard


def private_endpoints_only_with(
    token: str | None, host: str, is_private: Callable[[web.Request], bool]
) -> Middleware:
    """Refuses requests that `is_private` names unless they bring the token.

    Without a token they are answered only if `host`, the address listened on, is a loopback one.
    """

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if is_private(request):
            if token is None and not is_loopback(host):
                return _refused(403, "on this address this needs a token: set `token` (TTSR_TOKEN)")
            if token is not None and not hmac.compare_digest(_secret(request), token.encode()):
                refused = _refused(401, "send the token as Authorization: Bearer, or as a password")
                refused.headers["WWW-Authenticate"] = 'Basic realm="ttsr-proxy", charset="UTF-8"'
                return refused
        return await handler(request)

    return guard


def _is_own_origin(origin: str, request: web.Request) -> bool:
    """Whether a page of this origin came from here.

    Browsers that tell where a request came from (`Sec-Fetch-Site`, over TLS or on this machine) also keep
    apart what differs in the scheme alone: a page of plain HTTP that somebody on the network put there.
    """
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return False
    return origin.lower() in (f"http://{request.host.lower()}", f"https://{request.host.lower()}")


def _secret(request: web.Request) -> bytes:
    """What the request authenticates with; empty without anything."""
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    match scheme.lower():
        case "bearer":
            return value.strip().encode("utf-8", "surrogateescape")
        case "basic":
            try:
                return base64.b64decode(value, validate=True).partition(b":")[2]
            except (binascii.Error, ValueError):
                return b""
    return b""


def _name(host: str) -> str:
    try:
        return URL(f"http://{host}").host or ""
    except ValueError:
        return ""


def is_loopback(name: str) -> bool:
    """Whether a host's name or address is of this machine only."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _refused(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message}}, status=status)
