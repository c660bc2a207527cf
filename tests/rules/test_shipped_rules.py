"""The rules that come with the product: they catch what they are for, and nothing else.

The examples of a rule are in `shipped_examples/`. `~~` in them is removed, so that no file of this repository
has something in it that looks like a credential.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from ttsr_proxy import RuleSet, StreamContext
from ttsr_proxy.rules.discovery import discover
from ttsr_proxy.rules.providers import RuleDirectories
from ttsr_proxy.rules.shipped import shipped_rules_directory

NOWHERE = Path("/nonexistent")
FOUND = discover(RuleDirectories(NOWHERE, NOWHERE, shipped=shipped_rules_directory())).found
RULES = {found.rule.name: found.rule for found in FOUND}
EXAMPLES = {
    path.stem: yaml.safe_load(path.read_text("utf-8").replace("~~", ""))
    for path in (Path(__file__).parent / "shipped_examples").glob("*.yaml")
}
PROSE = sorted(name for name, rule in RULES.items() if "text" in " ".join(rule.scope).split(", "))


def context(name: str) -> StreamContext:
    examples = EXAMPLES[name]
    tool = examples.get("tool")
    if tool is None:
        return StreamContext("text")
    paths = (examples["path"],) if "path" in examples else ()
    return StreamContext("tool", tool, paths, kind=tool)


def cases(field: str) -> list[object]:
    return [
        pytest.param(name, text, id=f"{name}-{number}")
        for name, examples in sorted(EXAMPLES.items())
        for number, text in enumerate(examples[field])
    ]


def test_every_shipped_rule_has_examples() -> None:
    assert set(RULES) == set(EXAMPLES)
    assert all(examples["bad"] and examples["good"] for examples in EXAMPLES.values())


@pytest.mark.parametrize("name", sorted(RULES))
def test_every_shipped_rule_is_accepted_and_has_no_warnings(name: str) -> None:
    ruleset = RuleSet([RULES[name]])
    assert (ruleset.rejected, ruleset.warnings) == ({}, {})
    assert RULES[name].warnings == ()


@pytest.mark.parametrize("name", sorted(RULES))
def test_every_shipped_rule_says_in_one_line_what_it_catches_and_first_what_to_do(name: str) -> None:
    rule = RULES[name]
    assert re.fullmatch(r"[A-Z`][^\n]{10,90}[^.\n]", rule.description or "")
    first, *reasons = rule.content.split("\n\n")
    assert first.strip()
    assert reasons, "the reason is missing"
    assert len(rule.content) < 1_000


def test_shipped_rules_that_watch_prose_never_interrupt() -> None:
    assert PROSE
    assert {RULES[name].interrupt_mode for name in PROSE} == {"never"}


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_shipped_rule_is_in_the_prompt_of_nobody(name: str) -> None:
    assert not RULES[name].always_apply


@pytest.mark.parametrize(("name", "text"), cases("bad"))
def test_a_shipped_rule_catches(name: str, text: str) -> None:
    assert [match.rule.name for match in RuleSet([RULES[name]]).check(text, context(name))][:1] == [name]


@pytest.mark.parametrize(("name", "text"), cases("good"))
def test_a_shipped_rule_leaves_alone(name: str, text: str) -> None:
    assert list(RuleSet([RULES[name]]).check(text, context(name))) == []
