"""What the stores cost: SQLite on this machine's disk against a Redis server on this machine.

    python benchmarks/stores.py [--rounds N] [--records N]

Both stores do the same in turn, round by round. Prints a Markdown table of medians: the time that the caller
waits, and the CPU time of this process with its threads. The network between a proxy and its server comes on
top for Redis: one way and back for each row, three for `turn 100`, two for `the newest 50`, and one for every
500 records for `the log's figures`.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tests" / "support"))

from many_interrupts import many_interrupts
from redis_server import running_redis

from ttsr_proxy.config import State
from ttsr_proxy.interrupts.place import interrupts_at
from ttsr_proxy.interrupts.store import InterruptFilter
from ttsr_proxy.redis import RedisUrl
from ttsr_proxy.sessions.place import conversations_at
from ttsr_proxy.sessions.record import GivenBlock, ResponseRecord, ShadowBlock

TURNS = 100
SAID = "The function reads the file, splits it into lines and returns them as a list of records. " * 10
Work = Callable[[], Awaitable[object]]


@dataclass
class Samples:
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def record(name: str, parent: str | None, turn: int, *, hidden: bool) -> ResponseRecord:
    """A response of ordinary size."""
    return ResponseRecord(
        id=name,
        parent=parent,
        tenant="tenant",
        project="default",
        conversation="c",
        created=time.time(),
        turn=turn,
        anchors=(f"call:{name}", f"text:{name}", f"place:{name}"),
        given=(GivenBlock("text", None, SAID), GivenBlock("tool_call", f"call:{name}", SAID)),
        produced=(ShadowBlock("assistant", "text", {"type": "text", "text": SAID}, 0),),
        hidden=hidden,
    )


async def works(state: State, records: int) -> dict[str, Work]:
    """What a proxy asks of the stores, by name, on a state that has been used."""
    conversations, log = conversations_at(state), interrupts_at(state)
    tenant = "tenant"
    for turn in range(TURNS):
        parent = f"r{turn - 1}" if turn else None
        await conversations.save(record(f"r{turn}", parent, turn, hidden=True))
    logged = list(many_interrupts(records, time.time(), 86_400.0))
    for start in range(0, records, 500):
        await log.add(logged[start : start + 500])
    newest = [f"call:r{TURNS - 1}", f"text:r{TURNS - 1}"]
    every = [f"{kind}:r{turn}" for turn in range(TURNS) for kind in ("call", "text")]
    names = (f"n{number}" for number in itertools.count())

    async def restored() -> None:
        await conversations.find(tenant, newest)
        await conversations.find(tenant, every)
        await conversations.ancestors(tenant, f"r{TURNS - 1}")

    added = (replace(logged[-1], id=f"new{number}") for number in itertools.count())
    return {
        "any request: is it a retry": lambda: conversations.take_unfinished(tenant, "key", 0.0),
        "a further turn, nothing hidden": lambda: conversations.find(tenant, newest),
        f"turn {TURNS} of a conversation with hidden parts": restored,
        "a response with hidden parts": lambda: conversations.save(record(next(names), None, 0, hidden=True)),
        "a response without": lambda: conversations.save(record(next(names), None, 0, hidden=False)),
        "a log entry": lambda: log.add([next(added)]),
        "the log's newest 50": lambda: log.page(InterruptFilter(), 50, None),
        f"the log's figures ({records:,} entries)": lambda: log.tally(InterruptFilter(), ("rule", "action")),
    }


async def measure(rounds: int, records: int) -> None:
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(dir=Path(__file__).parent))
        states: dict[str, State] = {"SQLite": Path(directory) / "state.db"}
        if shutil.which("redis-server") is None:
            print("Redis: left out, since redis-server is not installed\n")
        else:
            states["Redis"] = RedisUrl(stack.enter_context(running_redis()).url)
        stores = {name: await works(state, records) for name, state in states.items()}
        samples = {(store, work): Samples() for store, by_name in stores.items() for work in by_name}
        for _ in range(rounds):
            for store, by_name in stores.items():
                for name, work in by_name.items():
                    cpu, wall = time.process_time(), time.perf_counter()
                    await work()
                    found = samples[store, name]
                    found.wall.append(time.perf_counter() - wall)
                    found.cpu.append(time.process_time() - cpu)
    print("| what | " + " | ".join(f"{store}, ms | CPU, ms" for store in stores) + " |")
    print("| --- |" + " ---: |" * 2 * len(stores))
    for name in stores["SQLite"]:
        cells = [
            f"{statistics.median(values) * 1e3:.2f}"
            for store in stores
            for values in (samples[store, name].wall, samples[store, name].cpu)
        ]
        print(f"| {name} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--records", type=int, default=10_000, help="of the interrupt log [10000]")
    options = parser.parse_args()
    asyncio.run(measure(options.rounds, options.records))


if __name__ == "__main__":
    main()
