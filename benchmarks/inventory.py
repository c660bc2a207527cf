"""What thousands of rules cost: reading, compiling, looking for changes, and memory.

    python benchmarks/inventory.py [--rules 100,1000,5000]

Each count runs in a process of its own. Rules are of common shapes, one file each. Times are CPU times.
`look again` is what a request pays to notice that nothing has changed; memory is what the process has more
than before. The last line is what the rulebook costs the first request of a conversation.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from matcher import conditions

from ttsr_proxy.rules.discovery import discover
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.rules.prompt import RulePrompt
from ttsr_proxy.rules.providers import RuleDirectories
from ttsr_proxy.rules.watch import fingerprint_of
from ttsr_proxy.triggers.ruleset import RuleSet

LOOKS = 20
PROMPT = "You are an agent that writes code. " * 3_000
"""About 100 KB, as long as a client's own system prompt becomes."""


def measure(count: int, directory: Path) -> tuple[float, float, float, float]:
    """Milliseconds of CPU to read, to compile and to look again, and mebibytes."""
    for number, condition in enumerate(conditions(count, 1)):
        quoted = condition.replace("'", "''")
        text = f"---\ndescription: Rule {number}\ncondition: '{quoted}'\nscope: tool:write(*.py)\n---\nNo.\n"
        (directory / f"rule-{number}.md").write_text(text)
    places = RuleDirectories(directory, directory, mounted=(directory,), shipped=None)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    discovery = discover(places)
    read = time.process_time()
    ruleset = RuleSet(found.rule for found in discovery.found)
    compiled = time.process_time()
    fingerprint = fingerprint_of(places)
    started_looking = time.process_time()
    for _ in range(LOOKS):
        fingerprint.holds()
    looked = (time.process_time() - started_looking) / LOOKS
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    if len(ruleset) != count:
        raise RuntimeError(f"{count - len(ruleset)} rules were not accepted")
    return (read - started) * 1e3, (compiled - read) * 1e3, looked * 1e3, memory


def measure_prompt() -> float:
    """Milliseconds of CPU to make the blocks of 10 always-apply rules and 100 listed ones for `PROMPT`."""
    always = [Rule(f"always-{n}", content=f"Rule {n}. " * 50, always_apply=True) for n in range(10)]
    listed = [Rule(f"listed-{n}", description=f"How we do {n}.", globs=["*.py"]) for n in range(100)]
    prompt = RulePrompt(always, listed)
    started = time.process_time()
    for _ in range(LOOKS):
        prompt.blocks([PROMPT])
    return (time.process_time() - started) / LOOKS * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rules", default="100,1000,5000")
    options = parser.parse_args()
    print("| rules | read | compile | look again | memory |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for count in map(int, options.rules.split(",")):
        with (
            tempfile.TemporaryDirectory() as directory,
            multiprocessing.get_context("spawn").Pool(1) as pool,
        ):
            read, compiled, looked, memory = pool.apply(measure, (count, Path(directory)))
        cells = f"| {count:,} | {read:,.0f} ms | {compiled:,.0f} ms | {looked:.1f} ms | {memory:,.0f} MiB |"
        print(cells, flush=True)
    print(f"\nprompt blocks, 10 always-apply rules and 100 listed ones: {measure_prompt():.1f} ms")


if __name__ == "__main__":
    main()
