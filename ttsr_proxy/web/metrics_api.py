"""`GET /metrics`: what `metrics` lists, for Prometheus."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import version
from typing import Final, TypeVar

import structlog
from aiohttp import web

from ttsr_proxy.web import metrics
from ttsr_proxy.web.faults import fault
from ttsr_proxy.web.keys import PARTS, Parts

ENDPOINT: Final = ("GET", "/metrics", "figures for Prometheus, see [monitoring](monitoring.md)")

REFRESH_SECONDS: Final = 5.0
"""How old the state of a worker may be that another worker tells."""


_log = structlog.get_logger()

Word = TypeVar("Word", bound=str)


async def show(request: web.Request) -> web.Response:
    """All families as text, in the form that the client accepts."""
    parts = request.app[PARTS]
    await refresh(parts)
    body, content_type = parts.metrics.text(request.headers.get("accept", ""))
    return web.Response(body=body, headers={"Content-Type": content_type})


async def keep_fresh(parts: Parts) -> None:
    """Tell the other workers of this one's state, again and again."""
    while True:
        try:
            await refresh(parts)
        except Exception as error:
            # The boundary of a background task: figures are worth no request, and no orderly end.
            _log.error("metrics_failed", **fault(error))
        await asyncio.sleep(REFRESH_SECONDS)


async def refresh(parts: Parts) -> None:
    """Take over what other parts of the program count by themselves, and look at what there is now."""
    figures = parts.metrics
    figures.set(metrics.BUILD, {(version("ttsr-proxy"),): 1})
    figures.set(metrics.OPEN, Counter((trail.protocol,) for trail in parts.open))
    figures.set(metrics.HELD, {(): sum(trail.held_bytes for trail in parts.open)})
    figures.set(metrics.STORE_UP, {(): float(parts.stores.healthy)})
    figures.copy(metrics.MATCHES, parts.stores.counts)
    figures.copy(metrics.STORE_ERRORS, _single(parts.stores.errors))
    figures.copy(metrics.AST_REPLACED, _single(parts.ast.replaced))
    figures.copy(metrics.JUDGED, _single(parts.judging.questions))
    library = parts.library
    figures.copy(metrics.TASKS, _single(library.service.ended))
    figures.copy(metrics.SEARCHES, _single(library.api.searcher.searches))
    figures.copy(metrics.JUDGEMENTS, _single(library.api.searcher.questions))
    figures.set(metrics.RULES, await _rules(parts))


async def _rules(parts: Parts) -> Counter[tuple[str, str]]:
    states: Counter[tuple[str, str]] = Counter()
    for name, project in parts.projects.items():
        extra = await parts.library.enforced(project.settings.library_user)
        for entry in project.catalog.current(extra).inventory.entries:
            states[name, entry.state] += 1
    return states


def _single(counts: Mapping[Word, int]) -> dict[tuple[str], int]:
    return {(name,): count for name, count in counts.items()}
