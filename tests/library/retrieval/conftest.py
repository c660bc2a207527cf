"""Small libraries for the tests of search."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from ttsr_proxy.config import JudgeSettings, RecallSettings
from ttsr_proxy.judges import make_judge
from ttsr_proxy.judges.question import Judge
from ttsr_proxy.library.model import LibraryRule, Scenario, Snapshot
from ttsr_proxy.library.retrieval import Searcher

MakeLibrary = Callable[..., Snapshot]
MakeSearcher = Callable[..., Searcher]


@pytest.fixture(scope="session")
def make_library() -> MakeLibrary:
    """Makes a library of `(scenario, id, constraint)`; a fourth word is the rule's status."""

    def make(*rules: tuple[str, ...], user: str = "alice") -> Snapshot:
        made = {
            name: LibraryRule(
                name,
                scenario,
                constraint,
                name,
                status=rest[0] if rest else "active",  # type: ignore[arg-type]
                content=f"---\natomic_id: {name}\n---\n{constraint}\n",
            )
            for scenario, name, constraint, *rest in rules
        }
        scenarios = {
            rule.scenario_id: Scenario(rule.scenario_id, rule.scenario_id.title()) for rule in made.values()
        }
        return Snapshot(user, 1, made, scenarios)

    return make


@pytest.fixture
async def make_searcher(tmp_path: Path) -> AsyncIterator[MakeSearcher]:
    """Makes searchers, by words unless told otherwise, and closes them."""
    made: list[tuple[Searcher, Judge]] = []

    def make(judge: JudgeSettings | None = None) -> Searcher:
        judging = make_judge(judge or JudgeSettings())
        made.append((Searcher(RecallSettings(backend="bm25"), judging, tmp_path), judging))
        return made[-1][0]

    yield make
    for searcher, judging in made:
        await searcher.close()
        await judging.close()
