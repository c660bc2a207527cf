"""The port: free, or held, and by whom."""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping

import aiohttp

from ttsr_proxy.cli.doctor.finding import Finding, fail, ok, warn
from ttsr_proxy.config import Settings

_SECONDS = 3.0
_OTHER_PORT = "choose another with --port (TTSR_PORT)"
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104
"""Where a server that listens on every address is asked."""


async def of_port(settings: Settings) -> Finding:
    """Whether `serve` could listen, or listens already."""
    host, port = settings.host, settings.port
    what = f"{host} port {port}"
    if not port:
        return ok(f"{host}: any free port is taken")
    match _listen(host, port):
        case None:
            return ok(f"{what} is free: no proxy runs there")
        case errno.EADDRINUSE:
            return await _held(host, port, what)
        case errno.EACCES:
            return fail(f"{what} needs more rights than this user has", "choose one above 1023 with --port")
        case errno.EADDRNOTAVAIL | socket.EAI_NONAME:
            return fail(f"{host} is no address of this machine", "set host to 127.0.0.1")
        case number:
            return fail(f"{what} cannot be listened on (error {number})", _OTHER_PORT)


def _listen(host: str, port: int) -> int | None:
    """The error of trying to listen there, None if there is none."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as tried:
            # As the server does it: the last connections of one that has ended are no obstacle.
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(address)
            tried.listen()
    except OSError as error:
        return error.errno
    return None


async def _held(host: str, port: int, what: str) -> Finding:
    asked = _ANY.get(host, host)
    shown = f"[{asked}]" if ":" in asked else asked
    answer = await _readiness(f"http://{shown}:{port}/readyz")
    match answer:
        case {"status": "ready", "inspected": _}:
            return ok(f"a ttsr-proxy serves {what}")
        case {"status": "degraded", "inspected": _, "reason": reason}:
            return warn(f"a ttsr-proxy serves {what}, but {reason}", "see the findings about the state")
        case _:
            return fail(f"{what} is held by another program", f"end that program, or {_OTHER_PORT}")


async def _readiness(url: str) -> Mapping[str, object]:
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_SECONDS)) as session,
            session.get(url, allow_redirects=False) as answer,
        ):
            document = await answer.json()
            return document if isinstance(document, dict) else {}
    except (aiohttp.ClientError, OSError, ValueError):
        return {}
