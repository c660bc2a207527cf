"""Structural conditions beyond the reference vectors."""

from __future__ import annotations

import pickle

import pytest

from ttsr_proxy import Rule, RuleSet, StreamContext
from ttsr_proxy.triggers.ast import (
    LANGUAGES,
    MAX_SOURCE,
    AstCheck,
    AstHit,
    AstPatternError,
    check_pattern,
    language_of,
    may_match,
    search,
    usable,
)


@pytest.mark.parametrize("language", sorted(set(LANGUAGES.values())))
def test_every_language_of_the_table_is_known_to_ast_grep(language: str) -> None:
    assert any(usable(language, pattern) for pattern in ("a", '"a"', "a: 1", "<a>b</a>", "$A"))
    assert search(language, "x", ["zzz"]) == ()


@pytest.mark.parametrize(
    ("paths", "language"),
    [
        (["a.ts"], "typescript"),
        (["src/a.MJS"], "javascript"),
        (["README", r"lib\b.pyi"], "python"),
        ([".bashrc"], None),
        (["a.unknown", "b.py"], None),
        (["a."], None),
        ([], None),
    ],
)
def test_the_language_is_that_of_the_first_path_with_an_extension(
    paths: list[str], language: str | None
) -> None:
    assert language_of(paths) == language


def test_offsets_count_characters_also_after_astral_ones() -> None:
    text = "const é = '😀😀'; console.log(1);"
    (hit,) = search("typescript", text, ["console.log($A)"])
    assert text[hit.start : hit.end] == "console.log(1)"


def test_all_patterns_that_match_are_reported_in_their_order() -> None:
    hits = search("python", "eval(x)\nprint(y)\n", ["print($A)", "nothing()", "eval($A)", "print($A)"])
    assert hits == (AstHit("print($A)", 8, 16), AstHit("eval($A)", 0, 7))


@pytest.mark.parametrize("bad", ["a; b", "$A $B", "(((", "\0"])
def test_a_pattern_that_ast_grep_refuses_costs_only_itself(bad: str) -> None:
    assert [hit.pattern for hit in search("typescript", "foo(1)", [bad, "foo($A)"])] == ["foo($A)"]


def test_an_unknown_language_is_no_match_and_raises_nothing() -> None:
    assert search("cobol", "DISPLAY 1", ["$A"]) == ()


def test_a_lone_surrogate_in_text_or_pattern_is_searched_as_a_replacement_character() -> None:
    (hit,) = search("python", "a = '\ud83d'\nfoo(1)", ["foo($A)", "bar('\udc00')"])
    assert (hit.start, hit.end) == (8, 14)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [(" ", "empty"), ("a" * 10_001, "longer than"), ("(" * 501 + "a" + ")" * 501, "nests brackets")],
)
def test_a_pattern_that_could_overflow_ast_grep_is_refused_before_it_sees_it(
    pattern: str, reason: str
) -> None:
    with pytest.raises(AstPatternError, match=reason):
        check_pattern(pattern)


def test_a_pattern_at_the_limits_is_searched() -> None:
    pattern = check_pattern("(" * 500 + "a" + ")" * 500)
    assert search("typescript", pattern, [pattern])


def test_a_check_can_be_sent_to_another_process() -> None:
    check = AstCheck("python", "eval(x)", ("eval($A)",))
    assert pickle.loads(pickle.dumps(check)).run() == (AstHit("eval($A)", 0, 7),)


def test_the_prefilter_asks_for_a_word_of_the_pattern_but_for_no_metavariable() -> None:
    assert may_match("console.log($$$ARGS)", "the console")
    assert not may_match("console.log($$$ARGS)", "const log = ARGS")
    assert may_match("$A == $B", "")


WRITE_PY = StreamContext("tool", "write", ("a.py",))


def ast_rules(**patterns: str) -> RuleSet:
    return RuleSet([Rule(name, ast_condition=[pattern]) for name, pattern in patterns.items()])


def test_close_hands_out_the_search_and_apply_ast_takes_its_answer() -> None:
    matcher = ast_rules(e="eval($A)", p="print($A)").stream(WRITE_PY)
    assert matcher.feed("x = 1\neval(x)\n") == ()
    assert matcher.safe_until == 0
    assert matcher.close() == ()
    assert matcher.ast_check == AstCheck("python", "x = 1\neval(x)\n", ("eval($A)",))
    (match,) = matcher.apply_ast(matcher.ast_check.run())
    assert (match.rule.name, match.trigger, match.pattern, match.start, match.end) == (
        "e",
        "ast",
        "eval($A)",
        6,
        13,
    )
    assert matcher.safe_until == 6
    assert matcher.ast_check is None
    assert matcher.finish() == ()


def test_a_rule_that_has_matched_by_regex_is_not_searched_again() -> None:
    ruleset = RuleSet([Rule("r", condition=["eval"], ast_condition=["eval($A)"])])
    matcher = ruleset.stream(WRITE_PY)
    assert [match.trigger for match in matcher.feed("eval(x)")] == ["regex"]
    assert matcher.finish() == ()


def test_a_text_beyond_the_size_limit_is_reported_as_not_inspected() -> None:
    matcher = ast_rules(e="eval($A)").stream(WRITE_PY)
    matcher.feed("eval(x)\n" + "#" * MAX_SOURCE)
    assert matcher.finish() == ()
    assert matcher.not_inspected is not None
    assert str(MAX_SOURCE) in matcher.not_inspected
    assert matcher.safe_until == len(matcher.text)


def test_a_long_text_without_the_pattern_s_word_counts_as_inspected() -> None:
    matcher = ast_rules(e="eval($A)").stream(WRITE_PY)
    matcher.feed("#" * (MAX_SOURCE + 1))
    assert matcher.finish() == ()
    assert matcher.not_inspected is None


def test_ast_patterns_do_not_apply_to_prose() -> None:
    ruleset = ast_rules(e="eval($A)")
    assert ruleset.reaching("text") == ()
    assert ruleset.check("eval(x)", StreamContext("text", paths=("a.py",))) == ()
