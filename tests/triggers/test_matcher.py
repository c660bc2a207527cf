"""A stream matcher: when rules fire, what may be shown, what it costs."""

from __future__ import annotations

import pytest
from matching import where

from ttsr_proxy import Match, Rule, RuleSet, StreamContext
from ttsr_proxy.triggers import conditions
from ttsr_proxy.triggers.matcher import StreamMatcher

TEXT = StreamContext("text")
TOOL = StreamContext("tool", "write", ("a.py",))


def matcher_of(*patterns: str, context: StreamContext = TEXT, held: bool = True) -> StreamMatcher:
    """A matcher of rules r1, r2, ... with one condition each."""
    ruleset = RuleSet([Rule(f"r{number}", condition=[text]) for number, text in enumerate(patterns, 1)])
    assert ruleset.rejected == {}
    return ruleset.stream(context, None if held else ())


def spans(matches: tuple[Match, ...]) -> list[tuple[str, int, int]]:
    return [(match.rule.name, match.start, match.end) for match in matches]


def test_a_match_is_reported_with_the_delta_that_completes_it() -> None:
    matcher = matcher_of("git push")
    assert matcher.feed("run git pu") == ()
    assert spans(matcher.feed("sh now")) == [("r1", 4, 12)]
    assert matcher.finish() == ()


def test_a_rule_matches_at_most_once_per_block() -> None:
    matcher = matcher_of("foo")
    assert len(matcher.feed("foo foo")) == 1
    assert matcher.feed(" foo") == ()
    assert matcher.finish() == ()


@pytest.mark.parametrize(
    ("pattern", "undecided", "undone", "settled"),
    [
        ("foo$", "foo", "d", None),
        (r"\bfoo\b", "foo", "d", " "),
        ("foo(?!bar)", "fooba", "r", "z"),
        ("(?m)foo$", "foo", "d", "\n"),
    ],
)
def test_a_verdict_that_later_text_can_undo_waits_for_it(
    pattern: str, undecided: str, undone: str, settled: str | None
) -> None:
    matcher = matcher_of(pattern)
    assert matcher.feed(undecided) == ()
    assert matcher.feed(undone) == ()
    assert matcher.finish() == ()
    if settled is not None:
        matcher = matcher_of(pattern)
        matcher.feed(undecided)
        assert len(matcher.feed(settled)) == 1
    matcher = matcher_of(pattern)
    matcher.feed("foo")
    assert spans(matcher.finish()) == [("r1", 0, 3)]


def test_a_slice_of_the_text_never_invents_an_edge() -> None:
    matcher = matcher_of(r"\bfoo", "^foo", r"(?<!x)foo")
    for delta in ["x", "fo", "o"]:
        assert matcher.feed(delta) == ()
    assert matcher.finish() == ()


def test_matches_of_one_delta_come_by_start_and_then_by_rule_order() -> None:
    matcher = matcher_of("c", "b", "a", "b+")
    assert spans(matcher.feed("abc")) == [("r3", 0, 1), ("r2", 1, 2), ("r4", 1, 2), ("r1", 2, 3)]


def test_the_condition_that_is_settled_first_is_the_one_reported() -> None:
    rule = Rule("r", condition=["never", "ab(?!c)", "b"])
    for deltas in (["abd"], ["a", "b", "d"]):
        matcher = RuleSet([rule]).stream(TEXT)
        matches = [match for delta in deltas for match in matcher.feed(delta)]
        assert [(match.pattern, match.start) for match in matches] == [("b", 1)]


def test_an_empty_block_is_a_complete_text_too() -> None:
    assert spans(matcher_of("^$", "x").finish()) == [("r1", 0, 0)]


def test_the_end_of_a_block_is_final() -> None:
    matcher = matcher_of("x")
    matcher.feed("a")
    matcher.finish()
    assert matcher.finish() == ()
    with pytest.raises(RuntimeError, match="ended"):
        matcher.feed("x")


def test_text_without_a_near_match_is_shown_at_once() -> None:
    matcher = matcher_of("git push", r"\bTODO\b", "foo[\\s\\S]*bar", r"(?i)as an ai")
    for delta in ["Hello, wor", "ld. Plain ", "prose, nothing els", "e. "]:
        matcher.feed(delta)
        assert matcher.safe_until == len(matcher.text)


def test_only_the_suffix_that_could_become_a_match_is_held() -> None:
    matcher = matcher_of("git push")
    matcher.feed("say git pu")
    assert matcher.safe_until == 4
    matcher.feed("ll g")
    assert matcher.safe_until == len("say git pull ")
    matcher.feed("o")
    assert matcher.safe_until == len(matcher.text)


def test_nothing_of_a_match_becomes_safe_afterwards() -> None:
    matcher = matcher_of("git push")
    matcher.feed("say git push")
    assert matcher.safe_until == 4
    matcher.feed(" and more")
    matcher.finish()
    assert matcher.safe_until == 4


