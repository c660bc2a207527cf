"""`GET /ttsr/api/interrupts`: the interrupt log as JSON pages or as a live feed."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from aiohttp import web

from ttsr_proxy.errors import StoreError
from ttsr_proxy.interrupts import as_json
from ttsr_proxy.interrupts.store import InterruptFilter
from ttsr_proxy.jsontext import encode
from ttsr_proxy.web.keys import PARTS

DEFAULT_LIMIT = 50
MAX_LIMIT = 1000

_TEXT_FILTERS = ("rule", "project", "conversation", "model", "client", "source", "action", "outcome", "path")
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
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    await response.prepare(request)
    await response.write(b": the records arrive here\n\n")
    after = request.headers.get("last-event-id") or request.query.get("cursor")
    async for record in request.app[PARTS].stores.interrupts.follow(where, after):
        data = encode(as_json.item(record))
        await response.write(b"event: interrupt\nid: " + record.id.encode() + b"\ndata: " + data + b"\n\n")
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
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MAX_LIMIT:
        raise _BadQuery(f"limit must be a whole number from 1 to {MAX_LIMIT}, not {text!r}")
    return int(text)


def _time(query: Mapping[str, str], name: str) -> float | None:
    text = query.get(name)
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise _BadQuery(f"{name} must be seconds since the epoch or an ISO 8601 time, not {text!r}") from None
    return moment.replace(tzinfo=moment.tzinfo or datetime.UTC).timestamp()


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message}}, status=status)
