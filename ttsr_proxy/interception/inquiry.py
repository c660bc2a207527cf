"""What a judge is asked about one delivered response, and what its answers lead to. Free of I/O.

The response is with the client already: a yes never interrupts it. It leaves a reminder for the requests that
follow, in a record of its own, since the response's record is final. Whoever runs an inquiry asks for its
`outputs`, puts the questions of each to the judge, gives back the answers, and carries out `concluded`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from ttsr_proxy.interception.actions import Log, Save, UpdateLog
from ttsr_proxy.interception.attempt import Attempt, Noticed
from ttsr_proxy.interception.blocks import BlockMatch, WatchedBlock
from ttsr_proxy.interception.journal import Journal, log
from ttsr_proxy.interception.permission import Verdict
from ttsr_proxy.interception.reminders import Violation, reminder
from ttsr_proxy.interception.setup import Setup
from ttsr_proxy.interrupts.masking import mask
from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.judges.question import Question
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.sessions.echoes import judged_anchor
from ttsr_proxy.sessions.record import PendingReminder, ResponseRecord
from ttsr_proxy.toolcalls.prose import ProseEditReader, ProseFormat
from ttsr_proxy.toolcalls.reader import ToolCallReader
from ttsr_proxy.toolcalls.views import ViewDelta
from ttsr_proxy.triggers.ast import AstCheck, AstHit
from ttsr_proxy.triggers.match import Match, StreamContext
from ttsr_proxy.triggers.screening import Screening

JUDGED_AT: Final = 0.7
"""The probability from which on an answer counts as yes."""

OPEN_SECONDS: Final = 60.0
"""How long after a response its answers may come. Later ones are not waited for."""

RULE_TEXT: Final = 2_000
"""Characters of a rule's own text that the judge is told at most."""

_KINDS: Final = {"text": "text", "thinking": "thinking", "tool": "tool call"}


@dataclass(frozen=True, slots=True)
class Delivered:
    """A complete block that the client has, and the attempt that it came from."""

    block: WatchedBlock
    attempt: Attempt


@dataclass(frozen=True, slots=True)
class _Part:
    """One text of a block: its prose, or what a call would write to one place."""

    context: StreamContext
    text: str
    screening: Screening


@dataclass(slots=True)
class _Asked:
    """A rule's question, and the parts that it is about, with what its condition matched there."""

    rule: Rule
    places: dict[int, Match | None]


class Output:
    """One block, its parts, and the questions about it: all of them make one request."""

    def __init__(self, delivered: Delivered, parts: Sequence[_Part]) -> None:
        self.delivered = delivered
        self._parts = parts
        self._asked: list[_Asked] = []

    @property
    def ast_jobs(self) -> tuple[AstCheck, ...]:
        """What ast-grep has to look at before it is known which rules ask."""
        return tuple(part.screening.ast_check for part in self._parts if part.screening.ast_check is not None)

    def screen(self, results: Sequence[tuple[AstHit, ...] | None]) -> None:
        """Settle which rules ask. `results` answers `ast_jobs`, None for a job that was not done."""
        answers = iter(results)
        asked: dict[str, _Asked] = {}
        for number, part in enumerate(self._parts):
            hits = next(answers) if part.screening.ast_check is not None else ()
            for rule, match in part.screening.occasions(hits or ()):
                asked.setdefault(rule.name, _Asked(rule, {})).places[number] = match
        for one in asked.values():
            if len(one.places) > 1 and self._parts[0].context.source == "text":
                # A rule that sees the edits in prose is not asked about the prose around them.
                one.places.pop(0, None)
        self._asked = list(asked.values())

    @property
    def asked(self) -> tuple[tuple[Rule, int, Match | None], ...]:
        """For each question its rule, and the first part that it is about with what was matched there."""
        return tuple((one.rule, *next(iter(one.places.items()))) for one in self._asked)

    def part(self, number: int) -> tuple[StreamContext, str]:
        return self._parts[number].context, self._parts[number].text

    @property
    def questions(self) -> list[Question]:
        """The questions, in the order of `asked`."""
        shown = self._shown
        return [
            Question(
                instructions={
                    "question": one.rule.question,
                    "rule": one.rule.content[:RULE_TEXT],
                    **({} if set(one.places) == set(shown) else {"parts": [f"p{n}" for n in one.places]}),
                },
                if_true="The output shows that the answer to the question is yes.",
                if_false="The answer is no, or the output does not show it.",
            )
            for one in self._asked
        ]

    @property
    def state(self) -> JsonObject:
        """What the questions are about: those parts that a rule asks about, with secrets masked."""
        block = self.delivered.block
        tool = {"tool": block.start.tool} if block.start.tool else {}
        parts = [
            {
                "id": f"p{number}",
                **({"paths": list(part.context.paths)} if part.context.paths else {}),
                "text": mask(part.text),
            }
            for number, part in enumerate(self._parts)
            if number in self._shown
        ]
        return {"output": {"kind": _KINDS.get(block.kind, block.kind), **tool, "parts": parts}}

    @property
    def _shown(self) -> list[int]:
        return sorted({number for one in self._asked for number in one.places})


