"""Memory of the proxy's process: idle, for each open stream, and over many requests.

    python benchmarks/memory.py [--requests N] [--streams N] [--rules N]

Proportional memory (PSS of /proc/PID/smaps_rollup, Linux) of the process that serves, without the one that
searches ast patterns. Open streams are held by upstream in the middle of an answer of 100 kB of text.
The slope is a line through the memory after the first tenth of many requests, each with a fresh conversation.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import aiohttp
from proxy import HEADERS, HELD_TEXT, Target, ask, body, proxy_process, text_delta, upstream_process

HELD_EVENTS = 1_000
PARALLEL = 8


def memory(target: Target) -> float:
    """KiB."""
    found = re.search(r"^Pss: +(\d+)", Path(f"/proc/{target.pid}/smaps_rollup").read_text(), re.M)
    assert found is not None
    return float(found[1])


async def held(target: Target, session: aiohttp.ClientSession, call_id: str) -> aiohttp.ClientResponse:
    """An answer of which all has come but its end."""
    data = body([], call_id, HELD_EVENTS, held=True)
    answer = await session.post(f"{target.url}/v1/messages", data=data, headers=HEADERS)
    left = HELD_EVENTS * len(text_delta(HELD_TEXT))
    while left > 0:
        left -= len(await answer.content.readany())
    return answer


async def open_streams(target: Target, session: aiohttp.ClientSession, count: int) -> float:
    """KiB that each of so many open streams takes."""
    before = memory(target)
    answers = await asyncio.gather(*(held(target, session, f"toolu_open_{n}") for n in range(count)))
    during = memory(target)
    for answer in answers:
        answer.close()
    return (during - before) / count


async def many(target: Target, session: aiohttp.ClientSession, requests: int) -> list[tuple[int, float]]:
    """Memory after each of fifty parts of so many requests."""
    done: list[tuple[int, float]] = []
    part = max(requests // 50, PARALLEL)
    for start in range(0, requests, part):
        for at in range(start, start + part, PARALLEL):
            await asyncio.gather(
                *(ask(session, target.url, body([], f"toolu_{at + n}", 5)) for n in range(PARALLEL))
            )
        done.append((start + part, memory(target)))
    return done


async def run(options: argparse.Namespace, target: Target) -> None:
    await asyncio.sleep(1)
    idle = memory(target)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await ask(session, target.url, body([], "toolu_first", 5))
        per_stream = await open_streams(target, session, options.streams)
        after = await many(target, session, options.requests)
    settled = after[len(after) // 10 :]
    slope = statistics.linear_regression(*zip(*settled, strict=True)).slope if len(settled) > 1 else 0.0
    print(f"{options.rules} rules, Python {sys.version.split()[0]}.\n")
    print("| idle, MiB | an open stream, KiB | after a tenth, MiB | at the end, MiB | slope, bytes/request |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    figures = (idle / 1024, per_stream, settled[0][1] / 1024, settled[-1][1] / 1024, slope * 1024)
    print("| " + " | ".join(f"{figure:,.1f}" for figure in figures) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=2_000, help="(default: 2000)")
    parser.add_argument("--streams", type=int, default=100, help="open at once (default: 100)")
    parser.add_argument("--rules", type=int, default=30, help="(default: 30)")
    options = parser.parse_args()
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream = stack.enter_context(upstream_process(HELD_EVENTS))
        target = stack.enter_context(proxy_process(root, upstream, options.rules))
        asyncio.run(run(options, target))


if __name__ == "__main__":
    main()
