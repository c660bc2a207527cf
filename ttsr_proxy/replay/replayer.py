"""Feeds what a model wrote to the rules as the stream does, and says what would have been done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from ttsr_proxy.config import TtsrSettings
from ttsr_proxy.interception.attempt import Noticed
from ttsr_proxy.interception.blocks import BlockMatch, WatchedBlock
from ttsr_proxy.interception.budgets import Budget
from ttsr_proxy.interception.echo import Exemptions
from ttsr_proxy.interception.judging import Judge, together
from ttsr_proxy.interception.permission import Permission
from ttsr_proxy.interrupts.record import Action
from ttsr_proxy.protocols.events import BlockDelta, BlockEnded, BlockStarted
from ttsr_proxy.replay.findings import Finding, finding
from ttsr_proxy.replay.standing import Standing
from ttsr_proxy.replay.steps import Output, Step
from ttsr_proxy.toolcalls.families import FamilyTable
from ttsr_proxy.triggers.ruleset import RuleSet


@dataclass(slots=True)
class Totals:
    """What a replay went through."""

    conversations: int = 0
    responses: int = 0
    blocks: int = 0
    """Texts, thinking and tool calls."""
    not_inspected: dict[str, int] = field(default_factory=dict)
    """What rules that apply could not be asked about, by reason."""

    def add(self, other: Totals) -> None:
        """Count what another replay went through too."""
        self.conversations += other.conversations
        self.responses += other.responses
        self.blocks += other.blocks
        for reason, count in other.not_inspected.items():
            self.count_not_inspected(reason, count)

    def count_not_inspected(self, reason: str, count: int = 1) -> None:
        self.not_inspected[reason] = self.not_inspected.get(reason, 0) + count


class Replayer:
    """The conversations of a file, or of several that belong together.

    Rules are judged as in `interception`, with the same functions.

    An interrupt would have changed what follows, which is not known. So what follows in the same answer is
    only observed, and the conversation goes on as it did, with the rule reminded of.
    """

    def __init__(
        self,
        ruleset: RuleSet,
        families: FamilyTable,
        settings: TtsrSettings,
        project: str,
    ) -> None:
        self._ruleset = ruleset
        self._families = families
        self._settings = settings
        self._project = project
        self._standings: dict[str, Standing] = {}
        self._last = Standing()
        self.totals = Totals()

    def take(self, step: Step) -> Iterator[Finding]:
        """The findings of one line."""
        lost = self._last if step.follows_last else Standing()
        standing = Standing() if step.parent is None else self._standings.get(step.parent, lost)
        for output in step.outputs:
            before = standing.turn
            standing = standing.at(output.response, output.attempt)
            self.totals.conversations += standing.turn == 0 and before == -1
            self.totals.responses += standing.turn != before
            found, standing = self._output(output, step.line, standing)
            yield from found
        self._standings[step.key] = self._last = standing

    def _output(self, output: Output, line: int, standing: Standing) -> tuple[list[Finding], Standing]:
        ruleset = self._ruleset.for_agent(output.speaker.agent)
        budget = standing.budget(self._settings.budget)
        permission = Permission(
            ruleset,
            self._families,
            self._settings,
            budget,
            standing.since,
            output.observed,
            output.formats,
            output.uninterrupted,
        )
        judge = Judge(permission, budget, Exemptions(output.reminders))
        found: list[Finding] = []
        for block, violations in self._watched(output, ruleset, permission, judge):
            verdicts, standing = _verdicts(violations, block, standing, permission, budget)
            found += (
                finding(one, block, output, line, standing.turn, action, detail)
                for one, action, detail in verdicts
            )
            if block.kind == "tool" and standing.stopped_by is None:
                standing = standing.delivered_call()
        return found, standing

    def _watched(
        self, output: Output, ruleset: RuleSet, permission: Permission, judge: Judge
    ) -> Iterator[tuple[WatchedBlock, list[BlockMatch]]]:
        """Each block when it is complete, with the matches that break a rule."""
        root = self._root(output.root)
        open_blocks: dict[int, tuple[WatchedBlock, list[BlockMatch]]] = {}
        for event in output.events:
            match event:
                case BlockStarted():
                    reach = permission.reach(event)
                    block = WatchedBlock(event, reach, ruleset, self._families, root)
                    found = block.feed(output.protocol.initial_text(event))
                    open_blocks[event.index] = block, judge.violations(found, block, complete=False)
                case BlockDelta() if event.index in open_blocks:
                    block, violations = open_blocks[event.index]
                    violations += judge.violations(block.feed(event.text), block, complete=False)
                case BlockEnded() if event.index in open_blocks:
                    yield self._complete(*open_blocks.pop(event.index), judge)
        for block, violations in open_blocks.values():
            yield self._complete(block, violations, judge)

    def _complete(
        self, block: WatchedBlock, violations: list[BlockMatch], judge: Judge
    ) -> tuple[WatchedBlock, list[BlockMatch]]:
        self.totals.blocks += block.kind != "opaque"
        violations += judge.violations(block.close(), block, complete=True)
        for view, job in block.ast_jobs():
            violations += judge.violations(block.apply_ast(view, job.run()), block, complete=True)
        for reason in block.not_inspected():
            self.totals.count_not_inspected(reason)
        for rule, pattern in block.muted():
            self.totals.count_not_inspected(f"{rule}: the condition {pattern} overran its time")
        return block, _distinct(violations)

    def _root(self, directory: str) -> str:
        """What paths are relative to: the project, or where the agent worked if that has nothing to do with
        the project."""
        here, project = PurePath(directory), PurePath(self._project)
        related = here.is_relative_to(project) or project.is_relative_to(here)
        return self._project if related or not directory else directory


def _verdicts(
    violations: Sequence[BlockMatch],
    block: WatchedBlock,
    standing: Standing,
    permission: Permission,
    budget: Budget,
) -> tuple[list[tuple[BlockMatch, Action, str]], Standing]:
    """What would have been done about each match of a block, and the standing behind the block."""
    verdicts: list[tuple[BlockMatch, Action, str]] = []
    interrupting: list[BlockMatch] = []
    for one in violations:
        rule = one.match.rule
        behind = standing.stopped_by
        if interrupting and not together(one, interrupting[0]):
            behind = interrupting[0].match.rule.name
        if behind is not None:
            verdicts.append((one, "observed", f"behind an interrupt by {behind} in the same answer"))
            continue
        verdict = permission.judge(rule, one.context.source)
        if verdict.decision == "interrupt":
            interrupting.append(one)
            action: Action = "truncated" if standing.call_delivered else "interrupted"
            verdicts.append((one, action, verdict.detail))
        elif verdict.decision == "exhausted" and budget.on_exhausted(rule) == "block":
            verdicts.append((one, "blocked", verdict.detail))
            standing = standing.blocked(rule.name)
        elif verdict.decision == "remind" and rule.name in standing.noticed:
            verdicts.append((one, "suppressed", "already noticed in this answer"))
        else:
            action, _ = Noticed(one, block, verdict.decision, verdict.detail, 0.0).logged
            verdicts.append((one, action, verdict.detail))
            if verdict.decision == "remind":
                standing = standing.reminds(rule.name)
    if interrupting:
        rules = {one.match.rule.name for one in interrupting}
        standing = standing.interrupted(rules, truncated=standing.call_delivered)
    return verdicts, standing


def _distinct(violations: Sequence[BlockMatch]) -> list[BlockMatch]:
    """In the order in which the matches were complete; what several views of a call show is one match."""
    ordered = sorted(violations, key=lambda one: (one.view, one.match.end, one.match.start))
    views: dict[tuple[str, str], int] = {}
    return [
        one
        for one in ordered
        if views.setdefault((one.match.rule.name, one.text[one.match.start : one.match.end]), one.view)
        == one.view
    ]
