"""What the proxy adds to a stream: time to first event and time per event, against asking upstream directly.

    python benchmarks/proxy.py [--rounds N] [--events N] [--turns N]

Runs a scripted upstream and one proxy per rule count (0, 30, 300) as processes of their own, asks them and
the upstream in turn, round by round, so that the machine's moods hit all alike, and prints Markdown tables
of medians, with the CPU time of the proxy's process for the whole request or event (Linux). The text holds
no violation; every rule watches text, thinking and tool calls. The time to the first event is measured for a
first question and for a request that carries a conversation of many turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import multiprocessing.connection
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from aiohttp import web

RULE_COUNTS = (0, 30, 300)
DIRECT = "direct"
WORDS = "The function reads the file, splits it into lines and returns them as a list of records. "
HEADERS = {"content-type": "application/json", "x-api-key": "benchmark", "anthropic-version": "2023-06-01"}
START_TIMEOUT = 60.0
ON_UVLOOP = "import uvloop; uvloop.install(); from ttsr_proxy.cli.main import main; main()"
PACE = 0.002
"""Seconds between events that come one at a time."""
PACED_EVENTS = 50
HELD_TEXT = "Some more words of a long answer. " * 3
"""What a stream that is to stay open is made of."""
HELD_PACE = 0.1
"""Seconds between ten events of such a stream."""

CONDITIONS = (
    r"\bforbidden_call_{n}\(",
    r"import\s+legacy_module_{n}\b",
    r"(?i)as an? outdated_{n} model",
    r"TODO_{n}:\s+\w+",
    r"password_{n}\s*=\s*[\"'][^\"']+[\"']",
)


def event(name: str, data: dict[str, object]) -> bytes:
    """One server-sent event of the Messages API."""
    return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode()


def text_delta(text: str) -> bytes:
    return event("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": text}})


def stream_parts(events: int) -> tuple[bytes, list[bytes]]:
    """Opening and text deltas of a response."""
    usage = {"input_tokens": 10, "output_tokens": 1}
    message: dict[str, object] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5-5",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    block = {"index": 0, "content_block": {"type": "text", "text": ""}}
    opening = event("message_start", {"message": message}) + event("content_block_start", block)
    words = WORDS.split(" ")
    deltas = [text_delta(words[number % len(words)] + " ") for number in range(events)]
    return opening, deltas


def ending(call_id: str) -> bytes:
    """The end of a response whose last block is a call."""
    call = {"type": "tool_use", "id": call_id, "name": "Read", "input": {}}
    stop = {"delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": {"output_tokens": 9}}
    return (
        event("content_block_stop", {"index": 0})
        + event("content_block_start", {"index": 1, "content_block": call})
        + event("content_block_stop", {"index": 1})
        + event("message_delta", stop)
        + event("message_stop", {})
    )


def serve_upstream(events: int, pipe: multiprocessing.connection.Connection) -> None:
    """The scripted upstream's process: a request's `max_tokens` says how many events, its user the call."""
    opening, deltas = stream_parts(events)

    async def messages(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(opening)
        if body.get("held"):
            for _ in range(0, body["max_tokens"], 10):
                await response.write(text_delta(HELD_TEXT) * 10)
                await asyncio.sleep(HELD_PACE)
            await asyncio.Event().wait()
        for delta in deltas[: body["max_tokens"]]:
            if body.get("paced"):
                await asyncio.sleep(PACE)
                delta = text_delta(f"{time.perf_counter_ns()} ")
            await response.write(delta)
        await response.write(ending(body["metadata"]["user_id"]))
        await response.write_eof()
        return response

    async def main() -> None:
        app = web.Application(client_max_size=0)
        app.router.add_post("/v1/messages", messages)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        pipe.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(main())


@contextmanager
def upstream_process(events: int) -> Iterator[str]:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=serve_upstream, args=(events, there), daemon=True
    )
    process.start()
    try:
        if not here.poll(START_TIMEOUT):
            raise SystemExit("the scripted upstream did not start")
        yield f"http://127.0.0.1:{here.recv()}"
    finally:
        process.terminate()
        process.join()


def write_rules(directory: Path, count: int) -> None:
    directory.mkdir()
    for number in range(count):
        condition = json.dumps(CONDITIONS[number % len(CONDITIONS)].replace("{n}", str(number)))
        front = f"---\ncondition: {condition}\nscope: [text, thinking, tool]\n---\n"
        (directory / f"rule-{number:03d}.md").write_text(front + "Do it the other way.\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Target:
    url: str
    pid: int | None = None
    """The proxy's process; none for upstream itself."""

    def cpu(self) -> float:
        """Seconds of CPU that all its threads have used (Linux: /proc/PID/task/TID/schedstat); else 0."""
        if self.pid is None:
            return 0.0
        used = 0.0
        for task in Path(f"/proc/{self.pid}/task").glob("*/schedstat"):
            used += int(task.read_text().split()[0]) / 1e9
        return used


