"""Which scenarios of a library could be for a task: nearness of meaning, and shared words.

A scenario is as near as the nearest of its active rules: vectors of whole scenarios were clearly worse.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

import structlog

from ttsr_proxy.config import RecallSettings
from ttsr_proxy.library.model import LibraryRule, Snapshot
from ttsr_proxy.library.retrieval.chunks import MAX_CHUNKS, chunks
from ttsr_proxy.library.retrieval.encoders import Encoder, EndpointEncoder, LocalEncoder, NoEncoder, key_from
from ttsr_proxy.library.retrieval.lexical import LexicalIndex, overlap
from ttsr_proxy.library.retrieval.vectors import VectorStore

if TYPE_CHECKING:
    from ttsr_proxy.library.retrieval.encoders import Vectors

Backend: TypeAlias = Literal["minilm", "openai", "bm25", "all"]

ALL_SCENARIOS: Final = 8
ALL_CHARS: Final = 24_000
"""A library with no more than this is judged as a whole."""

LEXICAL_EXTRA: Final = 2
"""Scenarios that shared words add to the near ones: identifiers have no meaning to a model."""

PATIENCE_SECONDS: Final = 10.0
"""How long a search waits for the vectors of rules that are new; it then goes by words."""

_KEPT_INDEXES: Final = 8

_log = structlog.get_logger()

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Width:
    """How many scenarios are taken, and how near they must be."""

    count: int
    floor: float


NARROW: Final = Width(8, 0.10)
"""Nothing judges the candidates, so few are taken."""

WIDE: Final = Width(16, 0.05)
"""Each candidate is judged."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Scenarios, the nearest first, and how near each active rule is. No scores when all are taken."""

    backend: Backend
    scenarios: tuple[str, ...]
    scenario_scores: Mapping[str, float]
    rule_scores: Mapping[str, float]
    chunks: int = 0
    chunks_skipped: int = 0
    warning: str | None = None


class Recall:
    """One for the process. Models and indexes work in a thread of their own."""

    def __init__(self, settings: RecallSettings, root: Path) -> None:
        """`root` is the library's directory, where vectors are kept."""
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="library-recall")
        self._backend, self._encoder, self._missing = _choose(settings, self._worker)
        self._vectors = VectorStore(root / "vectors.db", self._encoder) if self._encoder else None
        self._making: set[asyncio.Task[Vectors]] = set()
        # In the worker thread only, as an index belongs to the thread that made it.
        self._index = lru_cache(maxsize=_KEPT_INDEXES)(LexicalIndex)

    async def candidates(self, library: Snapshot, context: str, width: Width) -> Candidates:
        """The scenarios of the library that a task could be about."""
        rules = library.active
        scenarios = tuple(dict.fromkeys(rule.scenario_id for rule in rules))
        if len(scenarios) <= ALL_SCENARIOS and sum(len(rule.content) for rule in rules) <= ALL_CHARS:
            return Candidates("all", scenarios, {}, {})
        pieces = await self._in_worker(lambda: chunks(context))
        used = pieces[:MAX_CHUNKS]
        texts = [rule.search_text for rule in rules]
        lexical = await self._in_worker(lambda: self._index(tuple(texts)).scores(used))
        backend: Backend = "bm25"
        scores, warning = lexical, self._missing
        if self._vectors is not None:
            try:
                scores, backend = await self._nearness(used, texts), self._backend
            except NoEncoder as error:
                warning = f"search went by shared words only: {error}"
                _log.warning("recall_by_words", reason=str(error))
        by_rule = {rule.atomic_id: score for rule, score in zip(rules, scores, strict=True)}
        near = _scenario_scores(rules, scores)
        shared = _scenario_scores(rules, lexical)
        words = [scenario for scenario in _ranked(rules, shared) if shared[scenario] > 0]
        if backend == "bm25":
            # Words miss what is said in other words, and a rule that is lost is worse than one too many.
            chosen = _ranked(rules, shared)[: width.count]
        else:
            close = [scenario for scenario in _ranked(rules, near) if near[scenario] >= width.floor]
            chosen = list(dict.fromkeys([*close[: width.count], *words[:LEXICAL_EXTRA]]))
        return Candidates(
            backend,
            tuple(chosen),
            {scenario: near[scenario] for scenario in chosen},
            by_rule,
            len(used),
            len(pieces) - len(used),
            warning,
        )

    async def similar(
        self, library: Snapshot, texts: Sequence[str], limit: int
    ) -> list[list[tuple[LibraryRule, float]]]:
        """For each text the active and paused rules that are most like it, the most alike first.

        Scores are from 0 to 1: nearness of meaning, or without a model the share of common words.
        """
        rules = list(library.rules.values())
        if not rules or not texts:
            return [[] for _ in texts]
        known = [rule.search_text for rule in rules]
        table: Sequence[Sequence[float]] | None = None
        if self._vectors is not None:
            try:
                mine = await self._vectors.vectors(texts, durable=False)
                theirs = await self._vectors.vectors(known, durable=True)
                table = await self._in_worker(lambda: (mine @ theirs.T).tolist())
            except NoEncoder as error:
                _log.warning("recall_by_words", reason=str(error))
        return await self._in_worker(lambda: _most_alike(rules, texts, known, table, limit))

    @property
    def by_meaning(self) -> bool:
        """Whether `similar` compares meanings; else it compares words."""
        return self._vectors is not None

    async def close(self) -> None:
        for making in self._making:
            making.cancel()
        await asyncio.gather(*self._making, return_exceptions=True)
        if self._vectors is not None:
            await self._vectors.close()
        self._worker.shutdown(wait=False, cancel_futures=True)

    async def _nearness(self, pieces: Sequence[str], texts: Sequence[str]) -> list[float]:
        assert self._vectors is not None
        asked = await self._vectors.vectors(pieces, durable=False)
        known = await self._of_rules(self._vectors, texts)
        return await self._in_worker(lambda: (asked @ known.T).max(axis=0).tolist())

    async def _of_rules(self, vectors: VectorStore, texts: Sequence[str]) -> Vectors:
        """The rules' vectors. Those of many new rules are made on, but not waited for. Raises NoEncoder."""
        making = asyncio.create_task(vectors.vectors(texts, durable=True))
        self._making.add(making)
        making.add_done_callback(self._made)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await asyncio.shield(making)
        except TimeoutError:
            raise NoEncoder("many rules are new, and their vectors are still being made") from None

    def _made(self, making: asyncio.Task[Vectors]) -> None:
        self._making.discard(making)
        if not making.cancelled():
            # The search that asked may have gone on without it.
            making.exception()

    async def _in_worker(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)


