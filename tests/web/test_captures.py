"""Captures: whole exchanges as files, off unless wanted, and never at the cost of an agent's session."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import os
import shutil
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog
from click.testing import CliRunner
from proxy_under_test import Workspace
from raw_http import RawAnswer, RawRequest, RawUpstream, ask, response, send
from raw_http.dialects import DIALECTS, Dialect

from ttsr_proxy.cli import main
from ttsr_proxy.cli.logging import configure_logging
from ttsr_proxy.config import CaptureSettings
from ttsr_proxy.web import captures

BAD = "BADWORD"
STREAM = "text/event-stream"
ANTHROPIC = DIALECTS["anthropic"]


@pytest.fixture(params=DIALECTS.values(), ids=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    found: Dialect = request.param
    return found


class Kept:
    """What is in a directory of captures. A thread writes it; `_done` tells when it has."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        self._done = threading.Condition()
        self._writes = 0
        real = captures.Captures._write

        def write(*arguments: Any) -> None:
            real(*arguments)
            with self._done:
                self._writes += 1
                self._done.notify_all()

        monkeypatch.setattr(captures.Captures, "_write", write)

    async def after(self, writes: int) -> list[list[dict[str, Any]]]:
        """The lines of each capture when this many exchanges in all were written, or could not be."""

        def wait() -> None:
            with self._done:
                assert self._done.wait_for(lambda: self._writes >= writes, timeout=10)

        await asyncio.to_thread(wait)
        return [[json.loads(line) for line in path.read_text().splitlines()] for path in self.files]

    @property
    def files(self) -> list[Path]:
        return sorted(self.directory.glob("*" + captures.SUFFIX))

    @property
    def names(self) -> list[str]:
        return sorted(path.name for path in self.directory.glob("*")) if self.directory.exists() else []


