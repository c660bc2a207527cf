"""Rules and contexts for matching tests, and the conformance vectors in their terms."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ttsr_proxy import Match, Rule, StreamContext

VECTORS = Path(__file__).parents[2] / "conformance"

Where = tuple[str, str, str, int, int]
"""Rule, trigger, pattern, start and end of a match."""


def where(matches: Iterable[Match]) -> list[Where]:
    """The matches without their rule objects, in a canonical order."""
    return sorted((m.rule.name, m.trigger, m.pattern, m.start, m.end) for m in matches)


def rule_of(fields: dict[str, Any]) -> Rule:
    """A rule from the fields of a vector."""
    return Rule(
        fields["name"],
        condition=fields.get("condition"),
        ast_condition=fields.get("astCondition"),
        scope=fields.get("scope"),
        globs=fields.get("globs"),
    )


def context_of(fields: dict[str, Any]) -> StreamContext:
    """A context from the fields of a vector."""
    return StreamContext(fields["source"], fields.get("toolName"), tuple(fields.get("filePaths", ())))


def vectors(name: str) -> list[Any]:
    """The vectors of one file, each with its id as the test's."""
    lines = (VECTORS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [pytest.param(vector, id=vector["id"]) for vector in map(json.loads, lines)]


def split_at(text: str, cuts: Iterable[int]) -> list[str]:
    """The pieces of a text cut at some offsets."""
    edges = sorted({0, len(text), *(cut for cut in cuts if 0 < cut < len(text))})
    return [text[start:end] for start, end in itertools.pairwise(edges)]
