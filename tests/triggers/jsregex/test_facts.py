"""What is known of a condition before any text has come."""

import pytest

from ttsr_proxy.triggers.jsregex import compile_condition


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"foo.*bar", True),
        (r"(?m)^\t*foo$", True),
        (r"\bfoo\b(?! bar)", True),
        (r"(?<!x)foo", True),
        (r"('|\")x\1", True),
        (r"foo$", False),
        (r"^foo", False),
        (r"foo\s", False),
        (r"[^x]foo", False),
        (r"(?s)foo.", False),
        (r"foo(?![^x])", False),
        (r"(?<!\n)foo", False),
        (r"(\s)x\1", False),
    ],
)
def test_line_bound_conditions_neither_read_nor_see_a_line_terminator(pattern: str, expected: bool) -> None:
    assert compile_condition(pattern).line_bound == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"[\s\S]*x", True),
        (r"(?s).*x", True),
        (r"^(?![\s\S]*License)", True),
        (r"[^;]*;", True),
        (r"(?:foo)?[\s\S]*bar", True),
        (r"(?:(?!END)[\s\S])*END", True),
        (r"x(?=y)|\w[^]*z", True),
        (r"foo[\s\S]*bar", False),
        (r"(?<=foo)[\s\S]*bar", False),
        (r"(?=foo)[\s\S]*bar", False),
        (r".*x", False),
        (r"\s*x", False),
        (r"[\s\S]{0,50}x", False),
        (r"[\s\S]*", False),
        (r"foo$", False),
        (r"foo(?!\s*bar)", False),
    ],
)
def test_open_ended_conditions_need_no_start_and_find_no_end(pattern: str, expected: bool) -> None:
    assert compile_condition(pattern).open_ended == expected


@pytest.mark.parametrize(
    ("pattern", "literals", "case_insensitive"),
    [
        (r"print\(", (("print(",),), False),
        (r"(?i)pre.EXISTING", (("existing",), ("pre",)), True),
        (r"https?://", (("http://", "https://"),), False),
        (r"(?:foo|bar)baz\d+qux", (("barbaz", "foobaz"), ("qux",)), False),
        (r"foo\b\s*bar", (("bar",), ("foo",)), False),
        (r"foo(?:\d+|x*)", (("foo",),), False),
        (r"(?:ab){2}c", (("ababc",),), False),
        (r"(?:ab){2,}c", (("abab",), ("c",)), False),
        (r"(?:a|xay)", (("a",),), False),
        (r"(?:foo\d+|bar.)", (("bar", "foo"),), False),
        (r"(?=foo)x(?!bar)(?<=q)", (("x",),), False),
        (r"(?i)naïve", (("na",), ("ve",)), True),
        (r"日本語", (("日本語",),), False),
        (r"x?", (), False),
        (r"foo|", (), False),
        (r"\w+", (), False),
    ],
)
def test_literals_are_what_every_match_contains(
    pattern: str, literals: tuple[tuple[str, ...], ...], case_insensitive: bool
) -> None:
    condition = compile_condition(pattern)
    assert (condition.literals, condition.case_insensitive) == (literals, case_insensitive)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"print\(", True),
        (r"\bfoo\s*\(", True),
        (r"a\d*b\d*c", True),
        (r"TODO(?! ?\()", True),
        (r"(?:foo|bar)\s+baz", True),
        (r"(a+)+$", False),
        (r"(?:a|aa){30}", False),
        (r"\s*,", False),
        (r"a.*b", False),
        (r"a\d*\d*b", False),
        (r"a\d*[\d\s]*b", False),
        (r"foo(?!.*bar)", False),
        (r"(['\"]).\1", False),
        (r".{0,30}.{0,30}x", False),
    ],
)
def test_only_narrow_patterns_count_as_linear(pattern: str, expected: bool) -> None:
    assert compile_condition(pattern).linear == expected


@pytest.mark.parametrize(
    ("pattern", "lookbehind", "shortest", "longest"),
    [
        (r"foo", 0, 3, 3),
        (r"\bfo?", 1, 1, 2),
        (r"(?m)^a{2,4}", 1, 2, 4),
        (r"(?<=ab\b)c+", 3, 1, None),
        (r"(?<!a*)c", None, 1, 1),
        (r"(ab?)\1", 0, 1, 4),
        (r"|abc", 0, 0, 3),
    ],
)
def test_lengths_and_left_context(
    pattern: str, lookbehind: int | None, shortest: int, longest: int | None
) -> None:
    condition = compile_condition(pattern)
    assert condition.max_lookbehind == lookbehind
    assert (condition.min_length, condition.max_length) == (shortest, longest)


@pytest.mark.parametrize(
    ("pattern", "needs_end", "monotone"),
    [
        (r"foo", False, True),
        (r"(?<=x)foo.*?bar", False, True),
        (r"\bfoo(?=bar)", False, True),
        (r"foo\b", False, False),
        (r"(?m)foo$", False, False),
        (r"foo(?!\s*bar)", False, False),
        (r"foo$", True, False),
        (r"foo(?![\s\S]*bar)", True, False),
    ],
)
def test_which_verdicts_wait_for_more_text(pattern: str, needs_end: bool, monotone: bool) -> None:
    condition = compile_condition(pattern)
    assert (condition.needs_end, condition.monotone) == (needs_end, monotone)
