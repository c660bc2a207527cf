"""Replays files: each transcript by itself, but together the captures of a directory, each one exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ttsr_proxy.captures.lines import SUFFIX
from ttsr_proxy.cli.parallel import judge_batches
from ttsr_proxy.config import TtsrSettings
from ttsr_proxy.replay.findings import Finding
from ttsr_proxy.replay.recording import MAX_LINE, LostLine, NoTranscript, steps
from ttsr_proxy.replay.replayer import Replayer, Totals
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.toolcalls.families import FamilyTable
from ttsr_proxy.triggers.ruleset import RuleSet

FEW_BYTES = 16 << 20
"""What one process replays sooner than others would start."""


@dataclass(frozen=True, slots=True)
class Manner:
    """By which rules, with which settings, for which project files are replayed."""

    rules: tuple[Rule, ...]
    settings: TtsrSettings
    project: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """One file: what was found and gone through, or why it was not read."""

    path: str
    findings: tuple[Finding, ...] = ()
    lost: tuple[LostLine, ...] = ()
    totals: Totals | None = None
    skipped: str | None = None


def replay_all(
    manner: Manner, paths: Sequence[Path], jobs: int, advance: Callable[[int], None]
) -> Iterator[Replayed]:
    """Replay the files, in their order. `advance` is told how many bytes more are done.

    Raises TtsrError when a worker process dies.
    """
    batches = list(_batches(paths))
    sizes = [sum(map(size_of, batch)) for batch in batches]
    answers = judge_batches(_replaying, manner, batches, jobs if sum(sizes) > FEW_BYTES else 1)
    for answer, size in zip(answers, sizes, strict=True):
        yield from answer
        advance(size)


def _batches(paths: Sequence[Path]) -> Iterator[list[Path]]:
    batch: list[Path] = []
    for path in paths:
        together = path.name.endswith(SUFFIX) and batch and batch[-1].name.endswith(SUFFIX)
        if together and batch[-1].parent == path.parent:
            batch.append(path)
            continue
        if batch:
            yield batch
        batch = [path]
    if batch:
        yield batch


def size_of(path: Path) -> int:
    """Bytes of a file; 0 if it cannot be looked at."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _replaying(manner: Manner) -> Callable[[Sequence[Path]], list[Replayed]]:
    ruleset = RuleSet(manner.rules, manner.settings.interrupt_mode, manner.project)
    families = FamilyTable.default().with_custom(manner.settings.tool_families)

    def replayed(paths: Sequence[Path]) -> list[Replayed]:
        replayer = Replayer(ruleset, families, manner.settings, manner.project)
        return [_replay(path, replayer) for path in paths]

    return replayed


def _replay(path: Path, replayer: Replayer) -> Replayed:
    replayer.totals = totals = Totals()
    findings: list[Finding] = []
    lost: list[LostLine] = []
    try:
        with path.open("rb") as file:
            for step in steps(_lines(file)):
                if isinstance(step, LostLine):
                    lost.append(step)
                else:
                    findings.extend(replayer.take(step))
    except NoTranscript as error:
        return Replayed(str(path), skipped=str(error))
    except OSError as error:
        return Replayed(str(path), skipped=f"cannot be read: {error.strerror or error}")
    return Replayed(str(path), tuple(findings), tuple(lost), totals)


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines; of one that is too long only so much that this can be seen."""
    while line := file.readline(MAX_LINE + 1):
        yield line
        while len(line) > MAX_LINE and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE + 1)
