"""A file of lines: what kind of transcript it is, and its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from ttsr_proxy.jsontext import JsonObject, decode_object
from ttsr_proxy.replay.captured import CapturedExchange
from ttsr_proxy.replay.claude_code import ClaudeCodeTranscript
from ttsr_proxy.replay.codex import CodexTranscript
from ttsr_proxy.replay.steps import Step, TranscriptReader, UnreadableLine

MAX_LINE: Final = 64 << 20
"""Bytes of one line. A longer one is left out."""

MAX_HEAD: Final = 100
"""Lines at the beginning of a file among which one must be known."""

_KINDS: Final[tuple[tuple[Callable[[JsonObject], bool], Callable[[], TranscriptReader]], ...]] = (
    (CapturedExchange.recognises, CapturedExchange),
    (CodexTranscript.recognises, CodexTranscript),
    (ClaudeCodeTranscript.recognises, ClaudeCodeTranscript),
)


class NoTranscript(Exception):
    """The file is none of the known kinds."""


@dataclass(frozen=True, slots=True)
class LostLine:
    """A line that cannot be read, and why."""

    line: int
    reason: str


def steps(lines: Iterable[bytes]) -> Iterator[Step | LostLine]:
    """The steps of a file, and the lines that are lost. Raises NoTranscript.

    `lines` are numbered from 1; one that is longer than `MAX_LINE` may be given cut off.
    """
    reader: TranscriptReader | None = None
    lost: list[LostLine] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        value = decode_object(line) if len(line) <= MAX_LINE else None
        if value is None:
            what = "is no JSON object" if len(line) <= MAX_LINE else f"is longer than {MAX_LINE:,} bytes"
            lost.append(LostLine(number, what))
        elif reader is None:
            reader = next((make() for recognises, make in _KINDS if recognises(value)), None)
        if reader is None:
            if number >= MAX_HEAD:
                break
            continue
        yield from lost
        lost.clear()
        if value is None:
            continue
        try:
            yield from reader.read(number, value)
        except UnreadableLine as error:
            yield LostLine(number, str(error))
    if reader is None:
        raise NoTranscript("no transcript of Claude Code or Codex, and no capture")
