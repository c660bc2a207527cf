"""A library as large as it may be: 5,000 rules on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from rule_library import HTTP, NOW, new_library, text_of

from ttsr_proxy.config import JudgeSettings, RecallSettings
from ttsr_proxy.judges import make_judge
from ttsr_proxy.library.drafting import MAX_RULES, Draft
from ttsr_proxy.library.enforcement import enforced_rules
from ttsr_proxy.library.errors import Exhausted
from ttsr_proxy.library.model import Snapshot
from ttsr_proxy.library.retrieval import Searcher

IN_A_SCENARIO = 10
NEEDLE = 4_321


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Every rule is a file, as people would have written it; every hundredth is enforced."""
    folder = tmp_path_factory.mktemp("library")
    for number in range(MAX_RULES):
        scenario = folder / f"area-{number // IN_A_SCENARIO}"
        scenario.mkdir(exist_ok=True)
        subject = "quixotic zebra" if number == NEEDLE else f"subject {number * 7919 % 10_007}"
        front = f"---\ncondition: never{number}\nscope: text\n---\n" if number % 100 == 0 else ""
        (scenario / f"rule-{number}.md").write_text(f"{front}The {subject} must be checked.\n")
    return new_library(folder).snapshot()


def test_every_rule_is_read_and_those_with_triggers_are_enforced(library: Snapshot) -> None:
    assert len(library.active) == MAX_RULES == 5_000
    assert len(enforced_rules(library)) == 50


async def test_search_finds_one_rule_among_all_and_says_that_it_is_complete(
    library: Snapshot, tmp_path: Path
) -> None:
    judge = make_judge(JudgeSettings())
    searcher = Searcher(RecallSettings(backend="bm25"), judge, tmp_path)
    result = await searcher.search(library, "Today a quixotic zebra comes by.", 0.65)
    await searcher.close()
    found = [rule["atomic_id"] for rule in result["rules"]]
    assert f"rule-{NEEDLE}" in found
    assert len(found) <= 10 * IN_A_SCENARIO
    assert result["delivery"]["complete"] is True
    assert result["scenario_selection"]["recall"] == "bm25"


def test_one_rule_more_is_refused(library: Snapshot) -> None:
    draft = Draft(library, NOW, "test")
    with pytest.raises(Exhausted, match="5,000 rules"):
        draft.new("one-more", text_of("One more rule must hold."), HTTP)
