"""For any rules and any text: the same matches at any split, and nothing shown that is matched later."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from matching import Where, split_at, where

from ttsr_proxy import Rule, RuleSet, StreamContext
from ttsr_proxy.triggers.jsregex import compile_condition

# Each shape of condition that the matcher treats in its own way: with and without literals, bounded or not,
# anchored, looking to either side, in one line or across lines, open from anywhere.
PATTERNS = (
    "foo", r"foo\b", "foo$", "(?m)foo$", "^foo", "(?m)^foo", "foo(?!bar)", "foo(?=bar)", "(?<!x)foo",
    "(?<=x)foo", "foo.*bar", r"foo[\s\S]*bar", "foo[^b]*b", "a|foo", "x|", r"\bfoo\b", "(?i)FOO",
    r"[\s\S]*foo",
    r"^(?![\s\S]*foo)", "^(?!.*foo)", r"(f)(o)\2", "fo+?", "fo{2,3}(?!o)", r"foo\s*$", r"\Bfoo",
    r"foo|bar|x\n", ".", "(?s)a.*x", "(foo|fo)o(?!b)", "(?=.*x)foo", r"(?<!a\s)foo", r"foo(?!\s*bar)",
    "[^x]foo", "^$", "(?m)^$", r"bar[^\n]{0,5}x", r"foo(?![\s\S]*bar)", r"\w+(?=x)", r"(?<=\bfoo )bar",
    "(?i)straße", "😀+x", "$", r"\b", "(?!a)", r"\s$", "(?<=o)$", "[^a]{3}b", r"(?i)[a-f]o+\s",
)  # fmt: skip
PIECES = (
    "f", "o", "oo", "foo", "bar", "x", "a", "b", " ", "\n", "\r\n", "foobar", "FOO", "é", "😀", "straße",
    "STRASSE", "foo ", "\u2028", "xfoo", "\u0130",
)  # fmt: skip
TEXT = StreamContext("text")

conditions = st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3, unique=True)
rules = st.lists(conditions, min_size=1, max_size=4)
texts = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
cuts = st.lists(st.integers(0, 60), max_size=8)


def stream(ruleset: RuleSet, deltas: list[str]) -> list[Where]:
    """The matches of a stream; checks on the way what `safe_until` promises."""
    matcher = ruleset.stream(TEXT)
    found: list[Where] = []
    safe = 0
    for step in (*deltas, None):
        matches = matcher.finish() if step is None else matcher.feed(step)
        for match in matches:
            if not compile_condition(match.pattern).open_ended:
                assert match.start >= safe
        found += where(matches)
        assert safe <= matcher.safe_until <= len(matcher.text)
        safe = matcher.safe_until
    return sorted(found)


@settings(max_examples=100)
@given(rules, texts, cuts)
def test_any_split_gives_the_verdict_of_the_complete_text(
    patterns: list[list[str]], text: str, where_cut: list[int]
) -> None:
    ruleset = RuleSet([Rule(f"r{number}", condition=each) for number, each in enumerate(patterns)])
    expected = stream(ruleset, list(text))
    for rule in ruleset.rules:
        matching = [p for p in rule.condition or () if compile_condition(p).final.search(text)]
        reported = [pattern for name, _, pattern, _, _ in expected if name == rule.name]
        assert len(reported) == bool(matching)
        assert set(reported) <= set(matching)
    assert stream(ruleset, split_at(text, where_cut)) == expected
    assert where(ruleset.check(text, TEXT)) == expected


@settings(max_examples=25)
@given(st.integers(0, 400), st.integers(1, 3_000), st.integers(1, 700))
def test_a_long_open_match_has_the_same_span_at_any_split(before: int, middle: int, size: int) -> None:
    text = "x" * before + "foo" + "y z\n" * middle + "bar" + "foo bar " * 20
    ruleset = RuleSet([Rule("r", condition=[r"foo[\s\S]*?bar", r"foo[^q]*bar f"])])
    assert stream(ruleset, [text[i : i + size] for i in range(0, len(text), size)]) == [
        ("r", "regex", r"foo[\s\S]*?bar", before, before + 6 + 4 * middle)
    ]
