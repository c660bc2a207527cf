"""Two replicas on one Redis server: is a reminder ever lost, or placed twice?

    python benchmarks/replicas.py [--turns N] [--seed N]

Starts a Redis server and two proxies as processes of their own, and lets conversations of 25 turns, 20 at
once, talk to them: each turn to either replica, now and then the same conversation to both at once. Half of
the answers of the scripted model break a rule. The model counts the reminders in every request, and signs
its thinking over the exact history as the real API does, so that it refuses a history in which anything is
missing. Prints a Markdown table; ends with status 1 if anything was lost, doubled or refused.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import re
import shutil
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import AsyncExitStack
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tests" / "support"))

from coding_agent import Agent
from interleaved_turns import CountingModel, converse, write_rules
from proxy_under_test import Workspace
from redis_server import running_redis
from strict_anthropic import strict_upstream

TURNS = 25
"""Of one conversation."""

AT_ONCE = 20
"""Conversations."""


async def start(workspace: Workspace, upstream: str, redis: str) -> tuple[Process, str]:
    """A proxy as a process, and its URL."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ttsr_proxy", "serve", "--port", "0", "--upstream", upstream),
        *("--project", str(workspace.project), "--rules", str(workspace.rules)),
        env={
            "HOME": str(workspace.home),
            "PATH": os.environ["PATH"],
            "TTSR_BUILTIN_RULES": "false",
            "TTSR_STATE": redis,
            "TTSR_LIBRARY_ROOT": str(workspace.home / "library"),
        },
        stdout=PIPE,
        stderr=DEVNULL,
    )
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    found = re.search(r"http://\S+:\d+", line)
    assert found is not None, line
    return process, found[0]


async def measure(turns: int, seed: int) -> bool:
    """Run and print; whether all was well."""
    model = CountingModel()
    rng = random.Random(seed)
    requests = refused = 0
    with tempfile.TemporaryDirectory() as directory, running_redis() as server:
        workspace = Workspace(Path(directory))
        write_rules(workspace)
        async with AsyncExitStack() as stack:
            upstream = await stack.enter_async_context(strict_upstream())
            upstream.otherwise(model)
            started = [await start(workspace, upstream.url, server.url) for _ in range(2)]
            urls = [url for _, url in started]
            began = time.perf_counter()
            try:
                for _ in range(max(1, turns // (TURNS * AT_ONCE))):
                    async with AsyncExitStack() as agents:
                        thinking = {"type": "adaptive"}
                        talking = [
                            await agents.enter_async_context(Agent(urls[0], thinking=thinking))
                            for _ in range(AT_ONCE)
                        ]
                        said = await asyncio.gather(*(converse(agent, urls, TURNS, rng) for agent in talking))
                    requests += sum(said)
                    refused += len(upstream.refusals)
                    upstream.received.clear()
            finally:
                for process, _ in started:
                    process.terminate()
                    await process.wait()
            seconds = time.perf_counter() - began
    kinds = model.asked
    print("| turns | requests | interrupts | reminders without interrupt | lost or doubled | refused | s |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    print(
        f"| {max(1, turns // (TURNS * AT_ONCE)) * TURNS * AT_ONCE:,} | {requests:,} | {kinds['retry']:,} "
        f"| {kinds['soft']:,} | {len(model.faults)} | {refused} | {seconds:.0f} |"
    )
    for fault in model.faults[:20]:
        print(f"\n{fault}")
    return not model.faults and not refused


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=500, help="at least 500 [500]")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    # The upstream's server tells of every call that an interrupt aborts.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    if shutil.which("redis-server") is None:
        print("replicas: left out, since redis-server is not installed")
        return 0
    return 0 if asyncio.run(measure(options.turns, options.seed)) else 1


if __name__ == "__main__":
    sys.exit(main())