@pytest.fixture
def kept(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Kept:
    """Where captures go, switched on."""
    workspace.capture = CaptureSettings(enabled=True)
    return Kept(workspace.state.parent / "captures" / "default", monkeypatch)


@pytest.fixture
def told() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    configure_logging(stream)
    yield stream
    structlog.reset_defaults()


def failures(told: io.StringIO) -> list[str]:
    events = [json.loads(line) for line in told.getvalue().splitlines()]
    return [event["reason"] for event in events if event["event"] == "capture_failed"]


async def exchange(url: str, upstream: RawUpstream, dialect: Dialect, *said: str) -> RawAnswer:
    upstream.script.extend(response(b"".join(dialect.events(text)), kind=STREAM) for text in said)
    return await ask(url, "POST", dialect.path, *dialect.headers, body=dialect.body())


async def test_an_interrupted_exchange_is_kept_whole(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any, kept: Kept, dialect: Dialect
) -> None:
    workspace.rule("no-bad-word", BAD, scope="text")
    proxy = await start_proxy()
    answer = await exchange(proxy.url, upstream, dialect, f"{BAD} here", "Done.")
    ((label, *messages),) = await kept.after(1)
    (item,) = await proxy.log(("interrupted", "clean"))
    assert (label["id"], label["conversation"], label["turn"]) == (item["request"], item["conversation"], 0)
    assert (label["ttsr_capture"], label["project"], label["root"]) == (1, "default", str(workspace.project))
    assert sorted((message["kind"], message.get("attempt", 0), message["ended"]) for message in messages) == [
        ("client_request", 0, None),
        ("client_response", 0, "completed"),
        ("upstream_request", 1, None),
        ("upstream_request", 2, None),
        ("upstream_response", 1, "aborted"),
        ("upstream_response", 2, None),
    ]
    by_kind = {(message["kind"], message.get("attempt")): message for message in messages}
    assert by_kind["client_request", None]["body"] == dialect.body().decode()
    assert by_kind["upstream_request", 1]["body"] == dialect.body().decode()
    assert by_kind["upstream_request", 2]["body"] == upstream.received[1].body.decode()
    assert BAD in by_kind["upstream_response", 1]["body"]
    assert by_kind["client_response", None]["body"] == answer.body.decode()
    assert [message["at"] for message in messages] == sorted(message["at"] for message in messages)
    (path,) = kept.files
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert kept.names == [path.name]


async def test_without_the_setting_nothing_is_kept(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any, dialect: Dialect
) -> None:
    workspace.rule("no-bad-word", BAD, scope="text")
    proxy = await start_proxy()
    await exchange(proxy.url, upstream, dialect, f"{BAD} here", "Done.")
    await proxy.log(("interrupted", "clean"))
    assert not (workspace.state.parent / "captures").exists()


async def test_without_a_rule_exchanges_are_kept_and_pass_as_they_are(
    upstream: RawUpstream, start_proxy: Any, kept: Kept, dialect: Dialect
) -> None:
    proxy = await start_proxy()
    said = b"".join(dialect.events(f"{BAD} here"))
    upstream.script.append(response(said, kind=STREAM))
    answer = await ask(proxy.url, "POST", dialect.path, *dialect.headers, body=dialect.body())
    assert answer.body == said
    ((_, *messages),) = await kept.after(1)
    assert messages[-1]["body"].encode() == answer.body
    ready = json.loads((await ask(proxy.url, "GET", "/readyz")).body)
    assert ready["not_inspected"] == {"no rule watches the stream": 1}


async def test_a_rule_is_tried_on_what_was_kept(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any, kept: Kept, monkeypatch: Any
) -> None:
    proxy = await start_proxy()
    for said in ("fine", f"so {BAD}", f"again {BAD}"):
        await exchange(proxy.url, upstream, ANTHROPIC, said)
    await kept.after(3)
    workspace.rule("no-bad-word", BAD, scope="text")
    monkeypatch.setenv("TTSR_BUILTIN_RULES", "false")
    monkeypatch.setenv("HOME", str(workspace.home))
    arguments = ["--json", "--project", str(workspace.project), "--rules", str(workspace.rules)]
    told = await asyncio.to_thread(CliRunner().invoke, main, ["replay", str(kept.directory), *arguments])
    found = json.loads(told.stdout)
    # Equal requests are conversations of their own.
    assert [(one["rule"], one["action"], one["before"]) for one in found["matches"]] == [
        ("no-bad-word", "interrupted", "so "),
        ("no-bad-word", "interrupted", "again "),
    ]
    assert (found["files"], found["conversations"], found["lost"], found["skipped"]) == (3, 3, [], [])


async def test_no_credential_and_no_secret_is_kept(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any, kept: Kept, dialect: Dialect
) -> None:
    workspace.rule("no-bad-word", BAD, scope="text")
    proxy = await start_proxy()
    canaries = ("Zq1Xw9Ve", "Ce3Xn8Ud", "Gu7Tj4Qz", "Hi8Sh3Py", "Jo9Rg2Ox", "Kp0Qf1Nw")
    sent = {
        "x-api-key": "canary-Zq1Xw9Ve",
        "authorization": "Bearer canary-Zq1Xw9Ve",
        "cookie": "a=canary-Ce3Xn8Ud",
    }
    said = ["The key is ghp_canary", "Jo9Rg2", "Ox0000000000000000, so ", BAD]
    script = [dialect.events(*said), dialect.events(*said[:3])]
    extra = ("set-cookie", "a=canary-Kp0Qf1Nw"), ("x-secret", "canary-Kp0Qf1Nw")
    upstream.script.extend(response(b"".join(events), *extra, kind=STREAM) for events in script)
    prompt = [{"role": "user", "content": "my key is sk-ant-api03-canaryHi8Sh3Py"}]
    await ask(
        proxy.url,
        "POST",
        f"{dialect.path}?key=canary-Gu7Tj4Qz",
        ("content-type", "application/json"),
        *sent.items(),
        body=dialect.body(**{dialect.history: prompt}),
    )
    (messages,) = await kept.after(1)
    assert len(messages) == 7
    found = json.dumps(messages)
    for canary in canaries:
        assert canary not in found, canary
    assert all("[masked]" in message["body"] for message in messages[1:])


@pytest.mark.parametrize(
    ("where", "fault"),
    [("open", errno.ENOSPC), ("open", errno.EROFS), ("open", errno.EACCES), ("replace", errno.ENOSPC)],
)
async def test_a_disk_that_takes_nothing_is_told_once_and_disturbs_nobody(
    upstream: RawUpstream,
    start_proxy: Any,
    kept: Kept,
    told: io.StringIO,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    fault: int,
) -> None:
    proxy = await start_proxy()
    real, reason = getattr(os, where), os.strerror(fault)

    def refused(path: Any, *arguments: Any) -> Any:
        if str(path).endswith(".part"):
            raise OSError(fault, reason)
        return real(path, *arguments)

    with monkeypatch.context() as broken:
        broken.setattr(os, where, refused)
        for _ in range(3):
            answer = await exchange(proxy.url, upstream, ANTHROPIC, "fine")
            assert ANTHROPIC.said(answer.body) == "fine"
        assert await kept.after(3) == []
        assert failures(told) == [reason]
    await exchange(proxy.url, upstream, ANTHROPIC, "fine")
    assert len(await kept.after(4)) == 1
    assert failures(told) == [reason]
    assert kept.names == [path.name for path in kept.files]


async def test_a_file_in_the_place_of_the_directory_disturbs_nobody(
    upstream: RawUpstream, start_proxy: Any, kept: Kept, told: io.StringIO
) -> None:
    file = kept.directory
    file.parent.mkdir()
    file.write_text("")
    proxy = await start_proxy()
    assert ANTHROPIC.said((await exchange(proxy.url, upstream, ANTHROPIC, "fine")).body) == "fine"
    await kept.after(1)
    assert failures(told) == ["File exists"]


async def test_a_directory_that_vanishes_is_made_again(
    upstream: RawUpstream, start_proxy: Any, kept: Kept, told: io.StringIO
) -> None:
    proxy = await start_proxy()
    await exchange(proxy.url, upstream, ANTHROPIC, "one")
    await kept.after(1)
    shutil.rmtree(kept.directory.parent)
    await exchange(proxy.url, upstream, ANTHROPIC, "two")
    assert len(await kept.after(2)) == 1
    assert failures(told) == []


async def test_a_disk_that_is_too_slow_costs_captures_only(
    upstream: RawUpstream,
    start_proxy: Any,
    kept: Kept,
    told: io.StringIO,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(captures, "MAX_WAITING", 0)
    proxy = await start_proxy()
    assert ANTHROPIC.said((await exchange(proxy.url, upstream, ANTHROPIC, "fine")).body) == "fine"
    assert failures(told) == ["the disk is too slow"]
    assert kept.names == []


async def test_a_fault_of_the_program_costs_captures_only(
    upstream: RawUpstream,
    start_proxy: Any,
    kept: Kept,
    told: io.StringIO,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wrong(*arguments: Any) -> None:
        raise ValueError("what somebody wrote")

    monkeypatch.setattr(captures, "lines", wrong)
    proxy = await start_proxy()
    assert ANTHROPIC.said((await exchange(proxy.url, upstream, ANTHROPIC, "fine")).body) == "fine"
    await kept.after(1)
    assert failures(told) == ["ValueError"]
    assert "what somebody wrote" not in told.getvalue()


async def test_the_oldest_go_when_there_are_too_many(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any, kept: Kept
) -> None:
    proxy = await start_proxy()
    await exchange(proxy.url, upstream, ANTHROPIC, "0")
    await kept.after(1)
    (first,) = kept.files
    size = first.stat().st_size
    mine, left = first.with_name("mine.jsonl"), first.with_name(f".left{captures.SUFFIX}.part")
    for other in (mine, left):
        other.write_text("x" * size)
        os.utime(other, (0, 0))
    workspace.capture = replace(workspace.capture, max_megabytes=2.5 * size / 1_000_000)
    bounded = await start_proxy()
    for number in range(1, 5):
        await exchange(bounded.url, upstream, ANTHROPIC, str(number))
        found = await kept.after(number + 1)
    assert [ANTHROPIC.said(messages[-1]["body"].encode()) for messages in found] == ["3", "4"]
    assert kept.names == sorted([*(path.name for path in kept.files), mine.name])


async def test_what_is_too_old_goes(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any, kept: Kept
) -> None:
    proxy = await start_proxy()
    await exchange(proxy.url, upstream, ANTHROPIC, "old")
    await kept.after(1)
    (old,) = kept.files
    os.utime(old, (time.time() - 8 * 86_400,) * 2)
    await exchange(proxy.url, upstream, ANTHROPIC, "new")
    ((_, *messages),) = await kept.after(2)
    assert ANTHROPIC.said(messages[-1]["body"].encode()) == "new"


async def test_an_exchange_that_is_too_long_is_cut_and_says_so(
    workspace: Workspace, upstream: RawUpstream, start_proxy: Any, kept: Kept
) -> None:
    workspace.capture = replace(workspace.capture, exchange_megabytes=0.001)
    proxy = await start_proxy()
    answer = await exchange(proxy.url, upstream, ANTHROPIC, "word " * 2000)
    assert ANTHROPIC.said(answer.body) == "word " * 2000
    ((label, *messages),) = await kept.after(1)
    assert label["truncated"] is True
    assert sum(len(message["body"]) for message in messages) == 1000
    assert sum(size for _, size in messages[-1]["pieces"]) == len(answer.body)


async def test_an_upstream_that_cannot_be_reached_is_kept_with_the_reason(
    workspace: Workspace, start_proxy: Any, kept: Kept, upstream: RawUpstream
) -> None:
    upstream.script.append(b"")
    proxy = await start_proxy()
    await ask(proxy.url, "POST", ANTHROPIC.path, *ANTHROPIC.headers, body=ANTHROPIC.body())
    ((_, *messages),) = await kept.after(1)
    assert [(message["kind"], message.get("status")) for message in messages] == [
        ("client_request", None),
        ("upstream_request", None),
        ("upstream_response", None),
        ("client_response", 502),
    ]
    assert messages[2]["ended"] == "the connection to upstream failed (ServerDisconnectedError)"


async def test_an_answer_that_cannot_be_inspected_is_kept_once(
    upstream: RawUpstream, start_proxy: Any, kept: Kept
) -> None:
    upstream.script.append(response(b"<html>", kind="text/html"))
    proxy = await start_proxy()
    answer = await ask(proxy.url, "POST", ANTHROPIC.path, *ANTHROPIC.headers, body=ANTHROPIC.body())
    assert answer.body == b"<html>"
    ((_, *messages),) = await kept.after(1)
    assert [(message["kind"], message["body"], message["ended"]) for message in messages[2:]] == [
        ("upstream_response", "<html>", None),
        ("client_response", "", "relayed"),
    ]


async def test_a_client_that_leaves_is_kept_as_far_as_it_came(
    upstream: RawUpstream, start_proxy: Any, kept: Kept
) -> None:
    events = ANTHROPIC.events("one ", "two ", "three")

    async def stay(request: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + events[0])
        await writer.drain()
        await request.gone.wait()

    upstream.script.append(stay)
    proxy = await start_proxy()
    body = ANTHROPIC.body()
    head = f"POST {ANTHROPIC.path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in ANTHROPIC.headers)
    async with send(proxy.url, head.encode() + b"\r\n" + body) as (reader, _):
        await reader.readuntil(b"message_start")
    ((_, *messages),) = await kept.after(1)
    assert messages[-1]["ended"] == "client_left"


async def test_a_request_that_may_bypass_is_not_kept(
    upstream: RawUpstream, start_proxy: Any, kept: Kept
) -> None:
    proxy = await start_proxy(allow_bypass=True)
    upstream.script.append(response(b"".join(ANTHROPIC.events("fine")), kind=STREAM))
    await ask(
        proxy.url, "POST", ANTHROPIC.path, *ANTHROPIC.headers, ("x-ttsr-bypass", "1"), body=ANTHROPIC.body()
    )
    await exchange(proxy.url, upstream, ANTHROPIC, "kept")
    ((_, *messages),) = await kept.after(1)
    assert "kept" in messages[-1]["body"]
