"""The two compilers behind one interface: texts and a library in, a draft of changes out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.library.clock import now
from ttsr_proxy.library.compilation import deterministic
from ttsr_proxy.library.compilation.blocks import SourceText
from ttsr_proxy.library.compilation.candidates import Extraction, ProposedTriggers, extract
from ttsr_proxy.library.compilation.proof import Claim
from ttsr_proxy.library.compilation.prover import Prover
from ttsr_proxy.library.drafting import Draft
from ttsr_proxy.library.model import LibraryRule, Snapshot, Triggers

TEXTS_AT_ONCE = 64
"""Statements that are compared with the library in one go."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """What a compiler made of the texts."""

    draft: Draft
    plan_reason: str
    batch_count: int
    meta: JsonObject = field(default_factory=dict)


class Compiler(Protocol):
    """Plans changes to a library; writes nothing. Raises LibraryError."""

    async def compile(
        self,
        base: Snapshot,
        instruction: str,
        sources: Sequence[SourceText],
        credential: str | None = None,
    ) -> Compiled:
        """`credential` is for the model, in place of the configured key."""


class Recall(Protocol):
    """Measures how near texts are to the rules of a library."""

    @property
    def by_meaning(self) -> bool:
        """Whether it compares meanings, not words."""

    async def similar(
        self, library: Snapshot, texts: Sequence[str], limit: int
    ) -> list[list[tuple[LibraryRule, float]]]:
        """For each text the nearest rules, best first."""


class DeterministicCompiler:
    """Compiles without a model; `recall` shows it rules that say the same in other words."""

    def __init__(self, prover: Prover, recall: Recall | None = None) -> None:
        self._prover = prover
        self._recall = recall

    async def compile(
        self,
        base: Snapshot,
        instruction: str,
        sources: Sequence[SourceText],
        credential: str | None = None,
    ) -> Compiled:
        commands, rest = deterministic.split_commands(instruction, base)
        texts = [SourceText("", rest), *sources] if rest.strip() else list(sources)
        found = await asyncio.to_thread(extract, texts)
        proven = await self._prove(found)
        nearest = await self._nearest(base, found)
        draft = Draft(base, now(), deterministic.KIND)
        reason = await asyncio.to_thread(
            deterministic.carry_out, draft, base, commands, found, proven, nearest
        )
        return Compiled(draft, reason, found.batch_count, {"compiler": deterministic.KIND, "attempts": 1})

    async def _nearest(self, base: Snapshot, found: Extraction) -> deterministic.Nearness:
        if self._recall is None or not self._recall.by_meaning or not base.rules:
            return {}
        known = {deterministic.rule_key(rule) for rule in base.rules.values()}
        asked = {
            number: f"{candidate.statement.applies_when} {candidate.statement.constraint}".strip()
            for number, candidate in enumerate(found.candidates)
            if candidate.key not in known
        }
        numbers = list(asked)
        nearest: dict[int, tuple[LibraryRule, float]] = {}
        for start in range(0, len(numbers), TEXTS_AT_ONCE):
            part = numbers[start : start + TEXTS_AT_ONCE]
            answers = await self._recall.similar(base, [asked[number] for number in part], 1)
            nearest.update((number, rules[0]) for number, rules in zip(part, answers, strict=True) if rules)
        return nearest

    async def _prove(self, found: Extraction) -> deterministic.Proven:
        proven: dict[int, tuple[Triggers, tuple[str, ...]]] = {}
        for number, candidate in enumerate(found.candidates):
            if candidate.proposed.triggers:
                proven[number] = await prove(self._prover, candidate.proposed, needs_examples=False)
        return proven


async def prove(
    prover: Prover, proposed: ProposedTriggers, *, needs_examples: bool
) -> tuple[Triggers, tuple[str, ...]]:
    """The triggers if they hold, else none, with a warning for each fault; that never costs the rule.

    Kinds of triggers are tried apart, so that one does not cost the other.
    """
    kept = Triggers()
    warnings: list[str] = []
    whole = proposed.triggers
    for part in (replace(whole, ast_condition=()), replace(whole, condition=())):
        if not part:
            continue
        claim = Claim(part, proposed.positive, proposed.negative, needs_examples)
        faults = await prover.faults(claim)
        warnings += [f"no trigger: {fault}" for fault in faults]
        if not faults:
            kept = replace(
                part,
                condition=kept.condition + part.condition,
                ast_condition=kept.ast_condition + part.ast_condition,
            )
    return kept, tuple(warnings)
