"""Cost of reading tool calls and edits in prose while they stream, per delta and as a whole.

    python benchmarks/toolcalls.py [--size 1000000] [--delta 4]

Each row is one call whose added text is source of the standard library. The first and last tenth show whether
the cost of a delta grows with what came before; `end` is what is left to do when the last delta has come (a
shell command or a script is parsed then). Best of three rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ttsr_proxy.toolcalls import FamilyTable, ProseEditReader, ToolCallReader

FAMILIES = FamilyTable.default()
ROUNDS = 3


class Case(NamedTuple):
    name: str
    reader: Callable[[], ToolCallReader | ProseEditReader]
    text: str


def source(size: int) -> str:
    """That many characters of source text."""
    folder = Path(statistics.__file__).parent
    text = "".join(path.read_text(encoding="utf-8", errors="replace") for path in sorted(folder.glob("*.py")))
    return (text * (size // len(text) + 1))[:size]


def cases(size: int) -> list[Case]:
    """One call for each way in which text is read."""
    text = source(size)
    added = "".join(f"+{line}\n" for line in text.splitlines())
    patch = f"*** Begin Patch\n*** Add File: a.py\n{added}*** End Patch\n"
    block = f"a.py\n```\n<<<<<<< SEARCH\nold\n=======\n{text}\n>>>>>>> REPLACE\n```\n"
    command = f"cat > a.py <<'EOF'\n{text[:200_000]}\nEOF\n"
    script = f"await tools.apply_patch({json.dumps(patch[:150_000])});"

    def call(tool: str, freeform: bool = False) -> Callable[[], ToolCallReader]:
        return lambda: ToolCallReader(tool, FAMILIES, project_root="/w", freeform=freeform)

    return [
        Case("write", call("Write"), json.dumps({"file_path": "/w/a.py", "content": text})),
        Case("write, path last", call("Write"), json.dumps({"content": text, "file_path": "/w/a.py"})),
        Case("unknown tool", call("deploy"), json.dumps({"path": "a.py", "text": text})),
        Case("patch, freeform", call("apply_patch", freeform=True), patch),
        Case("SEARCH/REPLACE argument", call("apply_diff"), json.dumps({"path": "a.py", "diff": block})),
        Case("shell, 200 KB heredoc", call("bash"), json.dumps({"command": command})),
        Case("exec, 150 KB patch", call("exec", freeform=True), script),
        Case("SEARCH/REPLACE in prose", lambda: ProseEditReader({"search-replace"}, FAMILIES), block),
    ]


def measure(case: Case, delta: int) -> tuple[float, float, float, float]:
    """Microseconds per delta: all, first tenth, last tenth; milliseconds at the end."""
    pieces = [case.text[at : at + delta] for at in range(0, len(case.text), delta)]
    tenth = len(pieces) // 10
    reader = case.reader()
    marks = []
    for part in (pieces[:tenth], pieces[tenth:-tenth], pieces[-tenth:-1]):
        began = time.perf_counter()
        for piece in part:
            reader.feed(piece)
        marks.append(time.perf_counter() - began)
    began = time.perf_counter()
    reader.feed(pieces[-1])
    reader.finish()
    end = time.perf_counter() - began
    total = (sum(marks) + end) / len(pieces)
    return total * 1e6, marks[0] / tenth * 1e6, marks[2] / max(1, tenth - 1) * 1e6, end * 1e3


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--size", type=int, default=1_000_000, help="characters of added text")
    options.add_argument("--delta", type=int, default=4, help="characters of a delta")
    chosen = options.parse_args()
    print(f"{'call':<26}{'characters':>12}{'us/delta':>10}{'first':>8}{'last':>8}{'end ms':>9}")
    for case in cases(chosen.size):
        best = min(measure(case, chosen.delta) for _ in range(ROUNDS))
        print(
            f"{case.name:<26}{len(case.text):>12,}{best[0]:>10.2f}{best[1]:>8.2f}{best[2]:>8.2f}{best[3]:>9.1f}"
        )


if __name__ == "__main__":
    main()
