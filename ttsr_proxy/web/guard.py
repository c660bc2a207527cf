"""Keeps web pages away from the proxy's own endpoints, which ask nobody for a password.

A page in a browser on this machine can send requests to a loopback port. It can read the answers when its own
name is made to resolve to 127.0.0.1 (DNS rebinding): then the `Host` header has that name. And it can send
simple requests from its own origin: then the `Origin` header has it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from yarl import URL


def own_endpoints_only_for(host: str, is_ours: Callable[[web.Request], bool]) -> Middleware:
    """Refuses requests of web pages to the requests that `is_ours` names.

    Hosts are checked only when `host`, the address listened on, is a loopback one: elsewhere the proxy does
    not know its names.
    """
    checks_host = _is_loopback(host)

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if is_ours(request):
            if checks_host and not _is_loopback(_name(request.host)):
                return _refused(421, "this address is for local use; ask for it by 127.0.0.1 or localhost")
            origin = request.headers.get("origin")
            if origin is not None and origin != f"{request.scheme}://{request.host}":
                return _refused(403, "requests from pages of other origins are not answered")
        return await handler(request)

    return guard


def _name(host: str) -> str:
    try:
        return URL(f"http://{host}").host or ""
    except ValueError:
        return ""


def _is_loopback(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _refused(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message}}, status=status)