def _choose(
    settings: RecallSettings, worker: ThreadPoolExecutor
) -> tuple[Backend, Encoder | None, str | None]:
    """The backend, its encoder, and why there is none if one was wanted."""
    if settings.backend == "bm25":
        return "bm25", None, None
    try:
        if settings.backend == "openai" or (settings.backend == "auto" and settings.base_url):
            if not settings.base_url or not settings.model:
                raise NoEncoder("an embeddings endpoint needs library.recall.baseUrl and .model")
            return (
                "openai",
                EndpointEncoder(settings.base_url, settings.model, key_from(settings.api_key_env)),
                None,
            )
        return "minilm", LocalEncoder(worker, settings.model_path, settings.tokenizer_path), None
    except NoEncoder as error:
        return "bm25", None, f"search goes by shared words only: {error}"


def _most_alike(
    rules: Sequence[LibraryRule],
    texts: Sequence[str],
    known: Sequence[str],
    table: Sequence[Sequence[float]] | None,
    limit: int,
) -> list[list[tuple[LibraryRule, float]]]:
    """For each text the rules by its row of scores; without a table by shared words."""
    if table is None:
        table = [[overlap(text, other) for other in known] for text in texts]
    return [
        sorted(zip(rules, scores, strict=True), key=lambda pair: (-pair[1], pair[0].atomic_id))[:limit]
        for scores in table
    ]


def _scenario_scores(rules: Sequence[LibraryRule], scores: Sequence[float]) -> dict[str, float]:
    best: dict[str, float] = {}
    for rule, score in zip(rules, scores, strict=True):
        best[rule.scenario_id] = max(best.get(rule.scenario_id, score), score)
    return best


def _ranked(rules: Sequence[LibraryRule], scores: Mapping[str, float]) -> list[str]:
    """Scenarios by score; of equal ones that with more rules is likelier to have one that matters."""
    sizes = Counter(rule.scenario_id for rule in rules)
    return sorted(scores, key=lambda scenario: (-scores[scenario], -sizes[scenario], scenario))
