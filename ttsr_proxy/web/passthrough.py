"""Traffic that is not inspected, as it came: method, path, headers and bytes, in both directions."""

from __future__ import annotations

from aiohttp import web

from ttsr_proxy.web.headers import to_client
from ttsr_proxy.web.trail import TRAIL
from ttsr_proxy.web.upstream import UpstreamAnswer, UpstreamLost


async def relay(request: web.Request, answer: UpstreamAnswer) -> web.StreamResponse:
    """Send upstream's answer on while it arrives. A lost upstream breaks the client's connection too."""
    response = web.StreamResponse(
        status=answer.status,
        headers=to_client(answer.response.raw_headers, length_changes=False, decoded=answer.decoded),
    )
    trail = request[TRAIL]
    try:
        await response.prepare(request)
        while piece := await answer.read_piece():
            await response.write(piece)
        await response.write_eof()
    except UpstreamLost:
        trail.call_went("lost")
        trail.outcome = "broken_off"
        if request.transport is not None:
            request.transport.abort()
    except ConnectionError:
        trail.outcome = "client_left"
    finally:
        answer.close()
    return response
