"""Every place of a match in a complete text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttsr_proxy import Rule, RuleSet, StreamContext
from ttsr_proxy.triggers import occurrences as module
from ttsr_proxy.triggers.occurrences import occurrences, without_overlaps

WRITE = StreamContext("tool", "write", ("a.py",))


def places(rules: list[Rule], text: str, context: StreamContext = WRITE) -> list[tuple[str, str, int, int]]:
    found = occurrences(RuleSet(rules), text, context)
    return [(match.rule.name, match.pattern, match.start, match.end) for match in found.matches]


def test_each_place_of_each_condition_is_told_in_the_order_of_the_text() -> None:
    rules = [Rule("a", condition=["x", "y"]), Rule("b", condition=["xy"])]
    assert places(rules, "xy x") == [("a", "x", 0, 1), ("b", "xy", 0, 2), ("a", "y", 1, 2), ("a", "x", 3, 4)]


def test_ast_patterns_tell_each_place_too() -> None:
    rule = Rule("a", ast_condition=["print($A)"])
    assert places([rule], "print(1)\nf(print(2))\n# print(3)\n") == [
        ("a", "print($A)", 0, 8),
        ("a", "print($A)", 11, 19),
    ]


@pytest.mark.parametrize("condition", ["", "x*", ".*", "^", "$"])
def test_a_condition_that_matches_everywhere_tells_one_place(condition: str) -> None:
    assert len(places([Rule("a", condition=[condition])], "ab\n\ncd")) == 1


def test_scope_and_globs_gate_first() -> None:
    rules = [Rule("a", condition=["x"], globs=["*.ts"]), Rule("b", condition=["x"], scope=["text"])]
    assert places(rules, "x") == []


def test_a_literal_in_another_case_is_found_where_case_does_not_matter() -> None:
    assert places([Rule("a", condition=["(?i)todo"])], "a ToDo")[0][2:] == (2, 6)
    assert places([Rule("a", condition=["(?i)straße"])], "STRAßE")[0][2:] == (0, 6)


def test_a_condition_over_its_time_limit_is_said_to_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEARCH_SECONDS", 0.01)
    slow = Rule("slow", condition=[r"(?:a|a)*(?:a|a)*(?:a|a)*\d"])
    found = occurrences(RuleSet([slow, Rule("b", condition=["b"])]), "a" * 3_000 + "b", WRITE)
    assert [match.rule.name for match in found.matches] == ["b"]
    assert found.not_inspected[0].startswith("slow: condition ")


def test_a_text_too_long_for_ast_patterns_is_said_to_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SOURCE", 5)
    found = occurrences(RuleSet([Rule("a", ast_condition=["print($A)"])]), "print(1)", WRITE)
    assert found.matches == ()
    assert "longer than 5 characters" in found.not_inspected[0]


def test_overlaps_of_one_rule_count_once() -> None:
    rules = [Rule("a", condition=["abc", "bcd", "de"]), Rule("b", condition=["bc"])]
    matches = without_overlaps(occurrences(RuleSet(rules), "abcde", WRITE).matches)
    assert [(match.rule.name, match.pattern) for match in matches] == [("a", "abc"), ("b", "bc"), ("a", "de")]


CONDITIONS = st.sampled_from([r"a+", r"\bb\b", r"(?i)AB", r"c(?!d)", r"(?m)^a$", "", r"d$", r"a[\s\S]*b"])


@given(st.lists(CONDITIONS, min_size=1, max_size=3), st.text(alphabet="abcdABé \n", max_size=30))
def test_a_rule_has_a_place_if_and_only_if_it_fires(conditions: list[str], text: str) -> None:
    ruleset = RuleSet([Rule("r", condition=conditions)])
    assert bool(occurrences(ruleset, text, WRITE).matches) == bool(ruleset.check(text, WRITE))
