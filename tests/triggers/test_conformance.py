"""The reference implementation's own answers, for complete texts and for streams at any split."""

from __future__ import annotations

import random
from typing import Any

import pytest
from matching import context_of, rule_of, split_at, vectors, where

from ttsr_proxy import Match, RuleSet, StreamContext
from ttsr_proxy.triggers.jsregex import compile_condition


@pytest.mark.parametrize(
    "vector", [vector for name in ("scope", "glob", "register", "ast") for vector in vectors(name)]
)
def test_a_complete_text_gets_the_reference_verdict(vector: dict[str, Any]) -> None:
    rules = [rule_of(fields) for fields in vector["rules"]]
    ruleset = RuleSet(rules)
    matches = ruleset.check(vector["snippet"], context_of(vector["context"]))
    assert {
        "registered": [rule in ruleset.rules for rule in rules],
        "regex": [match.rule.name for match in matches if match.trigger == "regex"],
        "ast": [match.rule.name for match in matches if match.trigger == "ast"],
    } == vector["expect"]


def stream(ruleset: RuleSet, context: StreamContext, deltas: list[str]) -> tuple[list[Match], dict[str, int]]:
    """All matches, and with which delta each rule was reported (their number for the end of the block)."""
    matcher = ruleset.stream(context)
    found: list[Match] = []
    fired: dict[str, int] = {}
    for index, delta in enumerate(deltas):
        for match in matcher.feed(delta):
            fired[match.rule.name] = index
            found.append(match)
    for match in matcher.finish():
        fired[match.rule.name] = len(deltas)
        found.append(match)
    return found, fired


@pytest.mark.parametrize("vector", vectors("stream"))
def test_a_stream_fires_what_the_complete_text_does_and_never_early(vector: dict[str, Any]) -> None:
    ruleset = RuleSet([rule_of(fields) for fields in vector["rules"]])
    _, fired = stream(ruleset, context_of(vector["context"]), vector["deltas"])
    expected = vector["expect"]
    assert sorted(fired) == expected["fires"]
    for name, index in fired.items():
        (pattern,) = next(rule.condition or () for rule in ruleset.rules if rule.name == name)
        if compile_condition(pattern).monotone:
            assert index == expected["earliest"][name], name
        else:
            assert index >= expected["earliest"][name], name


@pytest.mark.parametrize("vector", vectors("stream"))
def test_the_matches_of_a_stream_do_not_depend_on_its_split(vector: dict[str, Any]) -> None:
    ruleset = RuleSet([rule_of(fields) for fields in vector["rules"]])
    context = context_of(vector["context"])
    text = "".join(vector["deltas"])
    expected = where(stream(ruleset, context, list(text))[0])
    assert [name for name, *_ in expected] == vector["expect"]["fires"]
    assert where(stream(ruleset, context, vector["deltas"])[0]) == expected
    assert where(ruleset.check(text, context)) == expected
    rnd = random.Random(vector["id"])
    for _ in range(20):
        cuts = [rnd.randrange(len(text)) for _ in range(rnd.randrange(40))]
        assert where(stream(ruleset, context, split_at(text, cuts))[0]) == expected
