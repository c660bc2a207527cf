"""The interrupt log and the dashboard with many records: what pages, filters and `ttsr-proxy log` take.

    python benchmarks/log.py [--records N] [--rounds N]

Makes a store of so many records over 30 days, serves it, asks for each page in turn, round by round, and
runs the command line on it; prints Markdown tables of medians. A page's time is that of the whole answer at
the client; its CPU time is that of server and client together.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp

from ttsr_proxy.config import ProjectSettings, Settings
from ttsr_proxy.interrupts.sqlite import SqliteInterruptStore
from ttsr_proxy.web.app import create_app
from ttsr_proxy.web.server import listen, make_runner

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
from many_interrupts import many_interrupts

DAYS = 30.0
BATCH = 1000
COMMAND_ROUNDS = 3

PAGES = {
    "overview, a day": "/ttsr/",
    "overview, 30 days": "/ttsr/?within=30d",
    "the newest": "/ttsr/interrupts",
    "the middle": "/ttsr/interrupts?until={middle}",
    "one rule": "/ttsr/interrupts?rule=no-eval",
    "a rule and an outcome": "/ttsr/interrupts?rule=no-eval&outcome=failed",
    "an action and an outcome": "/ttsr/interrupts?action=suppressed&outcome=clean",
    "an action and an outcome that never meet": "/ttsr/interrupts?action=suppressed&outcome=failed",
    "a model": "/ttsr/interrupts?model=gpt-5.2-codex",
    "a model that is not there": "/ttsr/interrupts?model=other",
    "a client that is not there": "/ttsr/interrupts?client=other",
    "a file": "/ttsr/interrupts?path=report",
    "a file that is not there": "/ttsr/interrupts?path=nowhere",
    "a rule and a file that is not there": "/ttsr/interrupts?rule=no-eval&path=nowhere",
    "a conversation": "/ttsr/interrupts?conversation={conversation}",
    "the last hour": "/ttsr/interrupts?within=1h",
    "one record": "/ttsr/interrupts/{record}",
    "rules": "/ttsr/rules",
    "one rule's page": "/ttsr/rules/no-eval",
    "conversations": "/ttsr/conversations",
    "API, 50 records": "/ttsr/api/interrupts",
    "API, 1,000 records": "/ttsr/api/interrupts?limit=1000",
}

COMMANDS = {
    "log": (),
    "log --limit 1000": ("--limit", "1000"),
    "log --file nowhere": ("--file", "nowhere"),
    "log --totals": ("--totals",),
    "log show ID": ("show", "{record}"),
    "log --csv --all": ("--csv", "--all"),
}


async def fill(state: Path, count: int) -> dict[str, str]:
    """Make the store; the values that the pages' addresses need."""
    now = time.time()
    store = SqliteInterruptStore(state)
    batch = []
    record = None
    for record in many_interrupts(count, now, DAYS):
        batch.append(record)
        if len(batch) == BATCH:
            await store.add(batch)
            batch.clear()
    await store.add(batch)
    await store.close()
    assert record is not None
    return {
        "middle": str(int(now - DAYS * 43_200)),
        "conversation": record.conversation,
        "record": record.id,
    }


Times = dict[str, list[tuple[float, float]]]
"""Milliseconds and milliseconds of CPU by what was done, one pair a round."""


async def time_pages(settings: Settings, values: dict[str, str], rounds: int) -> Times:
    """Times of every page, after one round that counts for nothing."""
    runner = make_runner(create_app(settings), drain_seconds=1.0)
    await runner.setup()
    times: Times = {name: [] for name in PAGES}
    try:
        url = await listen(runner, "127.0.0.1", 0)
        async with aiohttp.ClientSession() as session:
            for number in range(rounds + 1):
                for name, path in PAGES.items():
                    started, busy = time.perf_counter(), time.process_time()
                    async with session.get(url + path.format(**values)) as answer:
                        await answer.read()
                        assert answer.status == 200, (name, answer.status)
                    if number:
                        times[name].append(since(started, time.process_time() - busy))
    finally:
        await runner.cleanup()
    return times


def time_commands(state: Path, values: dict[str, str]) -> Times:
    """Times of every command, from its start to its end."""
    times: Times = {name: [] for name in COMMANDS}
    for _ in range(COMMAND_ROUNDS):
        for name, arguments in COMMANDS.items():
            filled = [argument.format(**values) for argument in arguments]
            command = [sys.executable, "-m", "ttsr_proxy", "log", "--state", str(state), *filled]
            started, busy = time.perf_counter(), children()
            subprocess.run(
                command, cwd=state.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True
            )
            times[name].append(since(started, children() - busy))
    return times


def children() -> float:
    """Seconds of CPU of the processes that have ended."""
    spent = os.times()
    return spent.children_user + spent.children_system


def since(started: float, cpu: float) -> tuple[float, float]:
    return (time.perf_counter() - started) * 1000, cpu * 1000


def print_table(title: str, times: Times) -> None:
    print(f"| {title} | ms | CPU, ms |\n| --- | ---: | ---: |")
    for name, pairs in times.items():
        wall, cpu = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"| {name} | {wall:,.0f} | {cpu:,.0f} |")
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        state = place / "state.db"
        settings = Settings(state=state, projects=(ProjectSettings("default", place, place / "home"),))
        started = time.perf_counter()
        values = asyncio.run(fill(state, arguments.records))
        seconds = time.perf_counter() - started
        size = state.stat().st_size / (1 << 20)
        print(f"{arguments.records:,} records in {size:,.0f} MiB, added in {seconds:.0f} s\n")
        print_table("page", asyncio.run(time_pages(settings, values, arguments.rounds)))
        print_table("command", time_commands(state, values))


if __name__ == "__main__":
    main()
