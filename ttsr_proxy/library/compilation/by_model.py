"""The compiler that asks a model: plan, check, ask again with what was wrong, then carry out.

All or nothing: a batch without a usable plan fails the whole compilation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ttsr_proxy.library.clock import now
from ttsr_proxy.library.compilation import prompt
from ttsr_proxy.library.compilation.blocks import MAX_BATCHES, Block, SourceText, batches, split_blocks
from ttsr_proxy.library.compilation.candidates import ProposedTriggers, excerpt
from ttsr_proxy.library.compilation.compiler import Compiled, Recall, prove
from ttsr_proxy.library.compilation.nearest import Nearest
from ttsr_proxy.library.compilation.neighbours import Neighbour, Neighbours, says_the_same
from ttsr_proxy.library.compilation.plan import (
    WRITING,
    Plan,
    PlanError,
    PlannedOperation,
    PlannedTrigger,
    plan_schema,
    read_plan,
)
from ttsr_proxy.library.compilation.prover import Prover
from ttsr_proxy.library.compilation.validation import Inputs, evidence_faults, hard_faults, is_authorised
from ttsr_proxy.library.drafting import Draft, RuleText
from ttsr_proxy.library.errors import CompileFailed
from ttsr_proxy.library.model import LibraryRule, Origin, Scenario, Snapshot, Triggers
from ttsr_proxy.models import JsonModel, Message, ModelFailed

LISTED_RULES = 60
"""Rules that the model is shown of a larger library: the most alike, and those that are named."""


@dataclass(frozen=True, slots=True)
class _Checked:
    """A plan with what is still wrong with it."""

    plan: Plan
    hard: list[str]
    evidence: dict[int, list[str]]
    triggers: dict[int, tuple[Triggers, tuple[str, ...]]]
    near: dict[int, Neighbour]
    """New rules that nearly repeat another, and do not say how they differ."""

    @property
    def faults(self) -> list[str]:
        """All of it, for the model."""
        quoted = [
            f"operation {number}: {fault}" for number, faults in self.evidence.items() for fault in faults
        ]
        tried = [
            f"operation {number}: {fault}"
            for number, (_, faults) in self.triggers.items()
            for fault in faults
        ]
        repeated = [f"operation {number}: {neighbour.fault}" for number, neighbour in self.near.items()]
        return [*self.hard, *quoted, *repeated, *tried]


class ModelCompiler:
    """Compiles with a model, at most `attempts` times for each batch."""

    def __init__(self, model: JsonModel, prover: Prover, attempts: int, recall: Recall | None = None) -> None:
        """`recall` finds rules that say nearly the same; where it knows no meanings, words are compared."""
        self._model = model
        self._prover = prover
        self._attempts = attempts
        self._neighbours = Neighbours(recall)

    async def compile(
        self,
        base: Snapshot,
        instruction: str,
        sources: Sequence[SourceText],
        credential: str | None = None,
    ) -> Compiled:
        texts = [SourceText("", instruction), *sources] if instruction.strip() else list(sources)
        blocks = await asyncio.to_thread(_blocks, texts)
        groups = batches(blocks) or [[]]
        if len(groups) > MAX_BATCHES:
            raise CompileFailed(f"the sources make more than {MAX_BATCHES} batches; compile them in parts")
        draft = Draft(base, now(), self._model.name)
        reasons: list[str] = []
        attempts = 0
        for number, group in enumerate(groups):
            inputs = Inputs(
                instruction if number == 0 else "", {block.id: block for block in group}, dict(draft.rules)
            )
            checked, used = await self._plan(base, instruction, group, inputs, credential, first=number == 0)
            attempts += used
            reasons.append(checked.plan.plan_reason)
            _carry_out(draft, checked, inputs)
        meta = {"compiler": "llm", "model": self._model.name, "attempts": attempts}
        return Compiled(draft, " ".join(reason for reason in reasons if reason), len(groups), meta)

    async def _plan(
        self,
        base: Snapshot,
        instruction: str,
        blocks: Sequence[Block],
        inputs: Inputs,
        credential: str | None,
        *,
        first: bool,
    ) -> tuple[_Checked, int]:
        rules = _relevant(inputs.rules.values(), instruction, blocks)
        asked = prompt.request(
            instruction,
            blocks,
            rules,
            list(base.scenarios.values()),
            more_rules=len(inputs.rules) - len(rules),
            first=first,
        )
        messages = [Message("user", asked)]
        best: _Checked | None = None
        faults: list[str] = []
        for attempt in range(1, self._attempts + 1):
            answer = await self._ask(messages, credential)
            try:
                checked = await self._check(read_plan(answer), base, inputs)
            except PlanError as error:
                faults = [str(error)]
            else:
                faults = checked.faults
                if not faults:
                    return checked, attempt
                if not checked.hard:
                    # Usable: what is wrong can be left out. A later attempt may do better.
                    best = checked
            messages += [Message("assistant", answer or "{}"), Message("user", prompt.repair(faults))]
        if best is None:
            told = "; ".join(faults[:3])
            raise CompileFailed(f"no usable plan after {self._attempts} attempts: {told}")
        return best, self._attempts

    async def _ask(self, messages: Sequence[Message], credential: str | None) -> str:
        try:
            return await self._model.ask(prompt.SYSTEM, messages, plan_schema(), credential)
        except ModelFailed as error:
            raise CompileFailed(str(error)) from error

    async def _check(self, plan: Plan, base: Snapshot, inputs: Inputs) -> _Checked:
        evidence: dict[int, list[str]] = {}
        triggers: dict[int, tuple[Triggers, tuple[str, ...]]] = {}
        for number, operation in enumerate(plan.operations):
            if faults := evidence_faults(operation, inputs):
                evidence[number] = faults
            if operation.operation in WRITING and operation.triggers:
                triggers[number] = await self._prove(operation)
        near = await self._neighbours.unexplained(plan, replace(base, rules=inputs.rules))
        return _Checked(plan, hard_faults(plan, inputs), evidence, triggers, near)

    async def _prove(self, operation: PlannedOperation) -> tuple[Triggers, tuple[str, ...]]:
        """The triggers of an operation that hold, and the faults of the others.

        A rule has one scope for all its patterns, so patterns of another scope than the first are left out.
        """
        kept = Triggers()
        faults: list[str] = []
        for trigger in operation.triggers:
            scope = tuple(trigger.scope)
            if kept and scope != kept.scope:
                faults.append(f"no trigger: {trigger.pattern!r} has another scope than the first trigger")
                continue
            proven, told = await prove(self._prover, _proposed(trigger, operation), needs_examples=True)
            faults += told
            if proven:
                kept = replace(
                    proven,
                    condition=kept.condition + proven.condition,
                    ast_condition=kept.ast_condition + proven.ast_condition,
                )
        return kept, tuple(faults)


def _blocks(texts: Sequence[SourceText]) -> list[Block]:
    return [block for number, text in enumerate(texts, 1) for block in split_blocks(text, number)]


def _relevant(rules: Iterable[LibraryRule], instruction: str, blocks: Sequence[Block]) -> list[LibraryRule]:
    everything = list(rules)
    if len(everything) <= LISTED_RULES:
        return everything
    named = [rule for rule in everything if rule.atomic_id in instruction or rule.title in instruction]
    text = "\n".join(block.text for block in blocks)
    alike = [rule for rule, _ in Nearest(everything).ranked(text, LISTED_RULES)]
    return list({rule.atomic_id: rule for rule in (*named, *alike)}.values())


def _proposed(trigger: PlannedTrigger, operation: PlannedOperation) -> ProposedTriggers:
    scope, mode = tuple(trigger.scope), operation.interrupt_mode
    if trigger.kind == "condition":
        triggers = Triggers(condition=(trigger.pattern,), scope=scope, interrupt_mode=mode)
    else:
        triggers = Triggers(ast_condition=(trigger.pattern,), scope=scope, interrupt_mode=mode)
    return ProposedTriggers(triggers, tuple(trigger.positive_examples), tuple(trigger.negative_examples))


def _carry_out(draft: Draft, checked: _Checked, inputs: Inputs) -> None:
    for number, operation in enumerate(checked.plan.operations):
        said = excerpt(
            operation.evidence[0].quote if operation.evidence else operation.authorization_quote or ""
        )
        target = operation.target_atomic_id or ""
        if not is_authorised(operation, inputs):
            draft.uncertain(
                f"not authorised: the instruction does not ask for {operation.operation} of this rule",
                **({"atomic_id": target} if target else {}),
            )
            continue
        if number in checked.evidence:
            draft.reject("not in the source", excerpt=said)
            continue
        if (neighbour := checked.near.get(number)) is not None:
            draft.uncertain(
                f"nearly the same as rule {neighbour.rule.atomic_id}, and not said how it differs",
                atomic_id=neighbour.rule.atomic_id,
                excerpt=said,
                existing=excerpt(neighbour.rule.constraint),
            )
            continue
        match operation.operation:
            case "NEW" | "UPDATE" | "REPLACE":
                _write(draft, operation, inputs, *checked.triggers.get(number, (Triggers(), ())))
            case "NOOP":
                draft.noop(target, operation.reason)
            case "UNCERTAIN":
                draft.uncertain(operation.reason, excerpt=said)
            case "REJECT":
                draft.reject(operation.reason, excerpt=said)
            case "PAUSE" | "RESTORE":
                draft.set_status(operation.operation, target)
            case "ARCHIVE":
                draft.archive(target, operation.reason)


def _write(
    draft: Draft, operation: PlannedOperation, inputs: Inputs, triggers: Triggers, warnings: tuple[str, ...]
) -> None:
    rule = operation.rule
    assert rule is not None
    text = RuleText(
        title=rule.title.strip(),
        constraint=rule.constraint.strip(),
        applies_when=rule.applies_when.strip(),
        exception=rule.exception.strip(),
        triggers=triggers,
        origin=_origin(inputs.blocks[operation.evidence[0].block], rule.slug),
        warnings=warnings,
    )
    target = operation.target_atomic_id or ""
    planned = operation.scenario
    scenario = (
        None
        if planned is None
        else Scenario(planned.scenario_id, planned.title.strip(), planned.summary.strip())
    )
    if operation.operation == "UPDATE":
        draft.update(target, text)
    elif operation.operation == "REPLACE":
        draft.replace(target, rule.slug, text, scenario)
    elif same := _same(draft, text):
        draft.noop(same.atomic_id, f"covered by revision {same.revision}")
    else:
        assert scenario is not None
        draft.new(rule.slug, text, scenario)


def _origin(block: Block, slug: str) -> Origin:
    source = block.source
    if not source.uri:
        return Origin()
    return Origin(source.uri, source.sha256, f"{block.section}/{slug}" if block.section else slug)


def _same(draft: Draft, text: RuleText) -> LibraryRule | None:
    """The active rule that says just this, whatever the model took it for."""
    for rule in draft.rules.values():
        if rule.status == "active" and says_the_same(rule, text):
            return rule
    return None
