"""Thousands of requests with faults on both sides, and what the proxy holds before, within and after.

    python benchmarks/soak.py [--requests N] [--clients N] [--seed N]

A scripted upstream answers in all three protocols: well, with violations, with resets within events, stalls,
error statuses and error events, answers of other types, one byte at a time, or with an event of a megabyte.
Clients read to the end, slowly, or leave anywhere, and go on with their conversations; rule files are
changed, broken and removed meanwhile. The proxy is a process of its own. Printed are its resident memory,
descriptors and tasks whenever nothing is asked, and what the clients saw. The command fails if the forbidden
word reached a client, or if descriptors or tasks have become more.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import multiprocessing
import multiprocessing.connection
import os
import random
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from proxy_under_test import Workspace, listening
from raw_http import RawRequest, ask, raw_upstream, response, send
from raw_http.dialects import DIALECTS, Dialect
from strict_anthropic import text, tool

from ttsr_proxy.config import Settings
from ttsr_proxy.web.app import create_app
from ttsr_proxy.web.server import make_runner

BAD = "BADWORD"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
SAMPLES = 4
PATIENCE = 3.0
"""Seconds after which a client leaves."""


# The proxy's process.


@dataclass(frozen=True, slots=True)
class Held:
    """What the proxy's process holds."""

    mebibytes: float
    descriptors: int
    tasks: int


def held() -> Held:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    size = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return Held(size, len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks()))


def serve(settings: Settings, pipe: multiprocessing.connection.Connection) -> None:
    """Serve the workspace; answer each message on the pipe with what is held."""

    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Where the program logs.

    async def main() -> None:
        runner = make_runner(create_app(settings), drain_seconds=1.0)
        ended = asyncio.Event()

        def answer() -> None:
            if pipe.recv() == "end":
                ended.set()
            else:
                pipe.send(held())

        async with listening(runner) as url:
            asyncio.get_running_loop().add_reader(pipe.fileno(), answer)
            pipe.send(url)
            await ended.wait()

    asyncio.run(main())


@contextmanager
def proxy_process(settings: Settings) -> Iterator[tuple[str, multiprocessing.connection.Connection]]:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(settings, there))
    process.start()
    try:
        if not here.poll(60):
            raise SystemExit("the proxy did not start")
        yield here.recv(), here
        here.send("end")
        process.join(30)
    finally:
        process.kill()


# Upstream.


