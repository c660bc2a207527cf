"""The stores as the server uses them: a store that fails is reported and never stops an agent's traffic."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

import structlog

from ttsr_proxy.config import RetentionSettings, State
from ttsr_proxy.errors import StoreError
from ttsr_proxy.interrupts.place import interrupts_at
from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.protocols.history import HistoryItem
from ttsr_proxy.sessions.echoes import ChainText, find_echoes, response_anchor
from ttsr_proxy.sessions.place import conversations_at
from ttsr_proxy.sessions.recall import Recalled, recall
from ttsr_proxy.sessions.record import ResponseRecord
from ttsr_proxy.sessions.store import Unfinished
from ttsr_proxy.sessions.tenant import tenant_key

RETRY_WINDOW_SECONDS = 600.0
"""How long an unfinished exchange is remembered for the client's retry of it."""

UNDELIVERED_SECONDS = 86_400.0
"""A reminder that no request has carried for this long is taken to be lost."""

_log = structlog.get_logger()


class Stores:
    """Conversations and interrupt log in one place. Every method but `interrupts` swallows store errors
    after reporting them; `healthy` tells whether the last use went well.

    Raises TtsrError when the state is on Redis and its extra is not installed.
    """

    def __init__(self, state: State) -> None:
        self._conversations = conversations_at(state)
        self.interrupts = interrupts_at(state)
        self._running: set[asyncio.Task[None]] = set()
        self.healthy = True
        self.counts: Counter[tuple[str, str]] = Counter()
        """Matches of this process, by rule and action."""
        self.errors: Counter[str] = Counter()
        """Failures in this process, by what was to be done."""

    async def open(self) -> None:
        try:
            await self._conversations.open()
            await self.interrupts.open()
        except StoreError as error:
            self._failed("open", error)

    async def check(self) -> None:
        """After a failure: find out whether the stores can be used again."""
        if not self.healthy:
            self.healthy = await self._conversations.recovered()

    def soon(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this without anybody waiting for it, behind what was asked for before."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def close(self) -> None:
        if self._running:
            await asyncio.wait(self._running)
        await self._conversations.close()
        await self.interrupts.close()

    async def tenant(self, credential: str, project: str) -> str | None:
        """The key that keeps this credential's conversations apart; None when the store cannot be used."""
        try:
            secret = await self._conversations.tenant_secret()
        except StoreError as error:
            self._failed("tenant", error)
            return None
        return tenant_key(secret, credential, project)

    async def recall(
        self,
        tenant: str | None,
        items: Sequence[HistoryItem],
        chain_text: ChainText,
        *,
        prefill: bool,
        previous: str | None,
    ) -> Recalled:
        """What is remembered about a request; nothing when the store cannot be used."""
        if tenant is not None:
            try:
                return await recall(
                    self._conversations, tenant, items, chain_text, prefill=prefill, previous=previous
                )
            except StoreError as error:
                self._failed("recall", error)
        split = find_echoes(items, chain_text, prefill=prefill, previous=previous)
        return Recalled(split.runs, split.place, continues=previous is not None)

    async def upstream_id(self, tenant: str | None, response_id: str) -> str | None:
        """The id by which upstream knows the response that the client knows by this one; None if unknown."""
        if tenant is None:
            return None
        anchor = response_anchor(response_id)
        try:
            found = (await self._conversations.find(tenant, (anchor,))).get(anchor, ())
        except StoreError as error:
            self._failed("upstream_id", error)
            return None
        return found[0].upstream if found else None

    async def save(self, record: ResponseRecord) -> None:
        try:
            await self._conversations.save(record)
            self.healthy = True
        except StoreError as error:
            self._failed("save", error)

    async def log(self, records: Sequence[InterruptRecord]) -> None:
        self.counts.update((record.rule, record.action) for record in records)
        try:
            await self.interrupts.add(records)
        except StoreError as error:
            self._failed("log", error)

    async def update_log(self, record_id: str, changes: Mapping[str, Any]) -> None:
        try:
            await self.interrupts.update(record_id, **changes)
        except StoreError as error:
            self._failed("update_log", error)

    async def take_unfinished(self, tenant: str | None, key: str) -> Unfinished | None:
        if tenant is None:
            return None
        try:
            return await self._conversations.take_unfinished(tenant, key, time.time() - RETRY_WINDOW_SECONDS)
        except StoreError as error:
            self._failed("take_unfinished", error)
            return None

    async def put_unfinished(self, tenant: str, key: str, left: Unfinished) -> None:
        try:
            await self._conversations.put_unfinished(tenant, key, left)
        except StoreError as error:
            self._failed("put_unfinished", error)

    async def drop_unfinished(self, tenant: str, key: str) -> None:
        try:
            await self._conversations.drop_unfinished(tenant, key)
        except StoreError as error:
            self._failed("drop_unfinished", error)

    async def sweep(self, retention: RetentionSettings) -> None:
        """Apply retention to both stores."""
        now = time.time()
        oldest = now - retention.days * 86_400
        try:
            await self._conversations.sweep(oldest, retention.records)
            await self.interrupts.sweep(oldest, retention.records, now - UNDELIVERED_SECONDS)
        except StoreError as error:
            self._failed("sweep", error)

    def _failed(self, what: str, error: StoreError) -> None:
        self.healthy = False
        self.errors[what] += 1
        _log.error("store_failed", doing=what, error=str(error))
