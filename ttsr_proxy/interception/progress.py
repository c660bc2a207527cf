"""How far one client request has come: what its response is made of, and the few facts of its course.

Every step of an exchange works on this one object. What a step does to the client or upstream it yields as
actions; what it learns it keeps here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from ttsr_proxy.interception.actions import Action, Ask, Save, Send, StartAttempt, UpdateLog
from ttsr_proxy.interception.attempt import Attempt
from ttsr_proxy.interception.blocks import WatchedBlock
from ttsr_proxy.interception.budgets import Budget
from ttsr_proxy.interception.client import ClientResponse
from ttsr_proxy.interception.draft import Draft
from ttsr_proxy.interception.findings import Findings
from ttsr_proxy.interception.inquiry import OPEN_SECONDS, Delivered, Inquiry
from ttsr_proxy.interception.journal import Journal
from ttsr_proxy.interception.moves import estimate_tokens, without_loose_thinking
from ttsr_proxy.interception.permission import Permission
from ttsr_proxy.interception.remembering import Remembering
from ttsr_proxy.interception.repeat import may_fire, responses_since, since_reminders
from ttsr_proxy.interception.setup import Setup
from ttsr_proxy.protocols.events import BlockDelta, BlockEnded, Other, ProtocolEvent
from ttsr_proxy.protocols.request import ApiRequest
from ttsr_proxy.sessions.record import Awaited, PendingReminder, ResponseRecord, ShadowBlock
from ttsr_proxy.sessions.shadow import previous_id, restore
from ttsr_proxy.toolcalls.prose import ProseFormat, formats_told

Ending: TypeAlias = Literal[
    "completed", "truncated", "blocked", "failed", "upstream_failed", "broken_off", "client_left"
]
"""How a response ended: `truncated` behind a call, `failed` in a retry, `broken_off` as upstream's did."""

MOST_AWAITED = 16
"""Responses of a conversation whose judgement may be out at the same time; older ones are given up."""


