"""One client request and its upstream attempts, as a state machine: events in, actions out.

The driver feeds what upstream and the client do and carries out the actions in order. `now` is a monotonic
time in seconds. After any call, `deadline` tells when `tick` is due.

An attempt's events go through the matchers and the delivery queue. A match that may interrupt aborts the
attempt, and by what the client already has one of three moves follows:

- *restart*: no text and no call was delivered; the request goes out again with a reminder;
- *continue*: text was delivered; the retry carries it, the reminder follows, and its blocks continue the
  same response;
- *truncate*: a tool call was delivered; the response ends there and the reminder travels with the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ttsr_proxy.interception.actions import (
    AbortAttempt,
    Action,
    CheckAst,
    Finish,
    LeaveUnfinished,
    Note,
    Relay,
    Reply,
    Save,
    Send,
    StartAttempt,
    UpdateLog,
)
from ttsr_proxy.interception.attempt import Attempt, Noticed
from ttsr_proxy.interception.blocks import BlockMatch, WatchedBlock
from ttsr_proxy.interception.budgets import Budget
from ttsr_proxy.interception.client import ClientResponse
from ttsr_proxy.interception.draft import Draft
from ttsr_proxy.interception.echo import Exemptions
from ttsr_proxy.interception.journal import Journal, log
from ttsr_proxy.interception.moves import (
    Move,
    estimate_tokens,
    fate,
    keeps,
    next_move,
    open_place,
    split_attempt,
    without_loose_thinking,
)
from ttsr_proxy.interception.permission import Permission
from ttsr_proxy.interception.remembering import Remembering
from ttsr_proxy.interception.reminders import Violation, interrupt, reminder
from ttsr_proxy.interception.setup import Setup
from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.protocols.events import (
    BlockDelta,
    BlockEnded,
    BlockStarted,
    Other,
    ProtocolEvent,
    ResponseEnded,
    ResponseEnding,
    ResponseStarted,
    StreamFailed,
)
from ttsr_proxy.sessions.record import PendingReminder, ShadowBlock
from ttsr_proxy.sessions.shadow import restore
from ttsr_proxy.sessions.store import Unfinished
from ttsr_proxy.triggers.ast import AstHit

KEEPALIVE_SECONDS = 10.0
"""How often a client is told that a silent response is alive. Clients give up after 300 s or more."""

RETRY_BOUND_SECONDS = 240.0
"""How long a response may go without real content once an attempt was aborted."""

_OVERLOADED = frozenset((429, 503, 529))


class Exchange:
    """Feed it; do what it says. It is over when it said `Finish` or `Relay`."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        protocol, request, recalled = setup.protocol, setup.request, setup.recalled
        self.id = setup.new_id()
        self._client = ClientResponse(protocol, self.id)
        history = restore(request.items, recalled, protocol.item_of_block, protocol.keep_marks)
        observed = setup.requester.observed
        if observed is None and request.choices > 1 and request.stream:
            observed = "several choices are streamed at once"
        pending = recalled.pending_from.pending if recalled.pending_from and observed is None else ()
        self._draft = Draft(
            protocol,
            request,
            protocol.strip_marks(history),
            pending,
            without_thinking=recalled.without_thinking,
        )
        left = setup.left
        self._budget = Budget(
            setup.settings.budget,
            sum(record.interrupts for record in recalled.chain),
            left.per_rule if left else None,
            left.total if left else 0,
        )
        self._permission = Permission(
            setup.ruleset,
            setup.families,
            setup.settings,
            self._budget,
            recalled.chain,
            [one.rule for one in pending],
            observed,
        )
        self._memory = Remembering(setup, self._client, self._draft, self._budget)
        self._journal = Journal(setup, self.id, self._memory.conversation, self._memory.turn)
        self._exempt = Exemptions((*self._memory.reminders_before, *self._draft.reminders))
        self._attempt: Attempt | None = None
        self._attempts = 0
        self._broken: dict[str, Violation] = {}
        """The rules that the reminder at the open place names."""
        self._charged: frozenset[str] = frozenset()
        self._noticed: list[tuple[Noticed, Attempt]] = []
        """Matches of given-up attempts that are still to be logged."""
        self._claimed: set[str] = set()
        """Rules that already have a reminder waiting for the next request."""
        self._reminders: list[PendingReminder] = []
        self._matched: set[str] = set()
        self._jobs: list[tuple[WatchedBlock, int]] = []
        self._interrupted = False
        self._over = False
        self._last_sent = 0.0
        self._last_content = 0.0

    # What the driver feeds.

    def start(self, now: float) -> list[Action]:
        """Begin: the first upstream call, or a refusal for the retry of a response that was blocked."""
        self._last_sent = self._last_content = now
        left = self._setup.left
        if left is not None and left.blocked_by is not None:
            return [self._refusal(left.blocked_by), Finish()]
        return [self._start_attempt()]

    def attempt_answered(self, request_id: str, now: float) -> list[Action]:
        """Upstream accepted the request and answers with something that can be inspected."""
        attempt = Attempt(self._setup.protocol, self._client, self._setup.settings.hold, self._attempts)
        attempt.request_id = request_id
        if request_id:
            self._journal.upstream_requests.append(request_id)
        self._attempt = attempt
        return []

    def attempt_refused(
        self, status: int, body: bytes, retry_after: float | None, now: float
    ) -> list[Action]:
        """Upstream answered with an error. `retry_after` in seconds, if it gave one."""
        if status == 400 and self._client.stage != "content":
            fallback = self._fall_back(body)
            if fallback:
                return fallback
        if not self._interrupted:
            return [Reply(status, body), *self._give_up(now)]
        until_bound = self._last_content + RETRY_BOUND_SECONDS - now
        if status in _OVERLOADED and retry_after is not None and retry_after < until_bound:
            return [self._start_attempt(retry_after)]
        error = self._setup.protocol.read_error(body) or self._setup.protocol.error_object(
            status, f"upstream answered {status}"
        )
        return self._retry_failed(error, now, Reply(status, body), f"upstream answered {status}")

    def attempt_uninspectable(self, reason: str, now: float) -> list[Action]:
        """Upstream's answer is nothing that can be read: it passes as it came, and the log says so."""
        note = Note("not_inspected", {"reason": reason})
        if not self._interrupted:
            self._over = True
            return [note, Relay()]
        error = self._setup.protocol.error_object(502, f"the retry's answer cannot be read: {reason}")
        return [note, AbortAttempt(), *self._retry_failed(error, now, None, reason)]

    def data(self, data: bytes, now: float) -> list[Action]:
        """A piece of the streamed answer."""
        if self._attempt is None:
            return []
        self._attempt.inbox.extend(self._attempt.reader.feed(data))
        return self._run(now)

    def body(self, status: int, body: bytes, now: float) -> list[Action]:
        """A complete answer that was not streamed."""
        attempt = self._attempt
        events = self._setup.protocol.read_message(body)
        if events is None or attempt is None:
            if self._interrupted:
                error = self._setup.protocol.error_object(502, "the retry's answer cannot be read")
                return self._retry_failed(error, now, Reply(status, body), "the answer is no message")
            return [
                Note("not_inspected", {"reason": "the answer is no message"}),
                Reply(status, body),
                Finish(),
            ]
        attempt.whole_body = (status, body)
        attempt.inbox.extend(events)
        return self._run(now)

    def attempt_ended(self, now: float) -> list[Action]:
        """Upstream closed its answer in order."""
        attempt = self._attempt
        if attempt is None:
            return []
        attempt.inbox.extend(attempt.reader.finish())
        attempt.closed = "end"
        return self._run(now)

    def attempt_lost(self, reason: str, now: float) -> list[Action]:
        """The connection to upstream failed, before or within its answer."""
        attempt = self._attempt
        if attempt is None:
            error = self._setup.protocol.error_object(502, reason)
            reply = Reply(502, self._setup.protocol.error_body(error), _JSON)
            if self._interrupted:
                return self._retry_failed(error, now, reply, reason)
            return [reply, *self._give_up(now)]
        attempt.closed = reason
        return self._run(now)

    def ast_checked(self, results: Sequence[tuple[AstHit, ...] | None], now: float) -> list[Action]:
        """The answers to `CheckAst`, in its order; None where a job was not done."""
        jobs, self._jobs = self._jobs, []
        actions: list[Action] = []
        found: list[BlockMatch] = []
        for (block, view), hits in zip(jobs, results, strict=True):
            if hits is None:
                actions.append(
                    Note("not_inspected", {"reason": "ast-grep did not answer", "tool": block.start.tool})
                )
            else:
                found.extend(block.apply_ast(view, hits))
        if jobs:
            block = jobs[0][0]
            actions += self._judge(found, block, now, complete=True)
            if self._attempt is not None and not self._attempt.over:
                block.cleared = True
        return actions + self._run(now)

    def tick(self, now: float) -> list[Action]:
        """The time of `deadline` has come."""
        if self._over:
            return []
        if self._interrupted and now >= self._last_content + RETRY_BOUND_SECONDS:
            reason = "no retry succeeded in time"
            error = self._setup.protocol.error_object(504, reason)
            return [AbortAttempt(), *self._retry_failed(error, now, None, reason)]
        actions = self._release(now)
        if self._silent and now >= self._last_sent + KEEPALIVE_SECONDS:
            self._last_sent = now
            actions.append(Send(self._client.keepalive(self._setup.requester.keepalive_active)))
        return actions

    def client_gone(self, now: float) -> list[Action]:
        """The client closed its connection. Not an abort if it already has the terminal event."""
        if self._over:
            return []
        self._over = True
        if self._client.ended:
            return [AbortAttempt()]
        actions: list[Action] = [AbortAttempt()]
        if self._client.given:
            actions.append(
                Save(self._memory.record(self._left_blocks(), self._pending(), now=now, final=True))
            )
        return [*actions, self._unfinished(now)]

    @property
    def deadline(self) -> float | None:
        """When `tick` has to be called, if ever."""
        if self._over:
            return None
        times = []
        if self._attempt is not None and (release := self._attempt.delivery.deadline()) is not None:
            times.append(release)
        if self._silent:
            times.append(self._last_sent + KEEPALIVE_SECONDS)
        if self._interrupted and not self._client.ended:
            times.append(self._last_content + RETRY_BOUND_SECONDS)
        return min(times, default=None)

    @property
    def _silent(self) -> bool:
        """The client waits for something that is held or asked for again, and keep-alives are possible."""
        if self._client.stage == "unsent" or self._client.ended:
            return False
        attempt = self._attempt
        return attempt is None or attempt.delivery.holding or (self._interrupted and not attempt.heard)

    # One event of an attempt after the other.

    def _run(self, now: float) -> list[Action]:
        actions: list[Action] = []
        attempt = self._attempt
        while self._current(attempt) and attempt is not None and attempt.inbox and not self._jobs:
            actions += self._handle(attempt, attempt.inbox.popleft(), now)
        if attempt is None or not self._current(attempt) or self._jobs:
            return actions
        actions += self._release(now)
        if attempt.closed is not None:
            actions += self._closed(attempt, now)
        return actions

    def _current(self, attempt: Attempt | None) -> bool:
        return attempt is not None and attempt is self._attempt and not self._over

    def _handle(self, attempt: Attempt, event: ProtocolEvent, now: float) -> list[Action]:
        if attempt.over:
            return self._send(event.raw, now)
        match event:
            case ResponseStarted():
                attempt.usage, attempt.model = event.usage, event.model
                if attempt.number == 1 or self._client.stage == "unsent":
                    self._push(attempt, event, None, now)
            case BlockStarted():
                return self._begin(attempt, event, now)
            case BlockDelta():
                block = attempt.blocks.get(event.index)
                found = block.feed(event.text) if block is not None else []
                self._push(attempt, event, block, now)
                if block is not None and (found or block.waiting):
                    return self._judge(found, block, now)
            case BlockEnded():
                return self._end_block(attempt, event, now)
            case ResponseEnding():
                return self._ending(attempt, event, now)
            case ResponseEnded():
                return self._ended(attempt, event, now)
            case StreamFailed():
                return self._failed(attempt, event, now)
            case Other():
                self._push(attempt, event, None, now)
        return []

    def _begin(self, attempt: Attempt, event: BlockStarted, now: float) -> list[Action]:
        setup = self._setup
        reach = self._permission.reach(event)
        block = WatchedBlock(
            event,
            reach,
            setup.ruleset,
            setup.families,
            setup.requester.project_root,
            whole=setup.request.structured_output and event.kind == "text",
        )
        attempt.add(block)
        actions: list[Action] = []
        if self._interrupted and not attempt.heard:
            actions += self._journal.retried(now)
        attempt.heard = True
        found = block.feed(setup.protocol.initial_text(event))
        self._push(attempt, event, block, now)
        return actions + (self._judge(found, block, now) if found else [])

    def _end_block(self, attempt: Attempt, event: BlockEnded, now: float) -> list[Action]:
        block = attempt.blocks.get(event.index)
        if block is not None:
            attempt.complete(block, event.value)
        self._push(attempt, event, block, now)
        return self._check_whole(attempt, block, now) if block is not None else []

    def _check_whole(self, attempt: Attempt, block: WatchedBlock, now: float) -> list[Action]:
        """The block has no further text: what its whole says."""
        if not block.watched:
            block.cleared = True
            return []
        actions = self._judge(block.close(), block, now, complete=True)
        if not self._current(attempt):
            return actions
        actions += [
            Note("condition_muted", {"rule": rule, "pattern": pattern}) for rule, pattern in block.muted()
        ]
        actions += [Note("not_inspected", {"reason": reason}) for reason in block.not_inspected()]
        jobs = block.ast_jobs()
        if not jobs:
            block.cleared = True
            return actions
        self._jobs = [(block, view) for view, _ in jobs]
        return [*actions, CheckAst(tuple(job for _, job in jobs))]

    def _ending(self, attempt: Attempt, event: ResponseEnding, now: float) -> list[Action]:
        attempt.ending = event
        if attempt.whole_body is not None:
            return []
        changes = None
        if attempt.number > 1:
            changes = self._usage(attempt)
        return self._send(attempt.delivery.release(now) + self._client.ending(event, changes), now)

    def _ended(self, attempt: Attempt, event: ResponseEnded, now: float) -> list[Action]:
        attempt.over = True
        if attempt.whole_body is not None:
            for position, block in enumerate(attempt.order):
                if (value := attempt.values.get(position)) is not None:
                    block.begun, block.client_index = True, self._client.take(value)
        blocks = attempt.finished(self._setup.protocol)
        actions = self._log_noticed()
        actions += self._journal.settled("clean", correction=_plain(attempt))
        actions += self._deferred_outcomes()
        actions.append(Save(self._memory.record(blocks, self._pending(), now=now, final=True)))
        if attempt.whole_body is not None:
            self._over = True
            self._client.ended = True
            status, body = attempt.whole_body
            return [*actions, Reply(status, body), Finish()]
        return [*actions, *self._send(self._client.end(event), now)]

    def _failed(self, attempt: Attempt, event: StreamFailed, now: float) -> list[Action]:
        """Upstream reported an error inside its stream."""
        actions = self._check_open(attempt, now)
        if not self._current(attempt) or self._jobs:
            attempt.inbox.appendleft(event)
            return actions
        actions += self._release(now)
        if self._interrupted:
            return [
                *actions,
                AbortAttempt(),
                *self._retry_failed(event.error, now, None, "upstream reported an error"),
            ]
        return [*actions, *self._send(event.raw, now)]

    def _closed(self, attempt: Attempt, now: float) -> list[Action]:
        """Upstream's answer is over, whether in order or not: what is still held is judged as it is."""
        reason = attempt.closed or ""
        if attempt.over:
            self._over = True
            return [Finish()]
        actions = self._check_open(attempt, now)
        if not self._current(attempt) or self._jobs:
            return actions
        actions += self._release(now)
        if self._interrupted:
            reason = "upstream's answer ended early" if reason == "end" else reason
            error = self._setup.protocol.error_object(502, reason)
            return [*actions, *self._retry_failed(error, now, None, reason)]
        actions += self._log_noticed()
        if self._client.given:
            actions.append(
                Save(self._memory.record(self._left_blocks(), self._pending(), now=now, final=True))
            )
        self._over = True
        return [*actions, self._unfinished(now), Finish(broken=reason != "end")]

    def _check_open(self, attempt: Attempt, now: float) -> list[Action]:
        actions: list[Action] = []
        for block in list(attempt.blocks.values()):
            attempt.blocks.pop(block.index, None)
            actions += self._check_whole(attempt, block, now)
            if not self._current(attempt) or self._jobs:
                break
        return actions

    # Matches and what they lead to.

    def _judge(
        self, found: Sequence[BlockMatch], block: WatchedBlock, now: float, *, complete: bool = False
    ) -> list[Action]:
        attempt = self._attempt
        if attempt is None:
            return []
        violations = self._not_repeating(found, block, complete=complete)
        self._matched.update(one.match.rule.name for one in violations)
        actions: list[Action] = []
        interrupting: list[BlockMatch] = []
        for one in violations:
            if interrupting and not _together(one, interrupting[0]):
                break
            rule = one.match.rule
            verdict = self._permission.judge(rule, block.source)
            if verdict.decision == "interrupt":
                interrupting.append(one)
            elif verdict.decision == "exhausted" and self._budget.on_exhausted(rule) == "block":
                return self._block(one, block, attempt, now)
            else:
                actions += self._journal.violated_again((rule.name,))
                self._notice(Noticed(one, block, verdict.decision, verdict.detail, now), attempt)
        return actions + (self._interrupt(interrupting, block, attempt, now) if interrupting else [])

    def _not_repeating(
        self, found: Sequence[BlockMatch], block: WatchedBlock, *, complete: bool
    ) -> list[BlockMatch]:
        """The matches that do not only repeat a reminder, in the order of their ends."""
        violations: list[BlockMatch] = []
        work = [*block.waiting, *found]
        block.waiting = []
        while work:
            one = work.pop(0)
            if block.source == "tool":
                violations.append(one)
                continue
            answer, line_end = self._exempt.judge(one.match, block.view_text(one.view), complete=complete)
            if answer == "wait":
                block.waiting.append(one)
            elif answer == "yes":
                work.extend(block.exempt(one, line_end))
            else:
                violations.append(one)
        return sorted(violations, key=lambda one: (one.view, one.match.end, one.match.start))

    def _notice(self, noticed: Noticed, attempt: Attempt) -> None:
        """A match that interrupts nothing. The first of a rule in an answer claims the reminder."""
        rule = noticed.found.match.rule.name
        claims = {one.found.match.rule.name for one in attempt.noticed if one.decision == "remind"}
        if noticed.decision == "remind" and rule in self._claimed | claims:
            noticed = replace(noticed, decision="suppressed", detail="already noticed in this answer")
        attempt.noticed.append(noticed)

    def _interrupt(
        self, found: Sequence[BlockMatch], block: WatchedBlock, attempt: Attempt, now: float
    ) -> list[Action]:
        setup, client = self._setup, self._client
        rules = frozenset(one.match.rule.name for one in found)
        at = min(one.match.start for one in found)
        shown = len(client.given_text(block.client_index)) if block.begun and block.kind != "tool" else 0
        actions: list[Action] = [AbortAttempt()]
        attempt.over = True
        if attempt.whole_body is None:
            actions += self._send(self._cut(attempt, block, at, now), now)
        if not self._interrupted:
            self._interrupted, self._last_content = True, now
        self._budget.charge(rules)
        self._charged = rules
        move: Move = "restart" if attempt.whole_body is not None else next_move(client)
        violations = [self._violation(one, block, move, late=shown > one.match.start) for one in found]
        actions += self._journal.violated_again(tuple(rules))
        self._sort_out(attempt, block, at)
        actions += self._log_noticed()
        if move == "truncate":
            reminder_text = interrupt(violations)
            pending = self._log_interrupt(
                found, violations, block, attempt, "truncated", reminder_text, shown, now
            )
            return [*actions, *pending, *self._truncate(attempt, now)]
        delivered, kept = split_attempt(
            setup.protocol,
            client,
            attempt,
            block,
            keep=keeps(found, setup.settings),
            replaces=self._draft.place is not None,
        )
        if delivered:
            self._broken = {}
        self._broken.update({one.rule.name: one for one in violations})
        place = open_place(setup.protocol, attempt, block, tuple(self._broken.values()), kept)
        if delivered:
            self._draft.advance(delivered, place)
        else:
            self._draft.replace_place(place)
        self._exempt.add(place.reminder)
        actions += self._log_interrupt(
            found, violations, block, attempt, "interrupted", place.reminder, shown, now
        )
        return [*actions, self._start_attempt()]

    def _cut(self, attempt: Attempt, block: WatchedBlock, at: int, now: float) -> bytes:
        if block.kind != "tool":
            return attempt.delivery.cut(block, at, now)
        data = attempt.delivery.release(now)
        attempt.delivery.drop()
        return data

    def _truncate(self, attempt: Attempt, now: float) -> list[Action]:
        """A call was delivered: end here, legally; the reminder travels with its result."""
        self._over = True
        setup = self._setup
        blocks = without_loose_thinking(attempt.delivered(setup.protocol, self._client, {}))
        usage = self._usage(attempt, whole=True)
        return [
            Save(self._memory.record(blocks, self._pending(), now=now, final=True)),
            Send(self._client.finish(setup.protocol.stops.tool, usage)),
            Finish(),
        ]

    def _block(self, one: BlockMatch, block: WatchedBlock, attempt: Attempt, now: float) -> list[Action]:
        """The budget is spent and the rule says: better no answer than this one."""
        rule = one.match.rule.name
        attempt.over = True
        attempt.delivery.drop()
        entry = self._journal.entry(one, block, attempt, now, action="blocked", outcome="undelivered")
        actions: list[Action] = [AbortAttempt(), *log([entry]), *self._journal.settled("violated again")]
        self._attempt, self._over = None, True
        if self._client.stage == "content":
            return [*actions, *self._short_end(now), Finish()]
        left = self._unfinished(now, blocked_by=rule)
        if self._client.stage == "unsent":
            return [*actions, self._refusal(rule), left, Finish()]
        return [*actions, Send(self._client.error(self._refusal_error(rule))), left, Finish()]

    def _violation(self, one: BlockMatch, block: WatchedBlock, move: Move, *, late: bool) -> Violation:
        rule, context = one.match.rule, one.context
        return Violation(
            rule=rule,
            rule_path=self._setup.rule_path(rule),
            fate=fate(block, move),
            source=context.source,
            tool=context.tool,
            paths=context.paths,
            late=late,
            times=self._budget.times(rule.name),
        )

    def _log_interrupt(
        self,
        found: Sequence[BlockMatch],
        violations: Sequence[Violation],
        block: WatchedBlock,
        attempt: Attempt,
        action: str,
        injected: str,
        shown: int,
        now: float,
    ) -> list[Action]:
        wasted = (attempt.usage.input_tokens or 0 if attempt.usage else 0) + estimate_tokens(
            attempt.received_chars
        )
        records: list[InterruptRecord] = []
        for one, violation in zip(found, violations, strict=True):
            record = self._journal.entry(
                one,
                block,
                attempt,
                now,
                action="truncated" if action == "truncated" else "interrupted",
                outcome="pending",
                late=violation.late,
                injected=injected,
                held_chars=max(attempt.delivery.held_most, block.received - shown),
                tokens_wasted=0 if records else wasted,
            )
            records.append(record)
            if action == "truncated":
                self._reminders.append(PendingReminder(record.rule, interrupt([violation]), record.id))
            else:
                self._journal.opened(record, now)
        return list(log(records))

    # Matches that interrupt nothing.

    def _sort_out(self, attempt: Attempt, block: WatchedBlock, at: int) -> None:
        """The attempt is given up: matches in delivered output keep their action, the rest was only seen."""
        noticed, attempt.noticed = attempt.noticed, []
        for one in noticed:
            kept = one.block.begun and (one.block is not block or one.found.match.end <= at)
            if kept and self._client.text_delivered and attempt.whole_body is None:
                self._noticed.append((one, attempt))
            else:
                gone = replace(one, decision="observed", detail="discarded by another rule's interrupt")
                self._noticed.append((gone, attempt))

    def _log_noticed(self) -> list[Action]:
        attempt = self._attempt
        if attempt is not None:
            self._noticed.extend((one, attempt) for one in attempt.noticed)
            attempt.noticed = []
        records = []
        for one, where in self._noticed:
            action, outcome = one.logged
            injected = ""
            if one.decision == "remind":
                rule = one.found.match.rule
                self._claimed.add(rule.name)
                context = one.found.context
                injected = reminder(
                    Violation(
                        rule=rule,
                        rule_path=self._setup.rule_path(rule),
                        fate="handed over" if one.block.kind == "tool" else "delivered",
                        source=context.source,
                        tool=context.tool,
                        paths=context.paths,
                    )
                )
            record = self._journal.entry(
                one.found,
                one.block,
                where,
                one.at,
                action=action,
                outcome=outcome,
                detail=one.detail,
                injected=injected,
            )
            records.append(record)
            if one.decision == "remind":
                self._reminders.append(PendingReminder(record.rule, injected, record.id))
        self._noticed.clear()
        return list(log(records))

    def _deferred_outcomes(self) -> list[Action]:
        """What came of the reminders that this request carried for earlier responses."""
        if self._draft.form != "reminded":
            return []
        return [
            UpdateLog(one.interrupt, {"outcome": "violated again" if one.rule in self._matched else "clean"})
            for one in self._draft.deferred
        ]

    # Upstream calls and how they fail.

    def _start_attempt(self, delay: float = 0.0) -> StartAttempt:
        self._attempt = None
        self._attempts += 1
        spent = estimate_tokens(sum(len(block.text) for block in self._client.given))
        return StartAttempt(self._draft.body(self._setup.raw, spent_tokens=spent), delay)

    def _fall_back(self, body: bytes) -> list[Action]:
        """Upstream refused the request as such: the next form of it, or nothing if there is none."""
        draft, protocol = self._draft, self._setup.protocol
        if draft.continues:
            return []
        error = protocol.read_error(body)
        if draft.form == "reminded" and draft.has_news:
            draft.form = "translated"
            self._permission.barred = "upstream refused the reminder"
            if self._interrupted:
                self._budget.refund(self._charged)
            updates = self._journal.settled("failed", detail=self._permission.barred)
            return [Note("request_refused", {"form": "reminded"}), *updates, self._start_attempt()]
        bound = any(item.kind == "thinking" for item in draft.items())
        if bound and error is not None and protocol.is_binding_error(error):
            draft.without_thinking = True
            return [
                Note("request_refused", {"form": draft.form, "next": "without thinking"}),
                self._start_attempt(),
            ]
        if draft.form != "client" and draft.translated and not bound:
            draft.form = "client"
            return [Note("request_refused", {"form": "translated", "next": "client"}), self._start_attempt()]
        return []

    def _retry_failed(self, error: JsonObject, now: float, reply: Reply | None, reason: str) -> list[Action]:
        """A retry failed for good: end by stage. It does not count against the rules."""
        self._attempt, self._over = None, True
        self._budget.refund(self._charged)
        actions: list[Action] = [*self._log_noticed(), *self._journal.settled("failed", detail=reason)]
        match self._client.stage:
            case "unsent":
                protocol = self._setup.protocol
                reply = reply or Reply(protocol.error_status(error), protocol.error_body(error), _JSON)
                return [*actions, reply, self._unfinished(now), Finish()]
            case "opened":
                return [*actions, Send(self._client.error(error)), self._unfinished(now), Finish()]
            case "content":
                return [*actions, *self._short_end(now), Finish()]

    def _short_end(self, now: float) -> list[Action]:
        """A clean end of what was delivered: clients take that better than any error."""
        usage = self._usage(None, whole=True)
        record = self._memory.record((), self._pending(), now=now, final=True)
        return [Save(record), Send(self._client.finish(self._setup.protocol.stops.done, usage))]

    def _give_up(self, now: float) -> list[Action]:
        self._over = True
        return [self._unfinished(now), Finish()]

    def _unfinished(self, now: float, *, blocked_by: str | None = None) -> LeaveUnfinished:
        ended = now + self._setup.wall_offset
        return LeaveUnfinished(Unfinished(ended, self._budget.per_rule, self._budget.total, blocked_by))

    def _refusal(self, rule: str) -> Reply:
        return Reply(400, self._setup.protocol.error_body(self._refusal_error(rule)), _JSON)

    def _refusal_error(self, rule: str) -> JsonObject:
        return self._setup.protocol.error_object(
            400,
            f"ttsr-proxy stopped this answer: it kept breaking the rule {rule!r}, whose budget is spent",
        )

    # Bytes for the client, and what has to be remembered of them.

    def _push(self, attempt: Attempt, event: ProtocolEvent, block: WatchedBlock | None, now: float) -> None:
        if attempt.whole_body is not None:
            return
        if block is None and isinstance(event, BlockDelta | BlockEnded):
            # Upstream speaks of a block that it never opened: its own bytes, or nothing in a retry.
            if attempt.number > 1:
                return
            event = Other(event.raw)
        attempt.delivery.push(event, block, now)

    def _release(self, now: float) -> list[Action]:
        return self._send(self._attempt.delivery.release(now), now) if self._attempt is not None else []

    def _send(self, data: bytes, now: float) -> list[Action]:
        if not data:
            return []
        self._last_sent = self._last_content = now
        save: list[Action] = []
        if not self._client.ended and self._memory.due():
            save = [Save(self._memory.record(self._left_blocks(), (), now=now, final=False))]
        return [*save, Send(data)]

    def _left_blocks(self) -> list[ShadowBlock]:
        """What the current attempt has left with the client so far."""
        if self._attempt is None:
            return []
        return without_loose_thinking(self._attempt.delivered(self._setup.protocol, self._client, {}))

    def _pending(self) -> tuple[PendingReminder, ...]:
        return tuple(self._reminders)

    def _usage(self, attempt: Attempt | None, *, whole: bool = False) -> dict[str, int]:
        """What the client is told of tokens: the attempt's own figures and an estimate for what went before.

        `whole`: the attempt has no final figures, so all its output is estimated too.
        """
        blocks = self._client.given
        last = {block.client_index for block in attempt.order} if attempt is not None and not whole else set()
        earlier = sum(len(block.text) for index, block in enumerate(blocks) if index not in last)
        started = attempt.usage if attempt is not None else None
        ending = attempt.ending.usage if attempt is not None and attempt.ending is not None else None
        return self._setup.protocol.usage_changes(started, ending, estimate_tokens(earlier))


def _together(one: BlockMatch, first: BlockMatch) -> bool:
    # What matched first, character by character, interrupts; later text would never have come.
    return one.view == first.view and one.match.end == first.match.end


def _plain(attempt: Attempt) -> str:
    """The attempt's output as text, for the log."""
    return "\n\n".join(block.text for block in attempt.order if block.kind in ("text", "tool") and block.text)


_JSON = (("content-type", "application/json"),)
