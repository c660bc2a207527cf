"""How fast `ttsr-proxy rules scan` reads a tree with the shipped rules.

    python benchmarks/scan.py [DIR] [--jobs 1,2]

DIR is the standard library of this Python by default. Each row is one run of the command.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def scan(directory: Path, jobs: int) -> tuple[int, int, int, float]:
    """Files, lines, matches and seconds of one run."""
    command = [sys.executable, "-m", "ttsr_proxy", "rules", "scan", "--project", str(directory)]
    command += ["--jobs", str(jobs), "--json", "--fail-on", "nothing"]
    command += [str(path) for path in sorted(directory.iterdir()) if path.name != "site-packages"]
    with tempfile.TemporaryDirectory() as home:
        started = time.perf_counter()
        done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "HOME": home})
        seconds = time.perf_counter() - started
    told = json.loads(done.stdout)
    return told["files"], told["lines"], len(told["matches"]), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", nargs="?", type=Path, default=Path(json.__file__).parent.parent)
    parser.add_argument("--jobs", default="1,2")
    options = parser.parse_args()
    print("| processes | files | lines | matches | seconds | CPU seconds | lines per CPU second |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for jobs in map(int, options.jobs.split(",")):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        files, lines, matches, seconds = scan(options.directory, jobs)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(
            f"| {jobs} | {files:,} | {lines:,} | {matches:,} | {seconds:.1f} | {cpu:.1f}"
            f" | {lines / cpu:,.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
