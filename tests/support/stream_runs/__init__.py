"""Plays an exchange on bytes that are cut anywhere, and gathers all that came of it."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ttsr_proxy.config import BudgetSettings, HoldSettings, TtsrSettings
from ttsr_proxy.interception.actions import (
    AbortAttempt,
    Action,
    Ask,
    CheckAst,
    Finish,
    Log,
    Note,
    Send,
    StartAttempt,
    UpdateLog,
)
from ttsr_proxy.interception.exchange import Exchange
from ttsr_proxy.interception.inquiry import Inquiry
from ttsr_proxy.interception.setup import Requester, Setup
from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.protocols.protocol import WireProtocol
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.sessions.echoes import find_echoes
from ttsr_proxy.sessions.recall import Recalled
from ttsr_proxy.toolcalls.families import FamilyTable
from ttsr_proxy.triggers.ruleset import RuleSet

__all__ = ["Attempt", "Run", "play", "split"]

Attempt: TypeAlias = Callable[[dict[str, Any]], bytes]
"""From a request's body to the bytes of the streamed answer."""


@dataclass(slots=True)
class Run:
    """What an exchange did. It is over, and in order unless `broken`."""

    sent: bytes = b""
    requests: list[dict[str, Any]] = field(default_factory=list)
    entries: dict[str, InterruptRecord] = field(default_factory=dict)
    notes: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    judged: list[dict[str, Any]] = field(default_factory=list)
    """What a judge is asked about, as it is told."""
    finished: bool = False
    broken: bool = False

    @property
    def log(self) -> list[InterruptRecord]:
        """The interrupt log without what differs from run to run."""
        return [
            dataclasses.replace(entry, id="", time=0.0, conversation="", request="", upstream_requests=())
            for entry in self.entries.values()
        ]


def split(data: bytes, sizes: Sequence[int]) -> Iterator[bytes]:
    """`data` in pieces of these sizes, over and over; without sizes in one piece."""
    at, lengths = 0, itertools.cycle(sizes or [max(len(data), 1)])
    while at < len(data):
        size = next(lengths)
        yield data[at : at + size]
        at += size


def play(
    protocol: WireProtocol,
    body: dict[str, Any],
    rules: Iterable[Rule],
    attempts: Sequence[Attempt],
    sizes: Sequence[int] = (),
    *,
    lost: bool = False,
    budget: BudgetSettings | None = None,
    hold: HoldSettings | None = None,
    **ttsr: Any,
) -> Run:
    """Play the attempts in pieces of these sizes. `lost`: each ends as a lost connection does.

    A judge says yes to all that it is asked.
    """
    rules = list(rules)
    raw = json.dumps(body).encode()
    request = protocol.read_request(raw, {})
    assert request is not None
    settings = TtsrSettings(budget=budget or BudgetSettings(), hold=hold or HoldSettings(), **ttsr)
    ids = itertools.count(1)
    exchange = Exchange(
        Setup(
            id="id00000",
            protocol=protocol,
            request=request,
            raw=raw,
            recalled=Recalled(place=find_echoes(request.items, protocol.chain_text).place),
            ruleset=RuleSet(
                [rule for rule in rules if rule.question is None], interrupt_mode=settings.interrupt_mode
            ),
            judged=RuleSet([rule for rule in rules if rule.question is not None], judged=True),
            families=FamilyTable.default(),
            settings=settings,
            requester=Requester("t", "p", None, None, "unknown", "main", False, None),
            left=None,
            new_id=lambda: f"id{next(ids):05}",
            rule_path=lambda rule: rule.path,
            wall_offset=0.0,
        )
    )
    run, answers = Run(), iter(attempts)
    asked = _do(run, exchange, exchange.start(0.0))
    while asked is not None:
        exchange.attempt_answered(f"req{len(run.requests)}", 0.0)
        asked = _answer(run, exchange, split(next(answers)(asked), sizes), lost)
    assert run.finished, "the exchange waits for nothing"
    return run


def _answer(run: Run, exchange: Exchange, pieces: Iterator[bytes], lost: bool) -> dict[str, Any] | None:
    """One attempt's pieces, until it is aborted or over; the request of the next attempt."""
    for piece in pieces:
        asked = _do(run, exchange, exchange.data(piece, 0.0))
        if asked is not None or run.finished:
            return asked
    end = exchange.attempt_lost("lost", 0.0) if lost else exchange.attempt_ended(0.0)
    return _do(run, exchange, end)


def _do(run: Run, exchange: Exchange, actions: Sequence[Action]) -> dict[str, Any] | None:
    """Carry out the actions; the request of a new attempt if there is one."""
    asked = None
    todo = list(actions)
    while todo:
        match todo.pop(0):
            case StartAttempt(body):
                asked = json.loads(body)
                run.requests.append(asked)
            case Send(data):
                assert not run.finished
                run.sent += data
            case CheckAst(jobs):
                todo = [*todo, *exchange.ast_checked([job.run() for job in jobs], 0.0)]
            case Ask(inquiry):
                _judge(run, inquiry)
            case Log(records):
                run.entries.update((record.id, record) for record in records)
            case UpdateLog(record_id, changes):
                run.entries[record_id] = dataclasses.replace(run.entries[record_id], **changes)
            case Note(event, fields):
                run.notes.append((event, dict(fields)))
            case Finish(broken):
                run.finished, run.broken = True, broken
            case AbortAttempt():
                pass
    return asked


def _judge(run: Run, inquiry: Inquiry) -> None:
    for output in inquiry.outputs():
        output.screen([job.run() for job in output.ast_jobs])
        if output.questions:
            run.judged.append({**output.state, "questions": len(output.questions)})
            inquiry.answered(output, [1.0] * len(output.questions), 0.0)
    for action in inquiry.concluded(0.0):
        if isinstance(action, Log):
            run.entries.update((record.id, record) for record in action.records)