class Progress:
    """One response in the making. `attempt` is None while an upstream call has not been answered."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        protocol, request, recalled, left = setup.protocol, setup.request, setup.recalled, setup.left
        self.id = setup.id
        prompt = recalled.prompt or setup.prompt
        self.client = ClientResponse(protocol, request, self.id, prompt)
        observed = _why_observed(setup)
        reminds = observed is None and not setup.settings.observe
        judged, self._out_of_date = _judged(setup) if reminds else ((), ())
        pending = (*_pending(setup), *judged) if reminds else ()
        history = restore(request.items, recalled, protocol.item_of_block, protocol.keep_marks)
        self.draft = Draft(
            protocol,
            request,
            protocol.strip_marks(history),
            pending,
            without_thinking=recalled.without_thinking,
            previous=previous_id(request.previous, recalled),
            prompt=prompt,
            prompt_is_new=not recalled.prompt,
        )
        self.budget = Budget(
            setup.settings.budget,
            sum(record.interrupts for record in recalled.chain),
            left.per_rule if left else None,
            left.total if left else 0,
        )
        self.formats = edit_formats(setup.request)
        self.permission = Permission(
            setup.ruleset,
            setup.families,
            setup.settings,
            self.budget,
            since_reminders(recalled.present, [one.rule for one in pending]),
            observed,
            self.formats,
            "several choices are streamed at once" if request.choices > 1 and request.stream else None,
        )
        self.memory = Remembering(setup, self.client, self.draft, self.budget)
        self.journal = Journal(setup, self.id, self.memory.conversation, self.memory.turn)
        self.findings = Findings(setup, self.journal)
        self.attempt: Attempt | None = None
        self.attempts = 0
        self._answered: list[Attempt] = []
        """The attempts that upstream answered."""
        self.checking: list[tuple[WatchedBlock, int]] = []
        """The block and view of each ast-grep job whose answer is awaited. Nothing goes on meanwhile."""
        self.interrupted = False
        """An attempt was aborted for a broken rule or read rules, so that what follows is the proxy's own."""
        self.over = False
        self.ending: Ending | None = None
        self.last_sent = 0.0
        self.last_content = 0.0
        """When the client last got content; the first abort counts as content."""

    def current(self, attempt: Attempt | None) -> bool:
        """Whether this attempt is still the one that the response is made of."""
        return attempt is not None and attempt is self.attempt and not self.over

    def open(self, attempt: Attempt) -> None:
        """Upstream answers: what follows is this attempt's."""
        self.attempt = attempt
        self._answered.append(attempt)

    def passed_over(self) -> list[UpdateLog]:
        """A judge's reminders that came too late are not given: the model was reminded of it before."""
        changes = {
            "outcome": "undelivered",
            "detail": "the rule is off, or the model was reminded of it meanwhile",
        }
        return [UpdateLog(one.interrupt, changes) for one in self._out_of_date]

    def next_attempt(self, delay: float = 0.0) -> StartAttempt:
        """Ask upstream, again or for the first time, with the draft as it now stands."""
        self.attempt = None
        self.attempts += 1
        spent = estimate_tokens(sum(len(block.text) for block in self.client.given))
        return StartAttempt(self.draft.body(self.setup.raw, spent_tokens=spent), delay)

    def hold(self, attempt: Attempt, event: ProtocolEvent, block: WatchedBlock | None, now: float) -> None:
        """Put an event into the queue to the client."""
        if attempt.whole_body is not None:
            return
        if block is None and isinstance(event, BlockDelta | BlockEnded):
            # Upstream speaks of a block that it never opened: its own bytes, or nothing in a retry.
            if attempt.number > 1:
                return
            event = Other(event.raw)
        attempt.delivery.push(event, block, block.received if block is not None else 0, now)

    def release(self, now: float) -> Iterator[Action]:
        """Whatever of the queue may go to the client now."""
        if self.attempt is not None:
            yield from self.send(self.attempt.delivery.release(now), now)

    def send(self, data: bytes, now: float) -> Iterator[Action]:
        """Content for the client; what it exposes of a conversation with hidden parts is durable before."""
        if not data:
            return
        self.last_sent = self.last_content = now
        if not self.client.ended and self.memory.due():
            yield Save(
                self.memory.record(self.left_blocks(), (), now=now, final=False, aborted=self.interrupted)
            )
        yield Send(data)

    def save(self, blocks: Sequence[ShadowBlock], now: float) -> Iterator[Action]:
        """The final record of a response that is not whole, whose last attempt gave `blocks`."""
        record = self.memory.record(
            blocks, self.findings.reminders, now=now, final=True, aborted=self.interrupted
        )
        yield from self._remember(record, None, now)

    def save_whole(self, blocks: Sequence[ShadowBlock], finished: Attempt, now: float) -> Iterator[Action]:
        """As `save` for a whole response: one record for each choice, since the client goes on with one."""
        record = self.memory.record(
            blocks, (), now=now, final=True, aborted=False, upstream=finished.response_id
        )
        for choice in sorted(set(self.client.choices)) or [0]:
            of_choice = self.memory.of_choice(record, choice, self.findings.reminders_of(choice))
            yield from self._remember(of_choice, choice, now)

    def _remember(self, record: ResponseRecord, choice: int | None, now: float) -> Iterator[Action]:
        """Save the record, and have asked about what the client was given; `choice` None for all of it."""
        wall = now + self.setup.wall_offset
        awaiting = [one for one in self.setup.recalled.awaiting if one.until > wall]
        inquiry = self._inquiry(record, choice, wall + OPEN_SECONDS)
        if inquiry is not None:
            awaiting.append(Awaited(record.id, inquiry.until))
        yield Save(replace(record, awaiting=tuple(awaiting[-MOST_AWAITED:])))
        if inquiry is not None:
            yield Ask(inquiry)

    def _inquiry(self, record: ResponseRecord, choice: int | None, until: float) -> Inquiry | None:
        """The questions about this response, if a judge has any."""
        judged, draft = self.setup.judged, self.draft
        deferred = draft.deferred if draft.form == "reminded" and not choice else ()
        carried = [one for one in deferred if one.rule in judged.registered]
        verdicts = self.permission.asked_about(judged, [one.rule for one in carried])
        delivered = [
            Delivered(block, attempt)
            for attempt in self._answered
            for position, block in enumerate(attempt.order)
            if block.begun and position in attempt.values and choice in (None, block.start.choice)
        ]
        if not carried and not (verdicts and delivered):
            return None
        return Inquiry(self.setup, self.journal, record, delivered, self.formats, verdicts, carried, until)

    def left_blocks(self) -> list[ShadowBlock]:
        """What the current attempt has left with the client so far."""
        if self.attempt is None:
            return []
        return without_loose_thinking(self.attempt.delivered(self.setup.protocol, self.client, {}))

    def usage(self, attempt: Attempt | None, *, whole: bool = False) -> dict[str, int]:
        """What the client is told of tokens: the attempt's own figures and an estimate for what went before.

        `whole`: the attempt has no final figures, so all its output is estimated too.
        """
        own = {block.client_index for block in attempt.order} if attempt is not None and not whole else set()
        earlier = sum(len(block.text) for index, block in enumerate(self.client.given) if index not in own)
        started = attempt.usage if attempt is not None else None
        ending = attempt.ending.usage if attempt is not None and attempt.ending is not None else None
        return self.setup.protocol.usage_changes(started, ending, estimate_tokens(earlier))


def _judged(setup: Setup) -> tuple[tuple[PendingReminder, ...], tuple[PendingReminder, ...]]:
    """What a judge left for this request: the reminders that are given, and those that repeat another."""
    rules = {rule.name: rule for rule in setup.judged.rules if not rule.observe}
    given: dict[str, PendingReminder] = {}
    late = []
    for one in setup.recalled.judged:
        rule = rules.get(one.rule)
        since = responses_since(one.rule, setup.recalled.present)
        if rule is None or one.rule in given or not may_fire(rule, since, setup.settings):
            late.append(one)
        else:
            given[one.rule] = one
    return tuple(given.values()), tuple(late)


def _pending(setup: Setup) -> tuple[PendingReminder, ...]:
    """The reminders that wait for this request; none of a rule that has been only observed since."""
    waiting = setup.recalled.pending_from
    if waiting is None:
        return ()
    rules = (*setup.ruleset.rules, *setup.judged.rules)
    observed = {rule.name for rule in rules if rule.observe}
    return tuple(one for one in waiting.pending if one.rule not in observed)


def edit_formats(request: ApiRequest) -> frozenset[ProseFormat]:
    """How the model is told to write edits in prose: only agents that offer no tools tell it."""
    if request.tools:
        return frozenset()
    prompts = [item.text for item in request.items if item.role == "system" and item.kind == "text"]
    # For models without a system role, clients put their prompt into the first message.
    first = next((item.text for item in request.items if item.role == "user" and item.kind == "text"), "")
    return formats_told((request.system, *prompts, first))


def _why_observed(setup: Setup) -> str | None:
    return setup.requester.observed if setup.requester.observed is not None else setup.request.observed
