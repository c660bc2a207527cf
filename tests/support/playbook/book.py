"""Drives an exchange as the server does, and keeps what it does as lines."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from coding_agent import Agent, Answer, EchoStyle, StreamReader
from strict_anthropic import Turn, drop, stall, validate
from strict_anthropic.wire import Writer

from playbook.expectations import Expectation
from playbook.happenings import Happening
from playbook.notation import message_line, request_lines, stream_line
from playbook.store import MemoryStore, at_once
from ttsr_proxy.config import BudgetSettings, HoldSettings, TtsrSettings
from ttsr_proxy.interception.actions import (
    AbortAttempt,
    Action,
    CheckAst,
    Finish,
    LeaveUnfinished,
    Log,
    Note,
    Relay,
    Reply,
    Save,
    Send,
    StartAttempt,
    UpdateLog,
)
from ttsr_proxy.interception.exchange import Exchange
from ttsr_proxy.interception.setup import Requester, Setup
from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.jsontext import canonical
from ttsr_proxy.protocols.anthropic import ANTHROPIC
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.sessions.identity import Activity
from ttsr_proxy.sessions.recall import recall
from ttsr_proxy.toolcalls.families import FamilyTable
from ttsr_proxy.triggers.ast import AstCheck
from ttsr_proxy.triggers.ruleset import RuleSet

_TENANT = "tenant"
_RETRY_WINDOW = 600.0
_STALL, _DROP = type(stall()), type(drop())

Line = tuple[str, Any]


class Playbook:
    """One client's conversation. `activity` is what the client counts as a sign of life.

    `prompt` is what the rulebook adds to a first request, `readable` the rules behind `rule://`.
    """

    def __init__(
        self,
        *rules: Rule,
        agent: Agent | None = None,
        store: MemoryStore | None = None,
        activity: Activity = "bytes",
        observed: str | None = None,
        prompt: str = "",
        readable: Mapping[str, str] | None = None,
        ast_by_hand: bool = False,
        strict: bool = True,
        budget: BudgetSettings | None = None,
        hold: HoldSettings | None = None,
        **ttsr: Any,
    ) -> None:
        self.agent = agent or Agent("http://unused", style=EchoStyle(cache_last=False))
        self.store = store or MemoryStore()
        self.settings = TtsrSettings(budget=budget or BudgetSettings(), hold=hold or HoldSettings(), **ttsr)
        self.ruleset = RuleSet(rules, interrupt_mode=self.settings.interrupt_mode)
        assert not self.ruleset.rejected, self.ruleset.rejected
        self.activity = activity
        self.observed = observed
        self.prompt = prompt
        self.readable = readable or {}
        self.strict = strict
        self.ids = itertools.count(1)
        self.now = 1_000.0
        self.entries: dict[str, InterruptRecord] = {}
        self.notes: list[tuple[str, dict[str, Any]]] = []
        self.requests: list[dict[str, Any]] = []
        self.raw_requests: list[bytes] = []
        self.answer = Answer(200, {}, b"")
        self._ast_by_hand = ast_by_hand
        self._awaited: tuple[AstCheck, ...] = ()
        self._exchange: Exchange | None = None
        self._reader = StreamReader(self.answer)
        self._events_read = 0
        self._key = ""
        self._upstream: Iterator[Any] | None = None
        self._over = True
        self._transcript: list[str] = []
        self._unread: list[Line] = []

    def __rshift__(self, happening: Happening) -> Playbook:
        self._expect_nothing(f">> {happening.name}")
        self._transcript.append(f">> {happening.name}")
        happening.run(self)
        return self

    def __lshift__(self, expected: Expectation) -> Playbook:
        if expected.line is None:
            self._expect_nothing("<< nothing()")
            return self
        found = self._unread.pop(0) if self._unread else ("nothing", None)
        if found != expected.line:
            self._unread.insert(0, found)
            raise AssertionError(self._story(f"expected {_show(expected.line)}"))
        self._transcript.append(f"   << {_show(found)}")
        return self

    def fork(self) -> Playbook:
        """Another client with the same history, on the same store and clock reading."""
        other = copy.copy(self)
        other.agent = self.agent.fork()
        other.entries, other.notes, other.requests, other.raw_requests = {}, [], [], []
        other._transcript, other._unread, other._exchange = [], [], None
        return other

    def fresh(self, **agent: Any) -> Playbook:
        """Another client of the same proxy, without any history."""
        other = self.fork()
        other.agent = Agent("http://unused", **agent)
        return other

    def settle(self) -> None:
        """All that the exchange did was expected."""
        self._expect_nothing("the end of the test")

    @property
    def log(self) -> list[InterruptRecord]:
        """The interrupt log of this client, oldest first, with its later changes."""
        return list(self.entries.values())

    @property
    def logged(self) -> list[str]:
        """The log in short: `rule action outcome`."""
        return [f"{entry.rule} {entry.action} {entry.outcome}" for entry in self.log]

    @property
    def noted(self) -> list[str]:
        """The process log in short."""
        return [" ".join([event, *map(str, fields.values())]) for event, fields in self.notes]

    # What happenings use.

    def ask(self) -> None:
        """The client sends its history as it is."""
        body = self.agent.body()
        raw = json.dumps(body).encode()
        request = ANTHROPIC.read_request(raw, {})
        assert request is not None
        recalled = at_once(
            recall(self.store, _TENANT, request.items, ANTHROPIC.chain_text, prefill=request.prefill)
        )
        self._key = canonical({key: value for key, value in body.items() if key != "stream"})
        left = at_once(self.store.take_unfinished(_TENANT, self._key, self.now - _RETRY_WINDOW))
        setup = Setup(
            id=f"id{next(self.ids):05}",
            protocol=ANTHROPIC,
            request=request,
            raw=raw,
            recalled=recalled,
            ruleset=self.ruleset,
            families=FamilyTable.default(),
            settings=self.settings,
            requester=Requester(
                tenant=_TENANT,
                project="default",
                project_root=None,
                session=None,
                client="unknown",
                agent="main",
                activity=self.activity,
                observed=self.observed,
            ),
            left=left,
            new_id=lambda: f"id{next(self.ids):05}",
            rule_path=lambda rule: rule.path,
            wall_offset=0.0,
            prompt=self.prompt if recalled.is_new else "",
            readable=self.readable,
        )
        self.answer = Answer(0, {}, b"")
        self._reader, self._events_read = StreamReader(self.answer), 0
        self._upstream, self._over = None, False
        self._exchange = Exchange(setup)
        self._act(self._exchange.start(self.now))

    @property
    def exchange(self) -> Exchange:
        assert self._exchange is not None, "nothing was asked"
        return self._exchange

    def answered(self, turn: Turn, *, lingers: bool = False) -> None:
        """Upstream accepts the request and begins to answer; goes on to the first stall or the end.

        `lingers`: it keeps the connection open after that.
        """
        writer = Writer(turn, self.requests[-1])
        self._act(self.exchange.attempt_answered(writer.message_id, self.now))
        if not self.requests[-1].get("stream"):
            self._act(self.exchange.body(200, json.dumps(writer.message()).encode(), self.now))
            return
        # The ping that upstream sends right after the opening says nothing to a test.
        acts = list(writer.stream())
        self._upstream = iter([*acts[:1], *acts[2:], *([stall()] if lingers else [])])
        self.go_on()

    def go_on(self) -> None:
        """Upstream goes on to its next stall or its end, unless it is aborted first."""
        while (upstream := self._upstream) is not None:
            act = next(upstream, None)
            if isinstance(act, _STALL):
                return
            if act is None:
                self._upstream = None
                self._act(self.exchange.attempt_ended(self.now))
            elif isinstance(act, _DROP):
                self._upstream = None
                self._act(self.exchange.attempt_lost("the connection was cut", self.now))
            else:
                self._act(self.exchange.data(act, self.now))

    def act(self, actions: list[Action]) -> None:
        """Carry out what the exchange says."""
        self._act(actions)

    def take_awaited(self) -> tuple[AstCheck, ...]:
        jobs, self._awaited = self._awaited, ()
        return jobs

    def pass_time(self, seconds: float) -> None:
        """Let the clock run, and tick whenever the exchange wants it."""
        until = self.now + seconds
        ticks_at_once = 0
        while not self._over:
            deadline = self.exchange.deadline
            if deadline is None or deadline > until:
                break
            ticks_at_once = 0 if deadline > self.now else ticks_at_once + 1
            assert ticks_at_once < 5, self._story(f"the deadline {deadline} does not move")
            self.now = max(self.now, deadline)
            self._act(self.exchange.tick(self.now))
        self.now = until

    # What the exchange does.

    def _act(self, actions: list[Action]) -> None:
        for action in actions:
            self._do(action)

    def _do(self, action: Action) -> None:
        if self._over and not isinstance(action, Save | Log | UpdateLog | LeaveUnfinished | AbortAttempt):
            raise AssertionError(self._story(f"{action} after the end"))
        match action:
            case StartAttempt(body, delay):
                self._start(body, delay)
            case AbortAttempt():
                self._upstream = None
                self._add("aborted", None)
            case Send(data):
                self._reader.feed(data)
                self._received()
            case Reply(status, body):
                document = json.loads(body)
                if status == 200:
                    self.answer.raw, self.answer.status = body, status
                    self.answer.blocks, self.answer.usage = document["content"], document["usage"]
                    self.answer.stop_reason, self.answer.complete = document["stop_reason"], True
                self._add("replied", (status, message_line(document)))
            case Relay():
                self._over = True
                self._add("relayed", None)
            case CheckAst(jobs):
                self._awaited = jobs
                if self._ast_by_hand:
                    self._add("checks", len(jobs))
                else:
                    results = [job.run() for job in self.take_awaited()]
                    self._act(self.exchange.ast_checked(results, self.now))
            case Save(record):
                at_once(self.store.save(record))
            case Log(records):
                self.entries.update((record.id, record) for record in records)
            case UpdateLog(record_id, changes):
                if record_id in self.entries:
                    entry = self.entries[record_id]
                    self.entries[record_id] = dataclasses.replace(entry, **changes)
            case LeaveUnfinished(left):
                at_once(self.store.put_unfinished(_TENANT, self._key, left))
            case Note(event, fields):
                self.notes.append((event, dict(fields)))
            case Finish(is_broken):
                self._over = True
                self._upstream = None
                self._add("broken" if is_broken else "finished", None)
                if self.answer.complete:
                    self.agent.add_answer(self.answer)

    def _start(self, body: bytes, delay: float) -> None:
        request = json.loads(body)
        self.requests.append(request)
        self.raw_requests.append(body)
        self._upstream = None
        refusal = validate(request) if self.strict else None
        assert refusal is None, self._story(f"upstream would refuse {request_lines(request)}: {refusal}")
        self._add("asked", (request_lines(request), delay))

    def _received(self) -> None:
        events = self.answer.events[self._events_read :]
        self._events_read = len(self.answer.events)
        # What arrives without anything in between is one delivery.
        if self._unread and self._unread[-1][0] == "gets":
            events = [*self._unread.pop()[1].events, *events]
        self._add("gets", _Got(events))

    def _add(self, kind: str, what: Any) -> None:
        self._unread.append((kind, what))

    def _expect_nothing(self, before: str) -> None:
        if self._unread:
            raise AssertionError(self._story(f"before {before}"))

    def _story(self, problem: str) -> str:
        unread = [f"   ?? {_show(line)}" for line in self._unread]
        return "\n".join([problem, *self._transcript, *unread])


class _Got:
    """A delivery, which compares by its notation."""

    def __init__(self, events: list[dict[str, Any]]) -> None:
        self.events = events

    def __eq__(self, other: object) -> bool:
        return stream_line(self.events) == (stream_line(other.events) if isinstance(other, _Got) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(stream_line(self.events))


def _show(line: Line) -> str:
    kind, what = line
    match kind:
        case "asked":
            lines, delay = what
            after = f", after={delay}" if delay else ""
            return f"asked({', '.join(map(repr, lines))}{after})"
        case "replied":
            return f"replied{what}"
        case _:
            return f"{kind}({'' if what is None else repr(what)})"
