"""Judges files as if a tool wrote them, in worker processes when there are many."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from ttsr_proxy.cli.parallel import judge_batches
from ttsr_proxy.modes import InterruptMode
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.triggers.match import StreamContext
from ttsr_proxy.triggers.occurrences import occurrences, without_overlaps
from ttsr_proxy.triggers.ruleset import RuleSet

FEW_FILES = 200
"""Files that one process judges sooner than others would start."""

_BATCH = 50
_SNIFFED = 8_192

SHOWN_TEXT = 500
"""Characters of a match that are kept; the offsets tell how long it is."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One match in one file. Lines and columns count from 1, columns in characters."""

    rule: str
    trigger: Literal["regex", "ast"]
    pattern: str
    start: int
    end: int
    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True, slots=True)
class Judged:
    """One file: its findings, or why it was not read; and what of it was not inspected."""

    path: str
    findings: tuple[Finding, ...] = ()
    lines: int = 0
    skipped: str | None = None
    not_inspected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Manner:
    """How files are judged: by which rules, as what tool, up to which size in bytes."""

    rules: tuple[Rule, ...]
    interrupt_mode: InterruptMode
    project: str
    tool: str
    kind: str | None
    max_bytes: int


class Judge:
    """The compiled rules of a manner. Files are offered to globs by their path in the project."""

    def __init__(self, manner: Manner) -> None:
        self._manner = manner
        self._ruleset = RuleSet(manner.rules, manner.interrupt_mode, manner.project)

    def judge(self, path: Path) -> Judged:
        """Judge one file. Never raises on what it holds."""
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size > self._manner.max_bytes:
                    return Judged(str(path), skipped=f"larger than {self._manner.max_bytes:,} bytes")
                data = file.read()
        except OSError as error:
            return Judged(str(path), skipped=f"cannot be read: {error.strerror or error}")
        if b"\0" in data[:_SNIFFED]:
            return Judged(str(path), skipped="binary")
        text = data.decode("utf-8-sig", "replace")
        context = StreamContext("tool", self._manner.tool, (os.path.abspath(path),), self._manner.kind)
        found = occurrences(self._ruleset, text, context)
        lines = _Lines(text)
        findings = tuple(
            Finding(
                match.rule.name,
                match.trigger,
                match.pattern,
                match.start,
                match.end,
                *lines.place(match.start),
                *lines.place(match.end),
                text[match.start : min(match.end, match.start + SHOWN_TEXT)],
            )
            for match in without_overlaps(found.matches)
        )
        return Judged(str(path), findings, lines.count, None, found.not_inspected)


class _Lines:
    """Where the lines of a text begin, found when first asked."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1
        self.count = text.count("\n") + (not text.endswith("\n") and bool(text))

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset; cheapest when offsets grow."""
        if offset < self._at:
            self._at, self._line = 0, 1
        self._line += self._text.count("\n", self._at, offset)
        self._at = offset
        return self._line, offset - (self._text.rfind("\n", 0, offset) + 1) + 1


def judge_all(
    manner: Manner, paths: Sequence[Path], jobs: int, advance: Callable[[int], None]
) -> Iterator[Judged]:
    """Judge the files, in their order. `advance` is told how many more are done.

    Raises TtsrError when a worker process dies.
    """
    batches = list(_batches(paths))
    for judged in judge_batches(_judging, manner, batches, jobs if len(paths) > FEW_FILES else 1):
        yield from judged
        advance(len(judged))


def _judging(manner: Manner) -> Callable[[Sequence[Path]], list[Judged]]:
    judge = Judge(manner)
    return lambda paths: [judge.judge(path) for path in paths]


def _batches(paths: Sequence[Path]) -> Iterator[list[Path]]:
    rest = iter(paths)
    while batch := list(islice(rest, _BATCH)):
        yield batch
