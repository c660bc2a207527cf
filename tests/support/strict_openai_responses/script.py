"""Steps of a turn that only this API has."""

from __future__ import annotations

from dataclasses import dataclass

from strict_anthropic.script import Flow, Pieces, fresh_id


@dataclass(frozen=True, slots=True)
class CustomBlock:
    """A call of a custom tool, whose input is plain text."""

    name: str
    pieces: Pieces
    id: str


@dataclass(frozen=True, slots=True)
class ShellBlock:
    """A call of the built-in shell tool."""

    command: str
    id: str


@dataclass(frozen=True, slots=True)
class ReasoningBlock:
    """Reasoning with a summary of several parts, or with its raw text."""

    parts: tuple[str, ...]
    raw: bool


@dataclass(frozen=True, slots=True)
class RefusalBlock:
    text: str


def custom(name: str, *pieces: str | Flow) -> CustomBlock:
    """A freeform call."""
    return CustomBlock(name, pieces, fresh_id("call_"))


def shell(command: str) -> ShellBlock:
    """A shell call."""
    return ShellBlock(command, fresh_id("call_"))


def reasoning(*parts: str, raw: bool = False) -> ReasoningBlock:
    """Reasoning in several parts."""
    return ReasoningBlock(parts, raw)


def refusal(text: str) -> RefusalBlock:
    """A message that refuses."""
    return RefusalBlock(text)
