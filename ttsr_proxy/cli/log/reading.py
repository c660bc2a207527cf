"""What the commands read from the log. Reading must not create a store at a mistyped path."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ttsr_proxy.cli.terminal import printable
from ttsr_proxy.errors import TtsrError
from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.interrupts.sqlite import SqliteInterruptStore
from ttsr_proxy.interrupts.store import InterruptFilter, InterruptStore, Page
from ttsr_proxy.interrupts.summary import Summary, summarise

_PAGE = 1000

_CANDIDATES = 10
"""Ids that are named when the beginning of one is not enough."""


@asynccontextmanager
async def log_at(file: Path) -> AsyncIterator[InterruptStore]:
    """The log, created if it is not there."""
    store = SqliteInterruptStore(file)
    try:
        yield store
    finally:
        await store.close()


async def pages(file: Path, where: InterruptFilter, limit: int | None) -> AsyncIterator[Page]:
    """One page, or without a limit all of them; none where there is no file."""
    if not _exists(file):
        return
    async with log_at(file) as store:
        page = await store.page(where, limit or _PAGE, None)
        yield page
        while limit is None and page.next is not None:
            page = await store.page(where, _PAGE, page.next)
            yield page


async def one_page(file: Path, where: InterruptFilter, limit: int | None) -> Page:
    """The same in one piece."""
    found = [page async for page in pages(file, where, limit)]
    items = tuple(record for page in found for record in page.items)
    return Page(items, found[-1].next if found else None)


async def summary(file: Path, where: InterruptFilter) -> Summary:
    """Totals; of nothing where there is no file."""
    if not _exists(file):
        return Summary()
    async with log_at(file) as store:
        return await summarise(store, where)


async def find(file: Path, beginning: str) -> InterruptRecord:
    """The record with this id, or the only one whose id begins so. Raises TtsrError if there is none."""
    if not _exists(file):
        raise TtsrError(f"there is no interrupt log at {file}; --state names another file")
    async with log_at(file) as store:
        if record := await store.get(beginning):
            return record
        found = await store.ids(beginning, _CANDIDATES + 1)
        if len(found) == 1 and (record := await store.get(found[0])):
            return record
    shown = printable(beginning, limit=80)
    if not found:
        raise TtsrError(f"the interrupt log at {file} has no entry whose id begins with {shown!r}")
    more = ", ..." if len(found) > _CANDIDATES else ""
    named = ", ".join(sorted(found)[:_CANDIDATES])
    raise TtsrError(f"several entries begin with {shown!r}, give more of the id: {printable(named)}{more}")


def _exists(file: Path) -> bool:
    return file.exists()
