"""Carries out what an exchange says: the thin, dull part between it and the sockets."""

from __future__ import annotations

import asyncio
import email.utils
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import structlog
from aiohttp import web
from multidict import CIMultiDict

from ttsr_proxy.captures.tape import Tape
from ttsr_proxy.interception.actions import (
    AbortAttempt,
    Action,
    Ask,
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
from ttsr_proxy.interception.inquiry import Inquiry
from ttsr_proxy.web.ast_worker import AstWorker
from ttsr_proxy.web.headers import INTERRUPTS, to_client
from ttsr_proxy.web.judging import Judging
from ttsr_proxy.web.passthrough import relay
from ttsr_proxy.web.stores import Stores
from ttsr_proxy.web.trail import TRAIL
from ttsr_proxy.web.upstream import (
    MAX_ERROR_BYTES,
    MAX_WHOLE_BYTES,
    UpstreamAnswer,
    UpstreamClient,
    UpstreamLost,
)

_log = structlog.get_logger()


Happened: TypeAlias = Callable[[float], list[Action]]
"""Tells the exchange what has happened, given the time, and returns what it wants done."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where an exchange's attempts go."""

    method: str
    url: str
    headers: CIMultiDict[str]


@dataclass(frozen=True, slots=True)
class Retry:
    """By what a client's retry of this request is recognised; `known` if this is one."""

    tenant: str | None
    key: str
    known: bool


class MatchingFailed(Exception):
    """Something went wrong that never should, and the client has nothing yet: its request can still pass
    without being inspected. Later its connection breaks, and clients ask again."""


class Driver:
    """Runs one exchange to its end. Cancelling `run` (the client left) closes the upstream call at once."""

    def __init__(
        self,
        request: web.Request,
        exchange: Exchange,
        target: Target,
        upstream: UpstreamClient,
        stores: Stores,
        ast: AstWorker,
        judging: Judging,
        retry: Retry,
        tape: Tape | None,
    ) -> None:
        self._request = request
        self._exchange = exchange
        self._target = target
        self._upstream = upstream
        self._stores = stores
        self._ast = ast
        self._judging = judging
        self._retry = retry
        self.tape = tape
        """Keeps what is sent and received, if that is wanted."""
        self._kept: Callable[[bytes], None] | None = None
        """Takes what the client is sent, for the tape."""
        self._actions: deque[Action] = deque()
        self._inquiries: list[Inquiry] = []
        self._answer: UpstreamAnswer | None = None
        self._response: web.StreamResponse | None = None
        self._pending: asyncio.Task[Happened] | None = None
        self._left_unfinished = False
        self._finished = False
        self._trail = request[TRAIL]
        self._trail.exchange = exchange

    async def run(self) -> web.StreamResponse:
        """The finished response."""
        try:
            self._actions.extend(self._exchange.start(time.monotonic()))
            await self._act()
            while not self._finished:
                await self._wait()
                await self._act()
        except (asyncio.CancelledError, ConnectionError):
            # The client left. What it was given is still remembered, whatever happens to this task.
            await asyncio.shield(self._abandon())
            raise
        except Exception as error:
            # A fault of ours must not cost the agent its answer: see `MatchingFailed`.
            if self._response is None:
                raise MatchingFailed from error
            self._trail.fault(error)
            self._trail.outcome = "fault"
            await self._finish(broken=True)
            return self._response
        finally:
            self._close_upstream()
            self._trail.exchange = None
            self._trail.outcome = self._exchange.ending or self._trail.outcome
            if self.tape is not None:
                self.tape.over(self._trail.outcome or "")
        if self._retry.known and not self._left_unfinished and self._retry.tenant is not None:
            await self._stores.drop_unfinished(self._retry.tenant, self._retry.key)
        assert self._response is not None
        return self._response

    async def _wait(self) -> None:
        """The next thing that happens: upstream speaks, or the exchange's time has come."""
        deadline = self._exchange.deadline
        within = None if deadline is None else max(0.0, deadline - time.monotonic())
        happened = await (self._next_piece(within) if self._pending is None else self._answered(within))
        now = time.monotonic()
        self._actions.extend(self._exchange.tick(now) if happened is None else happened(now))

    async def _answered(self, within: float | None) -> Happened | None:
        assert self._pending is not None
        done, _ = await asyncio.wait({self._pending}, timeout=within)
        if not done:
            return None
        happened = self._pending.result()
        self._pending = None
        return happened

    async def _next_piece(self, within: float | None) -> Happened | None:
        assert self._answer is not None
        if within is None:
            return await self._read(self._answer)
        try:
            async with asyncio.timeout(within):
                return await self._read(self._answer)
        except TimeoutError:
            return None

    async def _act(self) -> None:
        while self._actions:
            await self._do(self._actions.popleft())
        self._judge()

    def _judge(self) -> None:
        """Nothing is asked before the client has what it is about."""
        inquiries, self._inquiries = self._inquiries, []
        for inquiry in inquiries:
            self._judging.soon(inquiry)

    async def _do(self, action: Action) -> None:
        match action:
            case Send(data):
                await self._send(data)
            case StartAttempt(body, delay):
                self._close_upstream()
                self._trail.call_begins(self._target.method, self._target.url)
                self._pending = asyncio.create_task(self._call(body, delay))
            case AbortAttempt():
                if self.tape is not None:
                    self.tape.lost("aborted")
                self._close_upstream()
            case CheckAst(jobs):
                results = await self._ast.run(jobs)
                self._actions.extend(self._exchange.ast_checked(results, time.monotonic()))
            case Save(record) if record.hidden or record.pending:
                await self._stores.save(record)
            case Save(record):
                # Nothing breaks without it, so the client does not wait for the disk.
                self._stores.soon(self._stores.save(record))
            case Ask(inquiry):
                self._inquiries.append(inquiry)
            case Log(records):
                self._trail.logged(records)
                self._stores.soon(self._stores.log(records))
            case UpdateLog(record_id, changes):
                self._trail.updated(changes)
                self._stores.soon(self._stores.update_log(record_id, changes))
            case LeaveUnfinished(left):
                self._left_unfinished = True
                if self._retry.tenant is not None:
                    await self._stores.put_unfinished(self._retry.tenant, self._retry.key, left)
            case Note(event, fields):
                self._trail.noted(event)
                _log.info(event, **fields)
            case Reply():
                await self._reply(action)
            case Relay():
                assert self._answer is not None
                if self.tape is not None:
                    self.tape.relays()
                self._response = await relay(self._request, self._answer)
                self._finished = True
            case Finish(broken):
                await self._finish(broken)

    # Upstream.

    async def _call(self, body: bytes, delay: float) -> Happened:
        if delay:
            await asyncio.sleep(delay)
        target, exchange, tape = self._target, self._exchange, self.tape
        if tape is not None:
            tape.asks(target.method, target.url, target.headers, body)
        try:
            answer = await self._upstream.call(target.method, target.url, target.headers, body, readable=True)
            if tape is not None:
                answer = replace(answer, heard=tape.answered(answer.status, answer.headers))
            self._answer = answer
            headers = answer.headers
            self._trail.call_went("answered" if answer.status == 200 else "refused", answer.status)
            if answer.status != 200:
                refused = await answer.read_all(MAX_ERROR_BYTES)
                if refused is None:
                    return lambda now: exchange.attempt_uninspectable("an error of unusual size", now)
                after = _retry_after(headers.get("retry-after"))
                return lambda now: exchange.attempt_refused(answer.status, refused, after, now)
            encoding = headers.get("content-encoding", "identity")
            if encoding != "identity" and not answer.decoded:
                return lambda now: exchange.attempt_uninspectable(
                    f"the answer is compressed ({encoding})", now
                )
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind == "text/event-stream":
                return lambda now: exchange.attempt_answered(answer.request_id, now)
            if kind.endswith("json"):
                whole = await answer.read_all(MAX_WHOLE_BYTES)
                if whole is None:
                    return lambda now: exchange.attempt_uninspectable("an answer of unusual size", now)

                def answered(now: float) -> list[Action]:
                    before = exchange.attempt_answered(answer.request_id, now)
                    return [*before, *exchange.body(answer.status, whole, now)]

                return answered
            return lambda now: exchange.attempt_uninspectable(f"the answer is {kind or 'of no type'}", now)
        except UpstreamLost as lost:
            return self._lost(lost)

    async def _read(self, answer: UpstreamAnswer) -> Happened:
        exchange = self._exchange
        try:
            piece = await answer.read_piece()
        except UpstreamLost as lost:
            return self._lost(lost)
        self._trail.call_speaks()
        if not piece:
            return exchange.attempt_ended
        return lambda now: exchange.data(piece, now)

    def _lost(self, lost: UpstreamLost) -> Happened:
        self._trail.call_went("lost")
        reason = str(lost)
        if self.tape is not None:
            self.tape.lost(reason)
        return lambda now: self._exchange.attempt_lost(reason, now)

    def _close_upstream(self) -> None:
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None
        if self._answer is not None:
            self._answer.close()
        self._trail.call_over()

    # The client.

    async def _send(self, data: bytes) -> None:
        response = self._response or await self._open()
        if self._kept is not None:
            self._kept(data)
        await response.write(data)

    async def _open(self) -> web.StreamResponse:
        assert self._answer is not None
        self._response = web.StreamResponse(
            status=self._answer.status, headers=self._upstream_headers(self._answer)
        )
        if self._trail.interrupts:
            # More may follow, so none at all says nothing yet.
            self._response.headers[INTERRUPTS] = str(self._trail.interrupts)
        self._trail.stream_begins()
        if self.tape is not None:
            self._kept = self.tape.answers(self._response.status, self._response.headers)
        await self._response.prepare(self._request)
        return self._response

    @staticmethod
    def _upstream_headers(answer: UpstreamAnswer) -> CIMultiDict[str]:
        return to_client(answer.response.raw_headers, length_changes=True, decoded=answer.decoded)

    async def _reply(self, reply: Reply) -> None:
        if reply.headers is not None or self._answer is None:
            headers = CIMultiDict(reply.headers or ())
        else:
            headers = self._upstream_headers(self._answer)
        headers[INTERRUPTS] = str(self._trail.interrupts)
        if self.tape is not None:
            self.tape.answers(reply.status, headers)(reply.body)
        self._response = web.Response(status=reply.status, body=reply.body, headers=headers)

    async def _finish(self, broken: bool) -> None:
        self._finished = True
        if broken and self._response is None:
            # Lost behind the headers: the client has them too, and no more.
            await self._open()
        if broken and self._request.transport is not None:
            self._request.transport.abort()
        elif self._response is not None and not isinstance(self._response, web.Response):
            await self._response.write_eof()

    async def _abandon(self) -> None:
        self._close_upstream()
        self._actions.clear()
        for action in self._exchange.client_gone(time.monotonic()):
            if not isinstance(action, Send | Reply | Finish | StartAttempt):
                await self._do(action)
        self._judge()


def _retry_after(value: str | None) -> float | None:
    """Seconds of a `Retry-After` header (RFC 9110 section 10.2.3); None without a usable one."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None
