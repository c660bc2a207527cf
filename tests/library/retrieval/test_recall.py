"""Which scenarios are candidates."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from ttsr_proxy.config import RecallSettings
from ttsr_proxy.library.model import Snapshot
from ttsr_proxy.library.retrieval import recall as recall_module
from ttsr_proxy.library.retrieval.recall import ALL_SCENARIOS, NARROW, Recall

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
MakeRecall = Callable[..., Recall]


@pytest.fixture
async def make_recall(tmp_path: Path) -> AsyncIterator[MakeRecall]:
    """Makes recalls and closes them."""
    made: list[Recall] = []

    def make(**settings: Any) -> Recall:
        made.append(Recall(RecallSettings(**settings), tmp_path))
        return made[-1]

    yield make
    for recall in made:
        await recall.close()


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("recall_benchmark", BENCHMARKS / "recall.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def library(benchmark: ModuleType) -> Snapshot:
    made: Snapshot = benchmark.library(distractors=True)
    return made


@pytest.mark.parametrize(("backend", "rules", "scenarios"), [("minilm", 0.82, 0.92), ("bm25", 0.50, 0.75)])
async def test_the_five_best_have_most_of_what_is_relevant(
    benchmark: ModuleType, backend: str, rules: float, scenarios: float
) -> None:
    figures = await benchmark.measure(backend, distractors=False)
    assert figures.rules[5] >= rules
    assert figures.scenarios[5] >= scenarios


@pytest.mark.parametrize("backend", ["minilm", "bm25"])
async def test_one_sentence_in_the_middle_of_a_long_context_is_found(
    library: Snapshot, make_recall: MakeRecall, backend: str
) -> None:
    filler = [
        f"Step {number}: look at module {number} and take notes on what it does." for number in range(60)
    ]
    context = " ".join([*filler[:30], "Then add an ALTER TABLE migration that drops a column.", *filler[30:]])
    found = await make_recall(backend=backend).candidates(library, context, NARROW)
    assert "schema-migrations" in found.scenarios
    assert found.backend == backend
    assert found.chunks == 61


async def test_a_small_library_is_taken_as_a_whole(make_library: Any, make_recall: MakeRecall) -> None:
    rules = [(f"s{number}", f"r{number}", "Pin versions.") for number in range(ALL_SCENARIOS)]
    found = await make_recall(backend="bm25").candidates(make_library(*rules), "anything", NARROW)
    assert found.backend == "all"
    assert found.scenarios == tuple(f"s{number}" for number in range(ALL_SCENARIOS))


async def test_only_active_rules_are_candidates(make_library: Any, make_recall: MakeRecall) -> None:
    shelf = make_library(("a", "one", "Pin versions."), ("b", "two", "Pin versions.", "paused"))
    found = await make_recall(backend="bm25").candidates(shelf, "pin versions", NARROW)
    assert found.scenarios == ("a",)


async def test_pieces_beyond_the_limit_are_counted(
    library: Snapshot, make_recall: MakeRecall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ttsr_proxy.library.retrieval.recall.MAX_CHUNKS", 10)
    context = "\n".join(f"line {number} of a very long context that goes on" for number in range(25))
    found = await make_recall(backend="bm25").candidates(library, context, NARROW)
    assert (found.chunks, found.chunks_skipped) == (10, 15)


async def test_similar_finds_a_restated_rule_and_tells_how_alike_it_is(
    library: Snapshot, make_recall: MakeRecall
) -> None:
    text = "Calls to remote HTTP services need a timeout."
    ((best, *_),) = await make_recall(backend="minilm").similar(library, [text], 3)
    assert best[0].scenario_id == "outbound-http"
    assert 0.5 < best[1] <= 1.0
    words = await make_recall(backend="bm25").similar(library, [best[0].search_text], 1)
    assert words[0][0] == (best[0], 1.0)


async def test_vectors_of_rules_are_kept_for_the_next_process(
    library: Snapshot, make_recall: MakeRecall, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await make_recall(backend="minilm").candidates(library, "drop a column", NARROW)
    again = make_recall(backend="minilm")
    encoded: list[str] = []
    encoder = again._encoder
    assert encoder is not None
    encode = encoder.encode

    async def counting(texts: Any) -> Any:
        encoded.extend(texts)
        return await encode(texts)

    monkeypatch.setattr(encoder, "encode", counting)
    assert (await again.candidates(library, "drop a column", NARROW)).scenarios == first.scenarios
    assert encoded == ["drop a column"]


async def test_a_vector_file_that_cannot_be_used_costs_no_search(
    library: Snapshot, make_recall: MakeRecall, tmp_path: Path
) -> None:
    (tmp_path / "vectors.db").mkdir()
    found = await make_recall(backend="minilm").candidates(library, "drop a column", NARROW)
    assert found.backend == "minilm"
    assert "schema-migrations" in found.scenarios


async def test_without_the_extra_search_goes_by_words_and_says_so(
    library: Snapshot, make_recall: MakeRecall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ttsr_proxy.library.retrieval.encoders.MODEL_PACKAGE", ("no-such-package", "x"))
    found = await make_recall().candidates(library, "ALTER TABLE migration", NARROW)
    assert found.backend == "bm25"
    assert "pip install 'ttsr-proxy[semantic]'" in (found.warning or "")


async def test_another_model_file_than_the_tested_one_is_not_loaded(
    library: Snapshot, make_recall: MakeRecall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ttsr_proxy.library.retrieval.encoders.MODEL_SHA256", "0" * 64)
    found = await make_recall().candidates(library, "ALTER TABLE migration", NARROW)
    assert found.backend == "bm25"
    assert "not the file that this version was tested with" in (found.warning or "")


class TestEndpoint:
    """An OpenAI-compatible embeddings endpoint."""

    @staticmethod
    def vector(text: str) -> list[float]:
        return [float("migration" in text), float("timeout" in text), 0.1]

    async def found(self, make_recall: MakeRecall, library: Snapshot, answer: Any, **settings: Any) -> Any:
        seen: list[web.Request] = []

        async def handle(request: web.Request) -> web.StreamResponse:
            seen.append(request)
            response: web.StreamResponse = answer(await request.json())
            return response

        app = web.Application()
        app.router.add_post("/v1/embeddings", handle)
        async with TestServer(app) as server:
            recall = make_recall(base_url=str(server.make_url("/v1")), model="m", **settings)
            found = await recall.candidates(library, "a migration", NARROW)
        return found, seen

    def answer(self, body: Any) -> web.Response:
        vectors = [
            {"index": number, "embedding": self.vector(text)} for number, text in enumerate(body["input"])
        ]
        # The order is not promised; the index is.
        return web.json_response({"data": vectors[::-1]})

    async def test_its_vectors_are_used_with_the_key_of_the_environment(
        self, library: Snapshot, make_recall: MakeRecall, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("EMBEDDINGS_KEY", "secret")
        found, seen = await self.found(make_recall, library, self.answer, api_key_env="EMBEDDINGS_KEY")
        assert found.backend == "openai"
        assert found.scenarios[0] == "schema-migrations"
        assert found.warning is None
        assert {request.headers["authorization"] for request in seen} == {"Bearer secret"}

    @pytest.mark.parametrize(
        "answer",
        [
            lambda body: web.json_response({"data": []}),
            lambda body: web.json_response({}, status=500),
            lambda body: web.Response(text="no json"),
            lambda body: web.json_response({"data": [{"index": 0, "embedding": ["x"]}]}),
            lambda body: web.Response(status=302, headers={"location": "/elsewhere"}),
        ],
    )
    async def test_when_it_fails_search_goes_by_words_and_says_so(
        self, library: Snapshot, make_recall: MakeRecall, answer: Any
    ) -> None:
        found, _ = await self.found(make_recall, library, answer)
        assert found.backend == "bm25"
        assert "the embeddings endpoint failed" in (found.warning or "")

    async def test_a_missing_key_is_told(self, library: Snapshot, make_recall: MakeRecall) -> None:
        found, seen = await self.found(make_recall, library, self.answer, api_key_env="NO_SUCH_KEY")
        assert seen == []
        assert "NO_SUCH_KEY is not set" in (found.warning or "")

    async def test_a_search_goes_by_words_while_the_vectors_of_new_rules_are_made(
        self, library: Snapshot, make_recall: MakeRecall, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        go_on = asyncio.Event()
        asked: list[int] = []

        async def handle(request: web.Request) -> web.StreamResponse:
            body = await request.json()
            if len(body["input"]) > 1:
                asked.append(len(body["input"]))
                await go_on.wait()
            return self.answer(body)

        app = web.Application()
        app.router.add_post("/v1/embeddings", handle)
        async with TestServer(app) as server:
            recall = make_recall(base_url=str(server.make_url("/v1")), model="m")
            with monkeypatch.context() as patch:
                patch.setattr(recall_module, "PATIENCE_SECONDS", 0.05)
                for _ in range(2):
                    found = await recall.candidates(library, "a migration", NARROW)
                    assert found.backend == "bm25"
                    assert "still being made" in (found.warning or "")
            go_on.set()
            found = await recall.candidates(library, "a migration", NARROW)
        assert (found.backend, found.scenarios[0]) == ("openai", "schema-migrations")
        assert found.warning is None
        # Nothing was encoded twice, and no request held more than one part.
        assert sum(asked) == len({rule.search_text for rule in library.active})
        assert max(asked) <= 64