class Weather(deque[Any]):
    """A script without end: each request gets its answer by chance."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance
        self.given: Counter[str] = Counter()

    def __bool__(self) -> bool:
        return True

    def popleft(self) -> Any:
        return self._play

    async def _play(self, request: RawRequest, writer: asyncio.StreamWriter) -> None:
        dialect = next(one for one in DIALECTS.values() if one.path == request.target)
        chance = self._chance
        kinds = [
            "well",
            "violates",
            "violates",
            "resets",
            "stalls",
            "status",
            "error",
            "other",
            "bytes",
            "huge",
        ]
        kind = chance.choice(kinds)
        self.given[kind] += 1
        said = ["All is well. ", "Go on. ", "Done."]
        if kind == "violates":
            said.insert(chance.randrange(3), f"a {BAD} here. ")
        steps = [text("".join(said))]
        if chance.random() < 0.4:
            content = f"x = '{BAD}'" if kind == "violates" else "x = 1"
            steps.append(tool("Write", {"file_path": "a.py", "content": content}))
        if not json.loads(request.body).get("stream"):
            body = dialect.message("".join(said))
            writer.write(response(body[: len(body) // 2] if kind == "resets" else body))
            return
        events = dialect.answer(*steps, chunk=chance.choice([3, 5, 40]))
        data = b"".join(events)
        match kind:
            case "resets":
                writer.write(HEAD + data[: chance.randrange(len(data))])
                await writer.drain()
                writer.transport.abort()
            case "stalls":
                writer.write(HEAD + b"".join(events[: chance.randrange(len(events))]))
                await request.gone.wait()
            case "status":
                writer.write(
                    response(b'{"error":{"message":"no"}}', status=chance.choice([400, 429, 500, 529]))
                )
            case "error":
                writer.write(HEAD + b"".join(events[: chance.randrange(1, len(events))]) + dialect.error)
            case "other":
                writer.write(response(b"<html>not today</html>", kind="text/html"))
            case "bytes":
                writer.write(HEAD)
                for at in range(len(data)):
                    writer.write(data[at : at + 1])
                    if at % 64 == 0:
                        await asyncio.sleep(0)
            case "huge":
                writer.write(HEAD + events[0] + b": " + b"x" * 2**20 + b"\n\n" + b"".join(events[1:]))
            case _:
                writer.write(HEAD + data)


# Clients.


@dataclass(slots=True)
class Soak:
    """One run and what came of it."""

    url: str
    chance: random.Random
    left: int
    saw: Counter[str] = field(default_factory=Counter)

    async def client(self, number: int) -> None:
        """Conversations one after the other, until all requests are made."""
        while self.left > 0:
            dialect = self.chance.choice(list(DIALECTS.values()))
            first, turns = f"hi {number} {self.left}", []
            for _ in range(self.chance.randrange(1, 6)):
                self.left -= 1
                said = await self.turn(dialect, dialect.turns(*turns, first=first))
                if not said:
                    break
                turns += [("assistant", said), ("user", "go on")]

    async def turn(self, dialect: Dialect, body: bytes) -> str:
        """One request, read as this client happens to read: the text that came."""
        how = self.chance.choice(["whole", "whole", "whole", "slow", "leaves", "not streamed"])
        if how == "not streamed":
            body = json.dumps({**json.loads(body), "stream": False}).encode()
        lines = [
            f"POST {dialect.path} HTTP/1.1",
            "Host: x",
            f"Content-Length: {len(body)}",
            "Connection: close",
        ]
        lines += [f"{name}: {value}" for name, value in dialect.headers]
        request = "\r\n".join([*lines, "", ""]).encode() + body
        enough = self.chance.randrange(4_000) if how == "leaves" else 1 << 30
        got = b""
        try:
            async with asyncio.timeout(PATIENCE), send(self.url, request) as (reader, _):
                while len(got) < enough:
                    piece = await reader.read(512 if how == "slow" else 65536)
                    if not piece:
                        break
                    got += piece
                    if how == "slow" and len(got) < 40_000:
                        await asyncio.sleep(0.001)
        except TimeoutError:
            how = "gave up"
        except ConnectionError:
            how = "broken"
        self.saw[how] += 1
        if BAD.encode() in got:
            self.saw["FORBIDDEN"] += 1
            print(dialect.name, how, got[-2_000:], file=sys.stderr)
        return dialect.said(got.decode(errors="ignore").encode()) if how != "not streamed" else ""


async def edit_rules(workspace: Workspace, chance: random.Random) -> None:
    """Rules come, change, break and go; one stays."""
    while True:
        await asyncio.sleep(1)
        path = workspace.rule(
            f"r{chance.randrange(5)}", chance.choice(["never said", "Go on", "("]), repeatMode="always"
        )
        match chance.randrange(3):
            case 0:
                path.unlink()
            case 1:
                path.write_bytes(b"---\ncondition: [\xff\n")


async def run(options: argparse.Namespace, root: Path) -> int:
    workspace = Workspace(root)
    workspace.rule("no-bad-word", BAD, scope=["text", "tool"], repeatMode="always", onExhausted="block")
    chance = random.Random(options.seed)
    async with raw_upstream() as upstream:
        weather = Weather(chance)
        upstream.script = weather
        with proxy_process(workspace.settings(upstream.url)) as (url, pipe):
            samples, saw, begun = [], Counter[str](), time.monotonic()
            editing = asyncio.create_task(edit_rules(workspace, chance))
            # What starts with the first requests is there in the first sample.
            for requests in (options.requests // 10, *[options.requests // (SAMPLES - 1)] * (SAMPLES - 1)):
                soak = Soak(url, chance, requests)
                await asyncio.gather(*(soak.client(number) for number in range(options.clients)))
                saw += soak.saw
                samples.append(await idle(url, pipe))
                upstream.received.clear()
            editing.cancel()
            ready = await ask(url, "GET", "/readyz")
    seconds = time.monotonic() - begun
    print(f"{saw.total():,} requests, {weather.given.total():,} upstream calls, {seconds:.0f} s\n")
    print("| | resident memory | descriptors | tasks |\n| --- | --- | --- | --- |")
    for name, one in zip(("after a tenth", "a third further", "two thirds", "end"), samples, strict=True):
        print(f"| {name} | {one.mebibytes:.1f} MiB | {one.descriptors} | {one.tasks} |")
    print("\nclients:", ", ".join(f"{how} {count:,}" for how, count in saw.most_common()))
    print("upstream:", ", ".join(f"{how} {count:,}" for how, count in weather.given.most_common()))
    print("ready:", ready.body.decode())
    grown = samples[-1].descriptors > samples[0].descriptors + 4 or samples[-1].tasks > samples[0].tasks
    return 1 if saw["FORBIDDEN"] or grown or ready.status != 200 else 0


async def idle(url: str, pipe: multiprocessing.connection.Connection) -> Held:
    """What is held once the last exchanges are over."""
    await asyncio.sleep(3)
    await ask(url, "GET", "/healthz")
    pipe.send("")
    found: Held = await asyncio.to_thread(pipe.recv)
    return found


def main() -> None:
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=5_000)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    with tempfile.TemporaryDirectory() as root:
        raise SystemExit(asyncio.run(run(parser.parse_args(), Path(root))))


if __name__ == "__main__":
    main()
