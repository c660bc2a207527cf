"""A chunk of the stream, cut into the parts that may reach the client at different times.

One `chat.completion.chunk` can say several things at once: the role and the first words, the last words and
the reason to stop, two whole tool calls. Each is a part, carried by one event. The chunk's bytes stand in
the event of its last part, so that a chunk whose parts go out together goes out as it came.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.protocols.events import BlockDelta, BlockStarted, ResponseEnding, ResponseStarted


@dataclass(slots=True, eq=False)
class Chunk:
    """One event of upstream's stream. The reader fills in `parts`; after that nothing changes."""

    raw: bytes
    payload: JsonObject
    parts: list[Part] = field(default_factory=list)

    def add(self, choice: JsonObject, delta: JsonObject, *, finish: str | None = None) -> Part:
        """The next part: what of `choice` and its delta it covers."""
        part = Part(self, len(self.parts), choice, delta, finish)
        self.parts.append(part)
        return part


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    chunk: Chunk
    at: int
    choice: JsonObject
    """The choice as it stands in the chunk; empty when the part speaks of the whole answer (usage)."""
    delta: JsonObject
    """The fields of the choice's delta that this part covers."""
    finish: str | None
    """The reason to stop, if this part says it."""

    @property
    def alone(self) -> bool:
        """The chunk says nothing else."""
        return len(self.chunk.parts) == 1

    @property
    def last(self) -> bool:
        return self.at == len(self.chunk.parts) - 1


class ChunkStarted(ResponseStarted, frozen=True, kw_only=True):
    chunk: Chunk
    part: Part | None
    """The role; None when the chunk tells none."""


class ChunkBlockStarted(BlockStarted, frozen=True, kw_only=True):
    part: Part | None = None
    """Only a tool call has an opening of its own; prose begins with its first piece."""


class ChunkDelta(BlockDelta, frozen=True, kw_only=True):
    part: Part


class ChunkEnding(ResponseEnding, frozen=True, kw_only=True):
    part: Part
