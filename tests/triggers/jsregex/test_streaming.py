"""The robust variant against `final`, by brute force over short texts."""

from itertools import product

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from ttsr_proxy.triggers.jsregex import compile_condition

ALPHABET = "ab \n"
CONTINUATIONS = ["".join(letters) for length in range(4) for letters in product(ALPHABET, repeat=length)]

_ASSERTIONS = ["^", "$", r"\b", r"\B"]
_ATOMS = st.sampled_from(
    ["a", "b", "ab", " ", r"\n", ".", r"\w", r"\W", r"\s", "[ab]", "[^a]", "[^]", r"[^b\n]", *_ASSERTIONS]
)
_LOOPS = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,2}", "*?", "+?", "??", "{0,2}?"])
_OPENINGS = st.sampled_from(["(?:", "(", "(?=", "(?!", "(?!", "(?<=", "(?<!"])


def _repeatable(item: str) -> bool:
    return item not in _ASSERTIONS and not item.startswith(("(?<=", "(?<!"))


def _sequences(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    looped = st.builds(lambda item, loop: item + loop if _repeatable(item) else item, items, _LOOPS)
    sequence = st.lists(looped, max_size=4).map("".join)
    return st.lists(sequence, min_size=1, max_size=2).map("|".join)


PATTERNS = st.builds(
    lambda flags, pattern, reference: flags + pattern + reference,
    st.sampled_from(["", "", "(?m)", "(?s)", "(?i)", "(?ims)"]),
    _sequences(
        st.recursive(
            _ATOMS,
            lambda inner: st.builds(lambda opening, body: f"{opening}{body})", _OPENINGS, _sequences(inner)),
            max_leaves=6,
        )
    ),
    st.sampled_from(["", "", "", r"\1"]),
)
PREFIXES = st.text(ALPHABET, max_size=5)


@settings(max_examples=100, deadline=None)
@given(PATTERNS, PREFIXES)
def test_a_match_of_the_robust_variant_survives_every_continuation(pattern: str, prefix: str) -> None:
    condition = compile_condition(pattern)
    for start in range(len(prefix) + 1):
        if condition.streaming.match(prefix, start):
            for continuation in CONTINUATIONS:
                assert condition.final.match(prefix + continuation, start)


@settings(max_examples=100, deadline=None)
@given(PATTERNS, PREFIXES)
def test_no_start_is_given_up_from_which_a_match_could_still_come(pattern: str, prefix: str) -> None:
    condition = compile_condition(pattern)
    found = condition.streaming.search(prefix, partial=True)
    if found is not None and not found.partial:
        return
    alive_from = len(prefix) if found is None else found.start()
    for continuation in CONTINUATIONS:
        for start in range(alive_from):
            assert not condition.final.match(prefix + continuation, start)


@settings(max_examples=100, deadline=None)
@given(PATTERNS, st.text(ALPHABET, max_size=7))
def test_facts_hold_for_every_match(pattern: str, text: str) -> None:
    condition = compile_condition(pattern)
    if condition.line_bound:
        lines = any(condition.final.search(line) for line in text.split("\n"))
        assert lines == (condition.final.search(text) is not None)
    for start in range(len(text) + 1):
        match = condition.final.match(text, start)
        if match is None:
            continue
        length = match.end() - start
        assert condition.min_length <= length
        assert condition.max_length is None or length <= condition.max_length
        found = match[0].lower() if condition.case_insensitive else match[0]
        assert all(any(literal in found for literal in group) for group in condition.literals)
        assert not condition.monotone or condition.streaming.match(text, start)
        left = condition.max_lookbehind
        if left is not None and left < start:
            assert condition.final.match(text[start - left :], left)


@pytest.mark.parametrize(
    ("pattern", "undecided", "decided"),
    [
        (r"foo\b", "foo", "foo."),
        (r"foo\B", "foo", "foox"),
        (r"(?m)foo$", "foo", "foo\r"),
        (r"TODO(?!\()", "TODO", "TODO:"),
        (r"related(?! to)", "related t", "related th"),
        (r"any(?![\w-])", "any", "any;"),
        (r"foo(?!\s*\()", "foo  ", "foo  x"),
        (r"foo(?!bar\b)", "foobar", "foobarx"),
        (r"foo(?!bar$)", "foobar", "foobar."),
        (r"print\((?!.*file=)", "print(a, b)", "print(a, b)\n"),
        (r"(['\"])(?!\1)", "'", "'x"),
        (r"(?<!ab\b)c?$|x(?<!x\b)", "x", "xy"),
        (r"x(?!(?:a|b){3}y)", "xaba", "xabaa"),
    ],
)
def test_a_verdict_falls_with_the_first_character_that_settles_it(
    pattern: str, undecided: str, decided: str
) -> None:
    streaming = compile_condition(pattern).streaming
    waiting = streaming.search(undecided, partial=True)
    assert waiting is not None
    assert waiting.partial
    settled = streaming.search(decided, partial=True)
    assert settled is not None
    assert not settled.partial


@pytest.mark.parametrize("pattern", [r"foo$", r"foo(?![\s\S]*bar)", r"foo(?![^]{2000}x)", r"(?=(a+))\1$"])
def test_what_only_the_end_can_settle_stays_undecided(pattern: str) -> None:
    condition = compile_condition(pattern)
    assert condition.needs_end
    found = condition.streaming.search("a foo", partial=True)
    assert found is not None
    assert found.partial


def test_the_engine_drops_the_partial_match_of_a_lazy_loop_before_a_lookbehind() -> None:
    # If this fails the engine has been mended, and `robust` may keep lazy loops.
    assert regex.compile("x.*?(?<!b)c").match("xb", partial=True) is None


def test_a_lookahead_that_can_no_longer_hold_gives_its_start_up() -> None:
    streaming = compile_condition(r"foo(?![\s\S]*bar)").streaming
    text = "a foo and a bar."
    found = streaming.search(text, partial=True)
    assert found is None or found.start() == len(text)


def test_the_engine_prefers_a_complete_match_to_an_earlier_partial_one() -> None:
    found = regex.compile("abc|b").search("ab", partial=True)
    assert found is not None
    assert (found.partial, found.span()) == (False, (1, 2))


def test_the_engine_reports_a_partial_match_where_no_character_can_follow() -> None:
    waiting = regex.compile(r"foo(?=[^\x00-\U0010FFFF])").search("foo", partial=True)
    assert waiting is not None
    assert (waiting.partial, waiting.start()) == (True, 0)
    beyond = regex.compile(r"\Afoo(?=[^\x00-\U0010FFFF])").search("foox", partial=True)
    assert beyond is None