class Inquiry:
    """One response. `verdicts` says of each rule that is asked about what a yes may do."""

    def __init__(
        self,
        setup: Setup,
        journal: Journal,
        record: ResponseRecord,
        delivered: Sequence[Delivered],
        formats: frozenset[ProseFormat],
        verdicts: Mapping[str, Verdict],
        carried: Sequence[PendingReminder],
        until: float,
    ) -> None:
        self._setup = setup
        self._journal = journal
        self._record = record
        self._delivered = delivered
        self._formats = formats
        self._verdicts = verdicts
        self._carried = carried
        self.until = until
        """Seconds since the epoch; answers that come later are of no use."""
        self._pending: list[PendingReminder] = []
        self._logged: list[InterruptRecord] = []
        self._broken: set[str] = set()
        self._unanswered: set[str] = set()

    def outputs(self) -> list[Output]:
        """The outputs that may have to be asked about. Reads and searches text: not for an event loop."""
        judged = self._setup.judged.select(lambda rule: rule.name in self._verdicts)
        found = []
        for delivered in self._delivered:
            parts = [
                _Part(context, text, Screening(judged, text, context))
                for context, text in self._texts(delivered.block)
                if text.strip() and judged.admitting(context)
            ]
            if parts:
                found.append(Output(delivered, parts))
        return found

    def answered(
        self, output: Output, probabilities: Sequence[float | None], now: float
    ) -> list[Literal["broken", "kept", "unanswered"]]:
        """The judge's answers about an output, in the order of its questions; None for one not answered.

        What each means for its rule.
        """
        meant: list[Literal["broken", "kept", "unanswered"]] = []
        for (rule, number, match), probability in zip(output.asked, probabilities, strict=True):
            if probability is None:
                self._unanswered.add(rule.name)
                meant.append("unanswered")
            elif probability < JUDGED_AT:
                meant.append("kept")
            else:
                self._break(output, rule, number, match, probability, now)
                meant.append("broken")
        return meant

    def unanswered(self) -> None:
        """Answers that are still out will not come."""
        self._unanswered.update(self._verdicts)

    def concluded(self, now: float) -> list[Save | Log | UpdateLog]:
        """What follows from all answers: reminders that wait, log entries, what came of earlier reminders."""
        actions: list[Save | Log | UpdateLog] = []
        if self._pending:
            actions.append(Save(self._found(now)))
        actions += log(self._logged)
        actions += [UpdateLog(one.interrupt, self._outcome(one.rule)) for one in self._carried]
        return actions

    def _found(self, now: float) -> ResponseRecord:
        record, setup = self._record, self._setup
        return ResponseRecord(
            id=setup.new_id(),
            parent=record.id,
            tenant=record.tenant,
            project=record.project,
            conversation=record.conversation,
            created=now + setup.wall_offset,
            turn=record.turn,
            anchors=(judged_anchor(record.id),),
            pending=tuple(self._pending),
        )

    def _outcome(self, rule: str) -> dict[str, object]:
        if rule in self._broken:
            return {"outcome": "violated again"}
        if rule in self._unanswered:
            return {
                "outcome": "failed",
                "detail": "the judge did not say whether the next answer kept the rule",
            }
        return {"outcome": "clean"}

    def _break(
        self, output: Output, rule: Rule, number: int, match: Match | None, probability: float, now: float
    ) -> None:
        context, text = output.part(number)
        verdict = self._verdicts[rule.name]
        if verdict.decision == "remind" and rule.name in self._broken:
            verdict = Verdict("suppressed", "already noticed in this answer")
        self._broken.add(rule.name)
        match = match or Match(rule, "regex", "", 0, len(text))
        block, attempt = output.delivered.block, output.delivered.attempt
        found = BlockMatch(match, context, text, number, match.start, match.end)
        action, outcome = Noticed(found, block, verdict.decision, verdict.detail, now).logged
        reminds = verdict.decision == "remind"
        injected = self._reminder(rule, context, is_call=block.kind == "tool") if reminds else ""
        told = f"judged {probability:.2f}"
        entry = replace(
            self._journal.entry(
                found,
                block,
                attempt,
                now,
                action=action,
                outcome=outcome,
                detail=f"{told}; {verdict.detail}" if verdict.detail else told,
                injected=injected,
            ),
            trigger="judged",
            pattern=rule.question or "",
        )
        self._logged.append(entry)
        if reminds:
            self._pending.append(PendingReminder(rule.name, injected, entry.id))

    def _reminder(self, rule: Rule, context: StreamContext, *, is_call: bool) -> str:
        return reminder(
            Violation(
                rule=rule,
                rule_path=self._setup.rule_path(rule),
                fate="handed over" if is_call else "delivered",
                source=context.source,
                tool=context.tool,
                paths=context.paths,
                judged=True,
            )
        )

    def _texts(self, block: WatchedBlock) -> list[tuple[StreamContext, str]]:
        """The texts of a block with their contexts, as its matchers would see them."""
        families, root = self._setup.families, self._setup.requester.project_root
        if block.kind == "tool":
            call = ToolCallReader(
                block.start.tool or "", families, project_root=root, freeform=block.start.freeform
            )
            deltas = [*call.feed(block.text), *call.finish()]
            return _joined(deltas, [block.start.tool] * (1 + max((one.view for one in deltas), default=-1)))
        texts = [(StreamContext(block.source), block.text)]
        if block.kind == "text" and self._formats:
            edits = ProseEditReader(self._formats, families, project_root=root)
            deltas = [*edits.feed(block.text), *edits.finish()]
            views = 1 + max((one.view for one in deltas), default=-1)
            texts += _joined(deltas, [edits.tool(view) for view in range(views)])
        return texts


def _joined(deltas: Sequence[ViewDelta], tools: Sequence[str | None]) -> list[tuple[StreamContext, str]]:
    texts: dict[int, list[str]] = {}
    contexts: dict[int, StreamContext] = {}
    for delta in deltas:
        contexts[delta.view] = StreamContext("tool", tools[delta.view], delta.paths, delta.kind)
        texts.setdefault(delta.view, []).append(delta.text)
    return [(contexts[view], "".join(pieces)) for view, pieces in texts.items()]
