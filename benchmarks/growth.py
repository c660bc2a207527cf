"""How the proxy's cost grows: with the rules, the conversation, the length of an answer, the streams at once.

    python benchmarks/growth.py [--rounds N]

One table for each, with the CPU time of the proxy's process (Linux), which other programs disturb least, and
the time to the first event. Everything else stays at 30 rules, a first question, 2,000 events and one stream.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from proxy import Target, ask, body, conversation, proxy_process, upstream_process

RULES = (0, 10, 100, 300, 1_000)
TURNS = (0, 50, 200, 500, 1_000)
EVENTS = (2_000, 10_000, 50_000)
STREAMS = (1, 10, 100, 500)
USUAL_RULES = 30
USUAL_EVENTS = 2_000


@dataclass(frozen=True, slots=True)
class Point:
    """Medians: milliseconds to the first event, of CPU for a short request, microseconds for each event."""

    first: float
    cpu: float
    per_event: float


async def point(
    session: aiohttp.ClientSession,
    target: Target,
    rounds: int,
    *,
    turns: int = 0,
    events: int = USUAL_EVENTS,
    streams: int = 1,
) -> Point:
    first, cpu, per_event = [], [], []
    for number in range(rounds + 1):
        name = f"toolu_{turns}_{events}_{streams}_{number}_{time.time_ns()}"
        before = conversation(turns, name) if turns else []
        # The answer that the proxy gives first is the newest of the conversation.
        await ask(session, target.url, body([], name, 1))
        used = target.cpu()
        first.append((await ask(session, target.url, body(before, f"{name}_2", 1)))[0])
        cpu.append(target.cpu() - used)
        used = target.cpu()
        asked = [body([], f"{name}_3_{n}", events) for n in range(streams)]
        await asyncio.gather(*(ask(session, target.url, data) for data in asked))
        per_event.append((target.cpu() - used) / (events * streams))
    kept = slice(1, None)
    return Point(
        statistics.median(first[kept]) * 1e3,
        statistics.median(cpu[kept]) * 1e3,
        statistics.median(per_event[kept]) * 1e6,
    )


def show(what: str, points: dict[int, Point]) -> None:
    print(f"\n| {what} | first event, ms | CPU of a short request, ms | CPU per event, µs |")
    print("| ---: | ---: | ---: | ---: |")
    for value, at in points.items():
        print(f"| {value:,} | {at.first:.1f} | {at.cpu:.1f} | {at.per_event:.1f} |", flush=True)


async def run(targets: dict[int, Target], rounds: int) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        show("rules", {count: await point(session, targets[count], rounds) for count in RULES})
        usual = targets[USUAL_RULES]
        show("turns before", {n: await point(session, usual, rounds, turns=n) for n in TURNS})
        show("events of an answer", {n: await point(session, usual, rounds, events=n) for n in EVENTS})
        by_streams = {n: await point(session, usual, rounds, events=200, streams=n) for n in STREAMS}
        show("streams at once, of 200 events", by_streams)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="measured rounds (default: 3)")
    options = parser.parse_args()
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream = stack.enter_context(upstream_process(max(EVENTS)))
        targets = {
            count: stack.enter_context(proxy_process(root, upstream, count))
            for count in sorted({*RULES, USUAL_RULES})
        }
        print(f"{options.rounds} rounds, Python {sys.version.split()[0]}. Medians.")
        asyncio.run(run(targets, options.rounds))


if __name__ == "__main__":
    main()
