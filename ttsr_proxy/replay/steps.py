"""What a transcript says, in words that hold for every kind of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.protocols.events import ProtocolEvent
from ttsr_proxy.protocols.protocol import WireProtocol
from ttsr_proxy.toolcalls.prose import ProseFormat


class UnreadableLine(Exception):
    """A line that is not what its place in the transcript asks for; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who wrote it, in the words of the interrupt log."""

    client: str = "unknown"
    agent: str = "main"
    conversation: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class Output:
    """What a model wrote, as the events of a response or of a part of one."""

    protocol: WireProtocol
    events: tuple[ProtocolEvent, ...]
    response: str
    """Which response it belongs to; parts of one response have the same."""
    speaker: Speaker
    root: str = ""
    """The directory that the agent worked in; empty if it is not known."""
    time: str = ""
    """ISO 8601, as the transcript has it; empty if it has none."""
    attempt: int = 1
    """Which upstream attempt of the response, where the transcript has them."""
    identity: str = ""
    """Equal for the same output in another file: agents copy what came before when they fork a session."""
    formats: frozenset[ProseFormat] = frozenset()
    """How the model was told to write edits in prose."""
    observed: str | None = None
    """Why this output could only be observed, else None."""
    uninterrupted: str | None = None
    """Why it could not be interrupted, else None."""
    reminders: tuple[str, ...] = ()
    """The texts of the reminders that the model had seen."""


@dataclass(frozen=True, slots=True)
class Step:
    """One line: its place in the tree of the conversation, and what a model wrote in it."""

    line: int
    key: str
    """By which later lines name this one."""
    parent: str | None
    """The line that this one follows; None where a conversation begins, or begins anew after compaction."""
    outputs: tuple[Output, ...] = ()
    follows_last: bool = True
    """If its parent is lost, it follows the line before it; else it begins a conversation."""


class TranscriptReader(Protocol):
    """The lines of one file in, steps out."""

    def read(self, line: int, value: JsonObject) -> Iterator[Step]:
        """The steps of one line. Raises UnreadableLine."""


def text_of(value: JsonObject, key: str) -> str:
    """A string field; empty when it is absent or something else."""
    text = value.get(key)
    return text if isinstance(text, str) else ""


def object_of(value: JsonObject, key: str) -> JsonObject:
    """An object field; empty when it is absent or something else."""
    found = value.get(key)
    return found if isinstance(found, dict) else {}
