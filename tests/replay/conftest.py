"""A replay of lines by rules that a test writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from transcripts import Line, as_bytes

from ttsr_proxy.config import TtsrSettings
from ttsr_proxy.replay.findings import Finding
from ttsr_proxy.replay.recording import LostLine, steps
from ttsr_proxy.replay.replayer import Replayer
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.toolcalls.families import FamilyTable
from ttsr_proxy.triggers.ruleset import RuleSet

Replay = Callable[..., list[Finding]]
PROJECT = "/work/app"


def rule(name: str, condition: str, **fields: Any) -> Rule:
    return Rule(name=name, path=f"{name}.md", content="Do not.", condition=(condition,), **fields)


BAD = rule("no-bad", "BAD")


def replayer(rules: Iterable[Rule], project: str = PROJECT, **settings: Any) -> Replayer:
    return Replayer(
        RuleSet(rules, "always", project), FamilyTable.default(), TtsrSettings(**settings), project
    )


@pytest.fixture
def replay() -> Replay:
    """The findings in the lines of one file, none of which is lost."""

    def run(lines: Iterable[Line], *rules: Rule, project: str = PROJECT, **settings: Any) -> list[Finding]:
        judge = replayer(rules or (BAD,), project, **settings)
        found: list[Finding] = []
        for step in steps(as_bytes(lines)):
            assert not isinstance(step, LostLine), step
            found += judge.take(step)
        return found

    return run
