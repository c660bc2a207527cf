"""Vectors of texts, kept so that no text is encoded twice. Rebuilt from nothing whenever the file is lost."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from ttsr_proxy.errors import StoreError
from ttsr_proxy.library.retrieval.encoders import Encoder
from ttsr_proxy.sqlite import Database, Schema

if TYPE_CHECKING:
    from ttsr_proxy.library.retrieval.encoders import Vectors

KEPT: Final = 50_000
"""The most vectors in the file; the oldest go first."""

_CACHED: Final = 4_096
"""Vectors in memory, for contexts, which agents send again and again."""

_AT_ONCE: Final = 64
"""Texts of rules that are encoded in one go."""

_SCHEMA: Final = Schema(
    "vectors",
    (
        "CREATE TABLE vectors(number INTEGER PRIMARY KEY, model TEXT NOT NULL, sha256 BLOB NOT NULL, "
        "vector BLOB NOT NULL, UNIQUE(model, sha256))",
    ),
)

_log = structlog.get_logger()


class VectorStore:
    """`durable` vectors are those of rules. A file that cannot be used costs time, never a search."""

    def __init__(self, path: Path, encoder: Encoder) -> None:
        self._database = Database(path, _SCHEMA)
        self._encoder = encoder
        self._cache: OrderedDict[str, bytes] = OrderedDict()
        self._making = asyncio.Lock()

    async def vectors(self, texts: Sequence[str], *, durable: bool) -> Vectors:
        """One row for each text. Raises NoEncoder."""
        # A library has thousands of rules: what is done for each is done in a thread.
        keys = await asyncio.to_thread(_keys, texts)
        known = {key: self._cache[key] for key in keys if key in self._cache}
        if durable:
            known.update(await self._stored([key for key in keys if key not in known]))
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing and durable:
            # One after the other: who comes second finds what the first has made.
            async with self._making:
                known.update(await self._stored(list(missing)))
                await self._make(known, [(key, text) for key, text in missing.items() if key not in known])
        elif missing:
            known.update(await self._encoded(list(missing.items())))
        for key in keys if not durable else ():
            self._cache[key] = known[key]
            self._cache.move_to_end(key)
        while len(self._cache) > _CACHED:
            self._cache.popitem(last=False)
        return await asyncio.to_thread(_unpacked, [known[key] for key in keys])

    async def close(self) -> None:
        await self._database.close()

    async def _make(self, known: dict[str, bytes], missing: Sequence[tuple[str, str]]) -> None:
        """Encode and store part by part: contexts get their turn in between, and a restart loses little."""
        for start in range(0, len(missing), _AT_ONCE):
            fresh = await self._encoded(missing[start : start + _AT_ONCE])
            known.update(fresh)
            await self._store(fresh)

    async def _encoded(self, texts: Sequence[tuple[str, str]]) -> dict[str, bytes]:
        rows = await self._encoder.encode([text for _, text in texts])
        packed = await asyncio.to_thread(_packed, rows)
        return {key: vector for (key, _), vector in zip(texts, packed, strict=True)}

    async def _stored(self, keys: Sequence[str]) -> dict[str, bytes]:
        model = self._encoder.name

        def read(connection: sqlite3.Connection) -> dict[str, bytes]:
            found: dict[str, bytes] = {}
            for key in keys:
                row = connection.execute(
                    "SELECT vector FROM vectors WHERE model = ? AND sha256 = ?", (model, bytes.fromhex(key))
                ).fetchone()
                if row is not None:
                    found[key] = row[0]
            return found

        try:
            return await self._database.read(read)
        except StoreError as error:
            _log.warning("vectors_not_read", error=str(error))
            return {}

    async def _store(self, fresh: dict[str, bytes]) -> None:
        rows = [(self._encoder.name, bytes.fromhex(key), vector) for key, vector in fresh.items()]

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "INSERT OR IGNORE INTO vectors(model, sha256, vector) VALUES (?, ?, ?)", rows
            )
            connection.execute(
                "DELETE FROM vectors WHERE number <= (SELECT max(number) FROM vectors) - ?", (KEPT,)
            )

        try:
            await self._database.write(write)
        except StoreError as error:
            _log.warning("vectors_not_stored", error=str(error))


def _keys(texts: Sequence[str]) -> list[str]:
    return [hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for text in texts]


def _packed(rows: Vectors) -> list[bytes]:
    import numpy

    return [row.tobytes() for row in rows.astype(numpy.float16)]


def _unpacked(rows: Sequence[bytes]) -> Vectors:
    import numpy

    return numpy.array([numpy.frombuffer(row, numpy.float16) for row in rows], numpy.float32)
