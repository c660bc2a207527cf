"""Cost of matching per delta, against searching the whole buffer at each delta, on the same stream.

    python benchmarks/matcher.py [--rules 27,100,300] [--deltas 2000,20000] [--source tool|text]
                                 [--reference PACKAGES [--bun PATH]]

The stream is Python source of the standard library in deltas of 1 to 8 characters; the rules are generated
from common shapes of conditions and do not match it, which is the normal case. Microseconds per delta; the
first and last tenth show whether cost grows with the buffer. The naive column is sampled, since it would take
minutes. With `--source text` every rule interrupts, and `safe_until` is asked after every delta.

`--reference` names the folder where `@oh-my-pi/pi-coding-agent` is installed, whose own matcher then gets the
same conditions and deltas in Bun, for at most 20 seconds a row.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from ttsr_proxy import Rule, RuleSet, StreamContext
from ttsr_proxy.triggers.jsregex import compile_condition

WORDS = (
    *("fetch", "render", "commit", "session", "token", "widget", "invoice"),
    *("ledger", "branch", "socket", "shader", "quota", "parse", "flush"),
)
SHAPES = (
    r"{a}_{b}\(",
    r"\b(?:{a}|{b}|{c}){n}\s*\(",
    r'"{a}/{b}-{n}"',
    r"{a}{n}\.{b}\.{c}",
    r"(?i)todo {a} {n}",
    r"(?m)^\s*{a}{n} = {b}$",
    r"(?<!\w){a}{n}(?!\s*=)",
    r"except {a}{n}:\s*\n\s*pass",
    r"import .*\b{a}{n}\b",
    r"{a}{n}\{{[^}}]*{b}",
    r"(\w+){n} == \1\b",
    r"<{a}{n}>.*</{a}>",
)
SAMPLES = 40


def conditions(count: int, seed: int) -> list[str]:
    """That many conditions, each of one of the shapes."""
    rnd = random.Random(seed)
    made: list[str] = []
    for number in range(count):
        a, b, c = rnd.sample(WORDS, 3)
        made.append(SHAPES[number % len(SHAPES)].format(a=a, b=b, c=c, n=1_000 + number))
    return made


def stream(count: int, seed: int) -> list[str]:
    """That many deltas of source text."""
    rnd = random.Random(seed)
    folder = Path(statistics.__file__).parent
    text = "".join(
        path.read_text(encoding="utf-8", errors="replace")
        for path in sorted(folder.glob("[c-t]*.py"))[: 8 + count // 2_000]
    )
    deltas: list[str] = []
    at = 0
    while len(deltas) < count:
        size = rnd.randint(1, 8)
        deltas.append(text[at % len(text) : at % len(text) + size] or "\n")
        at += size
    return deltas


def incremental(rules: int, deltas: list[str], source: str) -> list[float]:
    """Microseconds of each delta."""
    ruleset = RuleSet(
        [
            Rule(f"r{n}", condition=[text], scope=["text", "tool"])
            for n, text in enumerate(conditions(rules, 1))
        ]
    )
    text = source == "text"
    context = StreamContext("text") if text else StreamContext("tool", "write", ("src/a.py",))
    timings: list[float] = []
    for _ in range(2):  # The first stream of a process also learns; the second is what a proxy sees.
        matcher = ruleset.stream(context, holding=None if text else ())
        timings = []
        for delta in deltas:
            start = time.perf_counter()
            matcher.feed(delta)
            if text:
                _ = matcher.safe_until
            timings.append((time.perf_counter() - start) * 1e6)
        matcher.finish()
    return timings


def naive(rules: int, deltas: list[str]) -> list[float]:
    """Microseconds of some deltas, evenly spread, when every condition searches the whole buffer."""
    patterns = [compile_condition(text).final for text in conditions(rules, 1)]
    timings = []
    for sample in range(SAMPLES):
        buffer = "".join(deltas[: (sample + 1) * len(deltas) // SAMPLES])
        start = time.perf_counter()
        for pattern in patterns:
            pattern.search(buffer)
        timings.append((time.perf_counter() - start) * 1e6)
    return timings


def reference(rules: int, deltas: list[str], options: argparse.Namespace) -> str:
    """The reference implementation's columns of a row."""
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder) / "input.json"
        given.write_text(json.dumps({"conditions": conditions(rules, 1), "deltas": deltas, "seconds": 20}))
        program = Path(__file__).with_name("reference_matcher.ts")
        command = [options.bun, str(program), options.reference, str(given)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = json.loads(said)
    if found["accepted"] != rules or found["matched"]:
        raise SystemExit(
            f"the reference took {found['accepted']} of {rules} rules, {found['matched']} matched"
        )
    cut = "" if found["done"] == len(deltas) else f" (of the first {found['done']:,})"
    return f"{found['mean']:,.1f}{cut} | {found['first']:,.1f} | {found['last']:,.1f}"


def tenths(timings: list[float]) -> tuple[float, float, float, float]:
    """Mean, median, and the means of the first and last tenth."""
    part = max(len(timings) // 10, 1)
    mean = statistics.fmean
    return mean(timings), statistics.median(timings), mean(timings[:part]), mean(timings[-part:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rules", default="0,27,100,300")
    parser.add_argument("--deltas", default="2000,20000")
    parser.add_argument("--source", choices=("tool", "text"), default="tool")
    parser.add_argument("--reference", help="where the reference implementation is installed")
    parser.add_argument("--bun", default="bun", help="the program that runs it (default: bun)")
    options = parser.parse_args()
    print(f"Deltas of {options.source}; microseconds per delta, mean unless said otherwise.\n")
    more = " reference | first tenth | last tenth |" if options.reference else ""
    print(f"| rules | deltas | us | median | first tenth | last tenth | whole buffer | ratio |{more}")
    print("|" + " ---: |" * (11 if more else 8))
    for count in map(int, options.deltas.split(",")):
        deltas = stream(count, 7)
        for rules in map(int, options.rules.split(",")):
            mean, median, first, last = tenths(incremental(rules, deltas, options.source))
            whole = statistics.fmean(naive(rules, deltas))
            print(
                f"| {rules} | {count:,} | {mean:.2f} | {median:.2f} | {first:.2f} | {last:.2f} "
                f"| {whole:,.0f} | {f'x{whole / mean:,.0f}' if rules else '-'} |"
                + (f" {reference(rules, deltas, options)} |" if options.reference else ""),
                flush=True,
            )


if __name__ == "__main__":
    main()