@contextmanager
def proxy_process(root: Path, upstream: str, count: int, *, uvloop: bool = False) -> Iterator[Target]:
    """A proxy with so many rules, started as its users start it, or on the event loop of uvloop."""
    base = root / f"proxy-{count}{'-uvloop' if uvloop else ''}"
    (base / "project" / ".git").mkdir(parents=True)
    (base / "home").mkdir()
    write_rules(base / "rules", count)
    program = ["-c", ON_UVLOOP] if uvloop else ["-m", "ttsr_proxy"]
    command = [sys.executable, *program, "serve", "--port", "0", "--upstream", upstream]
    command += [
        "--project",
        str(base / "project"),
        "--rules",
        str(base / "rules"),
        "--state",
        str(base / "s.db"),
    ]
    environment = {**os.environ, "HOME": str(base / "home"), "TTSR_BUILTIN_RULES": "false"}
    with (base / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://[\d.]+:\d+", line)
        if found is None:
            raise SystemExit(f"the proxy did not start: {line}{(base / 'log').read_text()}")
        yield Target(found.group(), process.pid)
    finally:
        process.terminate()
        process.wait(10)


@dataclass(slots=True)
class Sample:
    """One thing measured at one target, in seconds, once for each round or event."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    """Of the proxy's process."""


def conversation(turns: int, last_call: str) -> list[dict[str, object]]:
    """An agent at work: in each turn it says a few words and reads a file."""
    messages: list[dict[str, object]] = [{"role": "user", "content": "Find out why the import fails."}]
    for turn in range(turns):
        call_id = last_call if turn == turns - 1 else f"toolu_{turn}"
        path = f"src/module_{turn}.py"
        call = {"type": "tool_use", "id": call_id, "name": "Read", "input": {"file_path": path}}
        result = {"type": "tool_result", "tool_use_id": call_id, "content": WORDS * 10}
        messages.append({"role": "assistant", "content": [{"type": "text", "text": WORDS}, call]})
        messages.append({"role": "user", "content": [result]})
    return messages


def body(
    messages: list[dict[str, object]], call_id: str, events: int, *, paced: bool = False, held: bool = False
) -> bytes:
    """A request whose answer has so many events and ends with this call; if `held`, it does not end."""
    wanted = {"model": "claude-opus-5-5", "max_tokens": events, "stream": True}
    question = {"role": "user", "content": f"Go on after {call_id}."}
    document = {
        **wanted,
        "paced": paced,
        "held": held,
        "metadata": {"user_id": call_id},
        "messages": [*messages, question],
    }
    return json.dumps(document).encode()


async def ask(session: aiohttp.ClientSession, url: str, data: bytes) -> tuple[float, float]:
    """Seconds to the first event and to the end."""
    started = time.perf_counter()
    async with session.post(f"{url}/v1/messages", data=data, headers=HEADERS) as response:
        response.raise_for_status()
        first = await response.content.readany()
        at_first = time.perf_counter() - started
        rest = b"".join([chunk async for chunk in response.content.iter_any()])
    if not (first + rest).endswith(event("message_stop", {})):
        raise SystemExit(f"{url} did not answer completely")
    return at_first, time.perf_counter() - started


async def delays(session: aiohttp.ClientSession, url: str, data: bytes) -> list[float]:
    """Seconds that each event of a paced stream was on its way; its text says when it was written."""
    taken: list[float] = []
    async with session.post(f"{url}/v1/messages", data=data, headers=HEADERS) as response:
        async for piece in response.content.iter_any():
            now = time.perf_counter_ns()
            taken += [(now - int(sent)) / 1e9 for sent in re.findall(rb'"text": "(\d+) "', piece)]
    return taken


FIRST, LONG, PACED, EVENT = "first", "long", "paced", "event"

Samples = dict[str, dict[str, Sample]]


async def measure(targets: dict[str, Target], rounds: int, events: int, turns: int) -> Samples:
    """By what is measured and target: each once per round, in turn; the first round warms up."""
    samples: Samples = {what: {name: Sample() for name in targets} for what in (FIRST, LONG, PACED, EVENT)}
    async with aiohttp.ClientSession() as session:
        for number in range(rounds + 1):
            for name, target in targets.items():
                call_id = f"toolu_of_{name}_{number}"
                # The answer that the proxy gives first is the newest of the long conversation.
                before = conversation(turns, call_id)
                asked = {
                    FIRST: body([], call_id, 1),
                    LONG: body(before, f"{call_id}_2", 1),
                    PACED: body([], f"{call_id}_3", PACED_EVENTS, paced=True),
                    EVENT: body([], f"{call_id}_4", events),
                }
                for what, data in asked.items():
                    used = target.cpu()
                    if what == PACED:
                        wall, shared = await delays(session, target.url, data), PACED_EVENTS
                    else:
                        first, whole = await ask(session, target.url, data)
                        wall, shared = ([whole / events], events) if what == EVENT else ([first], 1)
                    if number:
                        samples[what][name].wall += wall
                        samples[what][name].cpu.append((target.cpu() - used) / shared)
    return samples


def table(title: str, unit: str, scale: float, columns: dict[str, Sample]) -> str:
    """Medians against asking directly."""
    lines = [
        f"| {title} | {unit} | x direct | added, {unit} | CPU, {unit} |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    direct = statistics.median(columns[DIRECT].wall) * scale
    for name, sample in columns.items():
        median, cpu = statistics.median(sample.wall) * scale, statistics.median(sample.cpu) * scale
        lines.append(f"| {name} | {median:.2f} | {median / direct:.2f} | {median - direct:.2f} | {cpu:.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=30, help="measured rounds (default: 30)")
    parser.add_argument("--events", type=int, default=2000, help="events per stream (default: 2000)")
    parser.add_argument("--turns", type=int, default=200, help="of the long conversation (default: 200)")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream = stack.enter_context(upstream_process(arguments.events))
        targets = {DIRECT: Target(upstream)}
        for count in RULE_COUNTS:
            targets[f"{count} rules"] = stack.enter_context(proxy_process(root, upstream, count))
        work = measure(targets, arguments.rounds, arguments.events, arguments.turns)
        samples = asyncio.run(work)
    print(
        f"{arguments.rounds} interleaved rounds, {arguments.events} events per stream, "
        f"Python {sys.version.split()[0]}, {os.cpu_count()} cores. Medians.\n"
    )
    print(table("first event of a first question", "ms", 1e3, samples[FIRST]), end="\n\n")
    print(table(f"first event after {arguments.turns} turns", "ms", 1e3, samples[LONG]), end="\n\n")
    print(table("delay of an event that comes alone", "ms", 1e3, samples[PACED]), end="\n\n")
    print(table("per event, flat out", "µs", 1e6, samples[EVENT]))


if __name__ == "__main__":
    main()
