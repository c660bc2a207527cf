"""What a match may do: interrupt, remind, or only be seen. And so, which blocks have to be held at all."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ttsr_proxy.config import TtsrSettings
from ttsr_proxy.interception.blocks import Reach
from ttsr_proxy.interception.budgets import Budget
from ttsr_proxy.interception.repeat import may_fire
from ttsr_proxy.protocols.events import BlockStarted
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.toolcalls.families import FamilyTable
from ttsr_proxy.toolcalls.prose import ProseEditReader, ProseFormat
from ttsr_proxy.triggers.match import Source
from ttsr_proxy.triggers.ruleset import RuleSet

_NOWHERE = Reach(frozenset(), frozenset())


Decision: TypeAlias = Literal["interrupt", "remind", "suppressed", "exhausted", "observed"]


@dataclass(frozen=True, slots=True)
class Verdict:
    decision: Decision
    detail: str = ""


_WOULD_BE: dict[Decision, str] = {
    "interrupt": "interrupted",
    "remind": "reminded of",
    "suppressed": "suppressed",
    "exhausted": "beyond the budget",
}
"""What the log says of a match that is only observed."""

_INTERRUPT, _REMIND = Verdict("interrupt"), Verdict("remind")


class Permission:
    """Judged on the chain of this request alone, so that forks and sub-agents keep their own counts.

    `since` says how many responses ago the model was reminded of a rule (see `repeat.since_reminders`);
    `formats` are the notations for edits that the request tells the model to use in prose. `observed` says
    why matches are only logged, `uninterrupted` why they lead to reminders alone.
    """

    def __init__(
        self,
        ruleset: RuleSet,
        families: FamilyTable,
        settings: TtsrSettings,
        budget: Budget,
        since: Mapping[str, int],
        observed: str | None,
        formats: frozenset[ProseFormat] = frozenset(),
        uninterrupted: str | None = None,
    ) -> None:
        self._ruleset = ruleset
        self._families = families
        self._settings = settings
        self._budget = budget
        self._since = since
        self._observed = observed
        self._formats = formats
        self._uninterrupted = uninterrupted
        self.barred = ""
        """Why no rule may interrupt this response any more, if that is so."""

    def asked_about(self, judged: RuleSet, carried: Collection[str]) -> dict[str, Verdict]:
        """What a judge's yes may do, for each rule that is worth a question.

        `carried` names the rules whose reminder this request gives: whether it helped is to be known. A rule
        that the model was reminded of before, and that does not repeat, could change nothing.
        """
        if self._observed is not None:
            return {}
        # A judge's yes does the same in every source.
        verdicts = {rule.name: self.judge(rule, "text") for rule in judged.rules}
        return {
            name: verdict
            for name, verdict in verdicts.items()
            if verdict.decision != "suppressed" or name in carried
        }

    def reach(self, event: BlockStarted) -> Reach:
        """The rules that a block is watched for."""
        if event.kind == "opaque":
            return _NOWHERE
        if event.kind == "tool":
            contexts = ((event.tool, kind) for kind in self._families.family_of(event.tool or "").kinds)
            return Reach(*self._watching("tool", contexts))
        edits: tuple[frozenset[str], frozenset[str]] = frozenset(), frozenset()
        if event.kind == "text" and self._formats:
            edits = self._watching("tool", ProseEditReader(self._formats, self._families).contexts)
        return Reach(*self._watching(event.kind, [(None, None)]), *edits, self._formats)

    def _watching(
        self, source: Source, contexts: Iterable[tuple[str | None, str | None]]
    ) -> tuple[frozenset[str], frozenset[str]]:
        """The rules that can reach these tools and kinds, and those of them that withhold."""
        reached = self._ruleset.reached(source, contexts)
        if self._restricted:
            judged = reached.names
        else:
            # A rule of which nothing is known does what its mode says: none needs to be asked one by one.
            judged = reached.names & (reached.peculiar | self._since.keys())
        holding = {name for name in judged if self._withholds(reached.rules[name], source)}
        return reached.names, (reached.interrupting - judged) | holding

    @property
    def _restricted(self) -> bool:
        """Something keeps rules from interrupting that would otherwise."""
        return (
            self._observed is not None
            or self._settings.observe
            or self._uninterrupted is not None
            or bool(self.barred)
            or not self._budget.untouched
        )

    def _withholds(self, rule: Rule, source: Source) -> bool:
        """Whether a match of the rule must not reach the client: it would interrupt, or end the response."""
        decision = self.judge(rule, source).decision
        return decision == "interrupt" or (
            decision == "exhausted" and self._budget.on_exhausted(rule) == "block"
        )

    def judge(self, rule: Rule, source: Source) -> Verdict:
        """What a match of this rule may do now."""
        if self._observed is not None:
            return Verdict("observed", self._observed)
        verdict = self._judge(rule, source)
        if self._settings.observe or rule.observe:
            detail = f": {verdict.detail}" if verdict.detail else ""
            return Verdict("observed", f"would have been {_WOULD_BE[verdict.decision]}{detail}")
        return verdict

    def _judge(self, rule: Rule, source: Source) -> Verdict:
        since = self._since.get(rule.name)
        if (
            since is not None
            and not self._budget.times(rule.name)
            and not may_fire(rule, since, self._settings)
        ):
            when = "with this request" if since == 0 else f"{since} responses ago"
            return Verdict("suppressed", f"the model was reminded {when}")
        if rule.question is not None or not self._ruleset.interrupts(rule, source):
            return _REMIND
        if self._uninterrupted is not None:
            return Verdict("remind", self._uninterrupted)
        if self.barred:
            return Verdict("exhausted", self.barred)
        if not self._budget.allows(rule):
            return Verdict("exhausted", "the budget of interrupts is spent")
        return _INTERRUPT
