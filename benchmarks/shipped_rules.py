"""How often the shipped rules match code that nobody asked a model to write.

    python benchmarks/shipped_rules.py DIR [DIR ...] [--write] [--show RULE] [--jobs 2]

Each DIR is the source of one program or library; nothing in it is run. Every file is judged as if a write
tool had written it, shell scripts also as commands, and documentation (*.md, *.rst, *.txt) also as what a
model says. The figures are matches per 100,000 lines of those files that a rule's scope reaches. `--write`
puts the table into `docs/shipped-rules.md`, `--show` prints a sample of one rule's matches to be looked at.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from ttsr_proxy import RuleSet, StreamContext
from ttsr_proxy.cli.rules.tree import files_of
from ttsr_proxy.rules.discovery import discover
from ttsr_proxy.rules.providers import RuleDirectories
from ttsr_proxy.rules.shipped import shipped_rules_directory
from ttsr_proxy.triggers.globs import path_names
from ttsr_proxy.triggers.occurrences import occurrences, without_overlaps

PAGE = Path(__file__).parent.parent / "docs" / "shipped-rules.md"
PART = re.compile(r"(<!-- measured -->\n).*?(?=<!-- end measured -->)", re.DOTALL)
NOWHERE = Path("/nonexistent")
SHELL = (".sh", ".bash")
DOCUMENTATION = (".md", ".rst", ".txt")
LARGEST = 1_048_576
BATCH = 100
SAMPLE = 40

Counts = tuple[Counter[str], Counter[str], int, list[tuple[str, str, str]]]
"""Matches by rule, lines reached by rule, lines in all, and the matches as rule, place and text."""

_rules: RuleSet | None = None


def rules() -> RuleSet:
    """The shipped rules, compiled once per process."""
    global _rules
    if _rules is None:
        found = discover(RuleDirectories(NOWHERE, NOWHERE, shipped=shipped_rules_directory())).found
        _rules = RuleSet([entry.rule for entry in found])
    return _rules


def contexts(path: Path) -> Iterator[StreamContext]:
    """The ways in which a file is judged."""
    yield StreamContext("tool", "write", (str(path),), "write")
    if path.suffix in SHELL:
        yield StreamContext("tool", "bash", (), "bash")
    if path.suffix in DOCUMENTATION:
        yield StreamContext("text")


def judge(root: Path, paths: Sequence[Path]) -> Counts:
    """Judge some files of one directory."""
    hits, reached, lines, found = Counter[str](), Counter[str](), 0, list[tuple[str, str, str]]()
    ruleset = rules()
    for path in paths:
        data = path.read_bytes()
        if len(data) > LARGEST or b"\0" in data[:8_192]:
            continue
        text = data.decode("utf-8", "replace")
        count = text.count("\n") + 1
        lines += count
        for context in contexts(path.relative_to(root)):
            names = [path_names(name, None) for name in context.paths]
            for compiled in ruleset.compiled:
                if compiled.admits(context.source, context.tool, context.kind, names):
                    reached[compiled.rule.name] += count
            for match in without_overlaps(occurrences(ruleset, text, context).matches):
                hits[match.rule.name] += 1
                line = text.count("\n", 0, match.start) + 1
                found.append((match.rule.name, f"{path}:{line}", text[match.start : match.end][:160]))
    return hits, reached, lines, found


def project_of(directory: Path) -> Path:
    """The directory that is the project: archives put all into one directory of their own."""
    entries = list(directory.iterdir())
    return project_of(entries[0]) if len(entries) == 1 and entries[0].is_dir() else directory


def jobs_of(root: Path) -> Iterator[list[Path]]:
    """The files of a directory in batches."""
    files = [path for path in files_of([root], honour_gitignore=False) if isinstance(path, Path)]
    for start in range(0, len(files), BATCH):
        yield files[start : start + BATCH]


def table(hits: Counter[str], reached: Counter[str], names: Sequence[str], lines: int) -> str:
    """The Markdown table and a sentence about what was read."""
    rows = ["| rule | matches | lines read | per 100,000 lines |", "| --- | ---: | ---: | ---: |"]
    for rule in rules().rules:
        count, of = hits[rule.name], reached[rule.name]
        rate = f"{count * 100_000 / of:.1f}" if of else "-"
        rows.append(f"| `{rule.name}` | {count:,} | {of:,} | {rate} |")
    read = f"{lines:,} lines of {len(names)} sources: {', '.join(sorted(names))}."
    return f"\n{read}\n\n" + "\n".join(rows) + "\n\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directories", nargs="*", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--show", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if not options.directories:
        print("shipped_rules: no directories given, nothing to measure")
        return
    hits, reached, lines, found = Counter[str](), Counter[str](), 0, list[tuple[str, str, str]]()
    with ProcessPoolExecutor(options.jobs) as pool:
        roots = map(project_of, options.directories)
        answers = [pool.submit(judge, root, batch) for root in roots for batch in jobs_of(root)]
        for answer in answers:
            own_hits, own_reached, own_lines, own_found = answer.result()
            hits += own_hits
            reached += own_reached
            lines += own_lines
            found += [item for item in own_found if item[0] in options.show]
    measured = table(hits, reached, [root.name for root in options.directories], lines)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(PART.sub(lambda part: part[1] + measured, page), encoding="utf-8")
    elif not options.show:
        print(measured)
    rnd = random.Random(1)
    for name in options.show:
        own = [item for item in found if item[0] == name]
        for _, place, text in sorted(rnd.sample(own, min(SAMPLE, len(own)))):
            print(f"{name}  {place}  {text!r}")


if __name__ == "__main__":
    main()
