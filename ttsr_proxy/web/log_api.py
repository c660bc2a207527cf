"""`GET /ttsr/api/interrupts`: the interrupt log as JSON pages or as a live feed."""

from __future__ import annotations

import asyncio
import datetime
import math
import re
from collections.abc import Mapping

from aiohttp import web

from ttsr_proxy.errors import StoreError
from ttsr_proxy.interrupts import as_json
from ttsr_proxy.interrupts.store import InterruptFilter
from ttsr_proxy.jsontext import encode
from ttsr_proxy.web.keys import PARTS

DEFAULT_LIMIT = 50
MAX_LIMIT = 1000

KEEPALIVE_SECONDS = 15.0
"""How often a feed on which nothing happens says that it is alive."""

_TEXT_FILTERS = (
    "rule",
    "project",
    "conversation",
    "request",
    "model",
    "client",
    "source",
    "action",
    "outcome",
    "path",
)
_TIME_FILTERS = ("since", "until")
PARAMETERS = ("limit", "cursor", *_TEXT_FILTERS, *_TIME_FILTERS)


class _BadQuery(ValueError):
    pass


async def interrupts(request: web.Request) -> web.StreamResponse:
    """A page, newest first; with `Accept: text/event-stream` the records as they arrive."""
    store = request.app[PARTS].stores.interrupts
    try:
        where = _filter(request.query)
        if "text/event-stream" in request.headers.get("accept", ""):
            return await _feed(request, where)
        limit = _limit(request.query.get("limit"))
        found = await store.page(where, limit, request.query.get("cursor"))
    except ValueError as error:
        return _error(400, str(error))
    except StoreError as error:
        return _error(503, str(error))
    return web.Response(body=encode(as_json.page(found)), content_type="application/json")


async def interrupt(request: web.Request) -> web.Response:
    """One record."""
    record_id = request.match_info["id"]
    try:
        record = await request.app[PARTS].stores.interrupts.get(record_id)
    except StoreError as error:
        return _error(503, str(error))
    if record is None:
        return _error(404, f"the interrupt log has no record {record_id!r}")
    return web.Response(body=encode(as_json.item(record)), content_type="application/json")


async def _feed(request: web.Request, where: InterruptFilter) -> web.StreamResponse:
    """Ends when the client leaves, the store fails (clients come back by themselves) or the server stops."""
    parts = request.app[PARTS]
    feed = parts.stores.interrupts.follow(
        where, request.headers.get("last-event-id") or request.query.get("cursor")
    )
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    await response.prepare(request)
    await response.write(b": the records arrive here\n\n")
    stopping = asyncio.create_task(parts.stopping.wait())
    arriving = asyncio.ensure_future(anext(feed))
    try:
        while not stopping.done():
            await asyncio.wait(
                {arriving, stopping}, timeout=KEEPALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if not arriving.done():
                await response.write(b":\n\n")
                continue
            record = arriving.result()
            data = encode(as_json.item(record))
            await response.write(
                b"event: interrupt\nid: " + record.id.encode() + b"\ndata: " + data + b"\n\n"
            )
            arriving = asyncio.ensure_future(anext(feed))
    except (StoreError, ConnectionError):
        pass
    finally:
        stopping.cancel()
        arriving.cancel()
    return response


def _filter(query: Mapping[str, str]) -> InterruptFilter:
    unknown = sorted(set(query) - set(PARAMETERS))
    if unknown:
        raise _BadQuery(f"unknown parameter {unknown[0]!r}; known are {', '.join(PARAMETERS)}")
    texts = {name: query.get(name) for name in _TEXT_FILTERS}
    return InterruptFilter(**texts, since=_time(query, "since"), until=_time(query, "until"))


def _limit(text: str | None) -> int:
    if text is None:
        return DEFAULT_LIMIT
    digits = text.lstrip("0")
    if not re.fullmatch("[0-9]{1,4}", digits) or not 1 <= int(digits) <= MAX_LIMIT:
        raise _BadQuery(f"limit must be a whole number from 1 to {MAX_LIMIT}, not {text[:40]!r}")
    return int(digits)


def _time(query: Mapping[str, str], name: str) -> float | None:
    text = query.get(name)
    if text is None:
        return None
    try:
        seconds = float(text)
        if math.isfinite(seconds):
            return seconds
    except ValueError:
        pass
    try:
        moment = datetime.datetime.fromisoformat(text)
        return moment.replace(tzinfo=moment.tzinfo or datetime.UTC).timestamp()
    except (ValueError, OverflowError):
        wanted = "seconds since the epoch or an ISO 8601 time"
        raise _BadQuery(f"{name} must be {wanted}, not {text[:40]!r}") from None


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message}}, status=status)
