"""How well search finds rules: recall over a set of rules and task contexts, with each backend.

    .venv/bin/python benchmarks/recall.py [bm25] [minilm]

The set has 40 rules in 12 scenarios, and 60 scenarios of one unrelated rule each. R@n is the share of
relevant rules (or scenarios) among the first n, MRR the mean of one over the rank of the first relevant rule.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ttsr_proxy.config import RecallSettings
from ttsr_proxy.library.model import LibraryRule, Scenario, Snapshot
from ttsr_proxy.library.retrieval.recall import Candidates, Recall, Width

DATA = Path(__file__).parent / "recall_data"
EVERYTHING = Width(10_000, -1.0)


@dataclass(frozen=True)
class Figures:
    """Of one backend on one library."""

    rules: dict[int, float]
    scenarios: dict[int, float]
    mrr: float
    seconds: float
    """For one search, without the first."""


def library(*, distractors: bool) -> Snapshot:
    """The set as a library."""
    data = json.loads((DATA / "rules.json").read_text())
    scenarios = {name: Scenario(name, name, text) for name, text in data["scenarios"].items()}
    rules = [
        LibraryRule(
            rule["id"],
            rule["scenario"],
            rule["text"],
            rule["id"],
            applies_when=rule["applies_when"],
            exception=rule["exception"],
            content=rule["text"],
        )
        for rule in data["rules"]
    ]
    if distractors:
        for name, text in json.loads((DATA / "distractors.json").read_text()):
            scenarios[name] = Scenario(name, name)
            rules.append(LibraryRule(f"{name}-rule", name, text, name, content=text))
    return Snapshot("user", rules={rule.atomic_id: rule for rule in rules}, scenarios=scenarios)


async def measure(backend: str, *, distractors: bool) -> Figures:
    """Recall of one backend."""
    shelf = library(distractors=distractors)
    contexts = [one for one in json.loads((DATA / "contexts.json").read_text()) if one["rel"]]
    with TemporaryDirectory() as directory:
        recall = Recall(RecallSettings(backend=backend), Path(directory))  # type: ignore[arg-type]
        await recall.candidates(shelf, "warm up", EVERYTHING)
        started = time.perf_counter()
        found = [await recall.candidates(shelf, one["text"], EVERYTHING) for one in contexts]
        seconds = (time.perf_counter() - started) / len(contexts)
        await recall.close()
    if any(candidates.warning for candidates in found):
        raise SystemExit(f"{backend}: {found[0].warning}")
    wanted = [one["rel"] for one in contexts]
    wanted_scenarios = [list({shelf.rules[rule].scenario_id for rule in rules}) for rules in wanted]
    ranked = [_ranked(candidates) for candidates in found]
    return Figures(
        {n: _recall(wanted, ranked, n) for n in (1, 5, 10)},
        {n: _recall(wanted_scenarios, [one.scenarios for one in found], n) for n in (1, 3, 5)},
        sum(_reciprocal(w, r) for w, r in zip(wanted, ranked, strict=True)) / len(wanted),
        seconds,
    )


def _ranked(found: Candidates) -> list[str]:
    return sorted(found.rule_scores, key=lambda rule: (-found.rule_scores[rule], rule))


def _recall(wanted: Sequence[Sequence[str]], ranked: Sequence[Sequence[str]], n: int) -> float:
    hits = sum(len(set(w) & set(r[:n])) for w, r in zip(wanted, ranked, strict=True))
    return hits / sum(len(w) for w in wanted)


def _reciprocal(wanted: Sequence[str], ranked: Sequence[str]) -> float:
    return next((1 / place for place, rule in enumerate(ranked, 1) if rule in wanted), 0.0)


async def main() -> None:
    """Print a table."""
    print("| backend | library | rules R@1 / 5 / 10 | MRR | scenarios R@1 / 3 / 5 | ms per search |")
    print("| --- | --- | --- | --- | --- | --- |")
    for backend in sys.argv[1:] or ("minilm", "bm25"):
        for distractors in (False, True):
            figures = await measure(backend, distractors=distractors)
            rules = " / ".join(f"{value:.2f}" for value in figures.rules.values())
            scenarios = " / ".join(f"{value:.2f}" for value in figures.scenarios.values())
            size = "100 rules" if distractors else "40 rules"
            print(
                f"| {backend} | {size} | {rules} | {figures.mrr:.2f} | {scenarios} | "
                f"{figures.seconds * 1000:.0f} |"
            )


if __name__ == "__main__":
    asyncio.run(main())
