"""What the commands read from the log. Reading must not create a store at a mistyped path."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ttsr_proxy.cli.terminal import printable
from ttsr_proxy.config import State
from ttsr_proxy.errors import TtsrError
from ttsr_proxy.interrupts.place import interrupts_at, is_there
from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.interrupts.store import InterruptFilter, InterruptStore, Page
from ttsr_proxy.interrupts.summary import Summary, summarise

_PAGE = 1000

_CANDIDATES = 10
"""Ids that are named when the beginning of one is not enough."""


@asynccontextmanager
async def log_at(place: State) -> AsyncIterator[InterruptStore]:
    """The log, created if it is not there."""
    store = interrupts_at(place)
    try:
        yield store
    finally:
        await store.close()


async def pages(place: State, where: InterruptFilter, limit: int | None) -> AsyncIterator[Page]:
    """One page, or without a limit all of them; none where there is no file."""
    if not is_there(place):
        return
    async with log_at(place) as store:
        page = await store.page(where, limit or _PAGE, None)
        yield page
        while limit is None and page.next is not None:
            page = await store.page(where, _PAGE, page.next)
            yield page


async def one_page(place: State, where: InterruptFilter, limit: int | None) -> Page:
    """The same in one piece."""
    found = [page async for page in pages(place, where, limit)]
    items = tuple(record for page in found for record in page.items)
    return Page(items, found[-1].next if found else None)


async def summary(place: State, where: InterruptFilter) -> Summary:
    """Totals; of nothing where there is no file."""
    if not is_there(place):
        return Summary()
    async with log_at(place) as store:
        return await summarise(store, where)


async def find(place: State, beginning: str) -> InterruptRecord:
    """The record with this id, or the only one whose id begins so. Raises TtsrError if there is none."""
    if not is_there(place):
        raise TtsrError(f"there is no interrupt log at {place}; --state names another place")
    async with log_at(place) as store:
        if record := await store.get(beginning):
            return record
        found = await store.ids(beginning, _CANDIDATES + 1)
        if len(found) == 1 and (record := await store.get(found[0])):
            return record
    shown = printable(beginning, limit=80)
    if not found:
        raise TtsrError(f"the interrupt log at {place} has no entry whose id begins with {shown!r}")
    more = ", ..." if len(found) > _CANDIDATES else ""
    named = ", ".join(sorted(found)[:_CANDIDATES])
    raise TtsrError(f"several entries begin with {shown!r}, give more of the id: {printable(named)}{more}")