def test_everything_is_safe_after_a_clean_end() -> None:
    matcher = matcher_of("foo$")
    matcher.feed("a fo")
    assert matcher.safe_until == 2
    assert matcher.finish() == ()
    assert matcher.safe_until == 4


def test_a_condition_that_needs_a_start_is_held_from_there_on() -> None:
    matcher = matcher_of(r"foo[\s\S]*bar")
    matcher.feed("a foo and ")
    matcher.feed("much more\n" * 1_000)
    assert matcher.safe_until == 2


@pytest.mark.parametrize("pattern", [r"^(?![\s\S]*License)", r"[\s\S]*x"])
def test_a_condition_that_is_open_from_anywhere_is_not_held_in_prose(pattern: str) -> None:
    matcher = matcher_of(pattern)
    matcher.feed("all prose")
    assert matcher.safe_until == 9


@pytest.mark.parametrize(
    ("holding", "text", "safe"),
    [
        (None, "a lou", 2),
        (None, "a qui", 5),
        (("quiet",), "a lou", 5),
        (("quiet",), "a qui", 2),
        ((), "a lou", 5),
    ],
)
def test_text_is_held_for_the_named_rules_by_default_for_those_that_interrupt(
    holding: tuple[str, ...] | None, text: str, safe: int
) -> None:
    rules = [Rule("loud", condition=["loud"]), Rule("quiet", condition=["quiet"], interrupt_mode="never")]
    matcher = RuleSet(rules).stream(TEXT, holding)
    matcher.feed(text)
    assert matcher.safe_until == safe


def test_a_pattern_that_runs_away_is_muted_and_named_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conditions, "SEARCH_SECONDS", 0.005)
    matcher = matcher_of("(a|aa)+$", "ok")
    for _ in range(20):
        assert matcher.feed("aaaa") == ()
    assert spans(matcher.feed("! ok")) == [("r2", 82, 84)]
    assert matcher.finish() == ()
    assert matcher.muted == (("r1", "(a|aa)+$"),)


@pytest.mark.parametrize(
    "pattern", ["foo", r"\bfoo", r"fo+\b", r"[^x]o+", "(?=foo)", "foo$", r"(?<=\sfo)o|f.o$"]
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_block_can_be_matched_from_a_later_place_on(pattern: str, size: int) -> None:
    text = "foo a foo"
    matcher = matcher_of(pattern)
    matcher.begin_at(5)
    matches = [m for i in range(0, len(text), size) for m in matcher.feed(text[i : i + size])]
    (match,) = [*matches, *matcher.finish()]
    assert match.start >= 5
    short = matcher_of(pattern, "$")
    short.begin_at(5)
    assert short.feed("foo") == ()
    assert short.finish() == ()


def test_lower_case_is_compared_character_by_character() -> None:
    # U+0130 becomes two characters in lower case.
    matcher = matcher_of("(?i)todo")
    assert spans(matcher.feed("\u0130\u0130 ToDo")) == [("r1", 3, 7)]


def searched(monkeypatch: pytest.MonkeyPatch, pattern: str, text: str, size: int) -> int:
    """How many characters a condition's searches go over, for a text in deltas of one size."""
    total = 0
    search = conditions.ConditionScan._search

    def counting(scan: conditions.ConditionScan, *args: object, **kwargs: object) -> object:
        nonlocal total
        total += int(args[2]) - scan.alive_from  # type: ignore[call-overload]
        return search(scan, *args, **kwargs)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(conditions.ConditionScan, "_search", counting)
        matcher = matcher_of(pattern, context=TEXT)
        for start in range(0, len(text), size):
            matcher.feed(text[start : start + size])
            _ = matcher.safe_until
        matcher.finish()
    return total


@pytest.mark.parametrize(
    "pattern",
    [
        r"import[\s\S]*\d{9}",
        r"import.*\d{9}",
        r"^(?![\s\S]*zzz)",
        r"[\s\S]*zzz",
        r"\w+\s*:=",
        "zzz",
        r"import[^;]*\)$",
    ],
)
def test_work_grows_linearly_with_the_stream(monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    line = "import numbers 123 and strings, x = 4 "
    short = searched(monkeypatch, pattern, line * 300, 4)
    long = searched(monkeypatch, pattern, line * 1_200, 4)
    assert long <= max(short * 6, 2_000)


def test_a_block_that_no_rule_watches_is_only_kept() -> None:
    ruleset = RuleSet([Rule("r", condition=["x"], scope=["tool"])])
    matcher = ruleset.stream(TEXT)
    assert matcher.feed("x") == ()
    assert matcher.finish() == ()
    assert (matcher.text, matcher.safe_until) == ("x", 1)


def test_check_reports_what_a_stream_does() -> None:
    ruleset = RuleSet([Rule("a", condition=["b|a.*c"]), Rule("t", ast_condition=["eval($X)"])])
    text = "a b eval(c)"
    matcher = ruleset.stream(TOOL)
    streamed = [match for char in text for match in matcher.feed(char)]
    assert where(ruleset.check(text, TOOL)) == where([*streamed, *matcher.finish()])
