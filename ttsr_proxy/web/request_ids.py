"""Each request has an id, which joins the client's answer, the program's log and the interrupt log.

It is in the answer's `x-ttsr-request-id`, in the field `request` of the log's lines about the request, and in
the field `request` of the interrupt records.
"""

from __future__ import annotations

import secrets
import time

from aiohttp import web
from aiohttp.typedefs import Handler
from structlog.contextvars import bound_contextvars

HEADER = "x-ttsr-request-id"

_ID = web.RequestKey("ttsr_request_id", str)


def new_id() -> str:
    """Sortable by time, unguessable."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(8)}"


def id_of(request: web.Request) -> str:
    """The request's id, the same whenever it is asked for."""
    if _ID not in request:
        request[_ID] = new_id()
    return request[_ID]


@web.middleware
async def log_by_request(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Put the request's id into every line that is logged while it is handled."""
    with bound_contextvars(request=id_of(request)):
        return await handler(request)


async def tell_id(request: web.Request, response: web.StreamResponse) -> None:
    """For `on_response_prepare`: the id in the answer's headers."""
    response.headers[HEADER] = id_of(request)
