"""A client leaves, at any event: upstream is left at once, nothing stays behind, the conversation goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from proxy_under_test import Proxy, Workspace
from raw_http import RawRequest, RawUpstream, ask, response, send
from raw_http.dialects import DIALECTS, Dialect
from strict_anthropic import text, tool

from ttsr_proxy.interception.exchange import Exchange

BAD = "BADWORD"
CALL = {"file_path": "a.py", "content": "x = 1"}
CALL_ENDS = (b"content_block_stop", b'"finish_reason": "tool_calls"', b"response.output_item.done")
REASON_TO_STOP = (b"message_delta", b'"finish_reason": "stop"')
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@pytest.fixture(params=DIALECTS.values(), ids=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    found: Dialect = request.param
    return found


class Reads:
    """Counts what exchanges have taken in, so that a test knows when an event has had its effect."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.total = 0
        self._more = asyncio.Event()
        data = Exchange.data

        def counted(exchange: Exchange, piece: bytes, now: float) -> Any:
            actions = data(exchange, piece, now)
            self.total += len(piece)
            self._more.set()
            return actions

        monkeypatch.setattr(Exchange, "data", counted)

    async def at_least(self, total: int) -> None:
        async with asyncio.timeout(10):
            while self.total < total:
                self._more.clear()
                await self._more.wait()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


def unfinished(data: bytes) -> Callable[[RawRequest, asyncio.StreamWriter], Awaitable[None]]:
    """An answer that stops behind these bytes and waits for its reader to leave."""

    async def play(request: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + data)
        await request.gone.wait()

    return play


@dataclass(frozen=True, slots=True)
class Scene:
    """A proxy, its upstream and what the proxy has read from it."""

    proxy: Proxy
    upstream: RawUpstream
    reads: Reads
    dialect: Dialect

    async def leaves(self, body: bytes, *answers: bytes, said: str, read: int) -> bytes:
        """Ask, and leave within the last answer, once this text has come and so many bytes were read of it.

        Gives what had come by then, when upstream knows and nothing runs any more.
        """
        tasks, calls, total = asyncio.all_tasks(), len(self.upstream.received), self.reads.total + read
        self.upstream.script += [response(answer, kind="text/event-stream") for answer in answers[:-1]]
        self.upstream.script.append(unfinished(answers[-1]))
        lines = [f"POST {self.dialect.path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in self.dialect.headers]
        request = "\r\n".join([*lines, "", ""]).encode() + body
        got = b""
        async with asyncio.timeout(20):
            async with send(self.proxy.url, request) as (reader, _):
                await self.upstream.next_request(calls + len(answers))
                await self.reads.at_least(total)
                while len(self.dialect.said(got)) < len(said):
                    got += await reader.read(65536)
            await self.upstream.received[-1].gone.wait()
            while running := asyncio.all_tasks() - tasks:
                await asyncio.wait(running)
        return got

    async def asks(self, *said: tuple[str, str], first: str = "hi", answer: str = "Fine.") -> bytes:
        """The request of a conversation, as upstream gets it; upstream answers it with this text."""
        data = b"".join(self.dialect.events(answer))
        self.upstream.script.append(response(data, kind="text/event-stream"))
        body = self.dialect.turns(*said, first=first)
        got = await ask(self.proxy.url, "POST", self.dialect.path, *self.dialect.headers, body=body)
        assert self.dialect.said(got.body) == answer
        return self.upstream.received[-1].body


Begin = Callable[..., Awaitable[Scene]]


@pytest.fixture
def begin(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any, reads: Reads, dialect: Dialect
) -> Begin:
    """Start a proxy with a rule against the bad word."""

    async def start(**rule: Any) -> Scene:
        workspace.rule("no-bad-word", BAD, **rule)
        scene = Scene(await start_proxy(), upstream, reads, dialect)
        await scene.asks()
        return scene

    return start


async def test_within_an_answer_that_breaks_no_rule(begin: Begin, dialect: Dialect) -> None:
    scene = await begin(scope="text")
    events = dialect.events("Fine. ", "Go on. ", "Done.")
    for count in range(len(events)):
        data = b"".join(events[:count])
        said = dialect.said(data)
        await scene.leaves(dialect.body(), data, said=said, read=len(data))
        turns = (("assistant", said), ("user", "go on")) if said else ()
        assert await scene.asks(*turns) == dialect.turns(*turns)
    assert await scene.proxy.interrupts() == []


async def test_while_a_call_is_held(begin: Begin, dialect: Dialect) -> None:
    scene = await begin(scope="tool")
    events = dialect.answer(text("I write."), tool("Write", CALL))
    first = next(at for at, event in enumerate(events) if b"Write" in event)
    last = max(at for at, event in enumerate(events) if any(mark in event for mark in CALL_ENDS))
    for count in range(first, last + 1):
        data = b"".join(events[:count])
        got = await scene.leaves(dialect.body(), data, said="I write.", read=len(data))
        assert b"Write" not in got
        turns = ("assistant", "I write."), ("user", "go on")
        assert await scene.asks(*turns) == dialect.turns(*turns)
    assert await scene.proxy.interrupts() == []


async def test_within_a_retry(begin: Begin, dialect: Dialect) -> None:
    scene = await begin(scope="text")
    violation = b"".join(dialect.events("Shown first. ", BAD))
    events = dialect.events("Better. ", "Go on. ", "Done.")
    for count in range(len(events)):
        data = b"".join(events[:count])
        said = "Shown first. " + dialect.said(data)
        # Each begins a conversation of its own, so that none is the retry of another.
        body = dialect.turns(first=f"hi {count}")
        got = await scene.leaves(
            body, violation, data, said=said, read=violation.index(BAD.encode()) + len(data)
        )
        assert BAD.encode() not in got
        assert dialect.said(got).replace("\n", "") == said
        # Many clients take the reason to stop for the end.
        whole = any(mark in data for mark in REASON_TO_STOP)
        last = ("interrupted", "clean" if whole else "undelivered")
        items = await scene.proxy.log(*[("interrupted", "undelivered")] * count, last)
        assert items[-1]["detail"] == ("" if whole else "the client left")
        seen = await scene.asks(("assistant", dialect.said(got)), ("user", "go on"), first=f"hi {count}")
        assert seen.count(b"<system-interrupt") == 1
        assert BAD.encode() not in seen


async def test_while_a_reminder_is_given(begin: Begin, dialect: Dialect) -> None:
    scene = await begin(scope="text", interruptMode="never")
    await scene.asks(answer=f"{BAD}.")
    turns = ("assistant", f"{BAD}."), ("user", "and then?")
    events = dialect.events("Better. ", "Go on. ", "Done.")
    for count in range(len(events)):
        data = b"".join(events[:count])
        said = dialect.said(data)
        await scene.leaves(dialect.turns(*turns), data, said=said, read=len(data))
        assert scene.upstream.received[-1].body.count(b"<system-reminder") == 1
        # The same question again, and the conversation behind what had come: one reminder each, at its place.
        again = await scene.asks(*turns)
        assert again.count(b"<system-reminder") == 1
        if said:
            further = await scene.asks(*turns, ("assistant", said), ("user", "go on"))
            assert further.count(b"<system-reminder") == 1
            asked = json.loads(again)[dialect.history]
            assert json.loads(further)[dialect.history][: len(asked)] == asked
    assert [item["rule"] for item in await scene.proxy.interrupts()] == ["no-bad-word"]
