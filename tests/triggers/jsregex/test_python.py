"""Conditions that only Python understands."""

import pytest

from ttsr_proxy.triggers.jsregex import PatternError, compile_condition


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"(?P<q>['\"])x(?P=q)", "'x'", True),
        (r"(?P<q>['\"])x(?P=q)", "'x\"", False),
        (r"(?#an explanation)foo$", "foo\n", False),
        (r"(?P<n>foo)\Z", "foo", True),
        (r"(?P<n>a){,2}b", "b", True),
        (r"(?P<n>[]x])", "]", True),
        (r"a++b", "aab", True),
        (r"a++ab", "aab", False),
        (r"(?>a|ab)c", "abc", False),
        (r"(a)?b(?(1)c|d)", "bd", True),
        ("(?x) f o o  # it's [odd\n bar", "foobar", True),
        (r"(?>x){e<=1}", "x{e<=1}", True),
        (r"(?>x){e<=1}", "y", False),
        (r"^(?>[[:alpha:]])]", "q]", False),
        (r"(?a)\w", "é", False),
        (r"(?>\w)", "é", True),
    ],
)
def test_python_syntax_keeps_pythons_meaning_and_is_called_not_portable(
    pattern: str, text: str, expected: bool
) -> None:
    condition = compile_condition(pattern)
    assert (condition.final.search(text) is not None) == expected
    assert not condition.portable
    assert "not portable" in condition.warnings[0]


@pytest.mark.parametrize(
    "pattern", ["(?P<a>", "(?>a", "a(?i)b", "(?|a)", "(?R)", "(?<=a)+", "*a", "(?P<a>x)(?P=b)", "(?e)x"]
)
def test_what_is_neither_javascript_nor_python_is_an_error(pattern: str) -> None:
    with pytest.raises(PatternError):
        compile_condition(pattern)


def test_respelled_groups_keep_all_that_is_known_of_a_javascript_pattern() -> None:
    condition = compile_condition("(?P<word>foo) bar")
    assert condition.monotone
    assert condition.literals == (("foo bar",),)


def test_nothing_is_claimed_of_a_pattern_that_only_python_understands() -> None:
    condition = compile_condition("a++b")
    match = condition.streaming.search("xab", partial=True)
    assert match is not None
    assert match.partial
    assert match.start() == 0
    assert (condition.line_bound, condition.monotone, condition.linear) == (False, False, False)
    assert (condition.needs_end, condition.open_ended, condition.min_length) == (True, True, 0)
    assert (condition.literals, condition.max_length, condition.max_lookbehind) == ((), None, None)
