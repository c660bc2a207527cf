"""What conditions match in a complete text: JavaScript's answers, checked by hand and with Node."""

import pytest

from ttsr_proxy.triggers.jsregex import PatternError, compile_condition

MATCHES = [
    # Line ends: $ is the very end only, and four characters end a line.
    (r"foo$", "foo\n", False),
    (r"(?m)a$", "a\r\n", True),
    (r"(?m)^b", "a\u2028b", True),
    (r"(?m)^b", "a\x85b", False),
    (r"a.b", "a\u2029b", False),
    (r"a.b", "a\x85b", True),
    (r"(?s)a.b", "a\nb", True),
    # ASCII word characters and digits, but JavaScript's own white space.
    (r"\bé", "aé", True),
    (r"\d", "٣", False),
    (r"\s", "\ufeff", True),
    (r"\s", "\x1c", False),
    (r"^\S$", "\x85", True),
    # The i flag compares upper case forms and never leads from outside ASCII into it.
    (r"(?i)é", "É", True),
    (r"(?i)[à-ý]", "É", True),
    (r"(?i)[^é]", "É", False),
    (r"(?i)µ", "μ", True),
    (r"(?i)ÿ", "Ÿ", True),
    (r"(?i)k", "\u212a", False),
    (r"(?i)\u212a", "k", False),
    (r"(?i)s", "ſ", False),
    (r"(?i)ſ", "S", False),
    (r"(?i)ß", "ẞ", False),
    (r"(?i)straße", "STRASSE", False),
    (r"(?i)[^x]", "X", False),
    (r"(?i)let me-do_IT", "LET ME-DO_it", True),
    (r"(?i:a)b", "Ab", True),
    (r"(?i:a)b", "AB", False),
    (r"(?i)a(?-i:b)", "AB", False),
    (r"(?i)a(?-i:b)", "Ab", True),
    (r"(?s-m:.)(?m:^)b", "\nb", True),
    # Annex B: what is not an escape or a quantifier is the characters themselves.
    (r"^\k$", "k", True),
    (r"^\8$", "8", True),
    (r"^\101$", "A", True),
    (r"^\08$", "\x008", True),
    (r"^\x4$", "x4", True),
    (r"^\u00$", "u00", True),
    (r"^\u{3}$", "uuu", True),
    (r"^\c$", "\\c", True),
    (r"^\cj$", "\n", True),
    (r"^[\c]$", "\\", True),
    (r"^[\c1]$", "\x11", True),
    (r"^[\b]$", "\b", True),
    (r"^[\B]$", "B", True),
    (r"^a{,2}$", "a{,2}", True),
    (r"^a{$", "a{", True),
    (r"^x{y}$", "x{y}", True),
    (r"^(?=a)*b$", "b", True),
    (r"^(?=b){1,2}b$", "b", True),
    # Classes: [] matches nothing, [^] anything, and there are no set operations.
    (r"[]", "]", False),
    (r"[^]", "\n", True),
    (r"^[]]", "]", False),
    (r"^[^]]$", "x]", True),
    (r"^[a-\d]$", "-", True),
    (r"^[\d-x]$", "-", True),
    (r"^[[:alpha:]]$", ":]", True),
    (r"^[+--]$", ",", True),
    (r"^[a&&b]$", "&", True),
    (r"[\ud83d\ude00]", "😀", True),
    # Groups: references to what did not take part are empty.
    (r"^(?:(a)|b)\1c$", "bc", True),
    (r"^\1(a)$", "a", True),
    (r"^(a\1)$", "a", True),
    (r"^(?:a|(b))\1$", "a", True),
    (r"^(?!(a))b\1$", "b", True),
    (r"^(?:(a)|b)*\1$", "ab", True),
    (r"^(?:(a)|b)*\1$", "abaa", True),
    (r"(?<=\1(a))b", "aab", True),
    (r"^(?<=(a)\1)b|x", "b", False),
    (r"(?i)^(é)\1$", "éÉ", True),
    (r"(?i)^(a)\1$", "aA", True),
    (r"(?<x>a)\k<x>", "aa", True),
    (r"\k<x>(?<x>a)", "a", True),
    (r"^(?:(?<x>a)|(?<x>b))\k<x>$", "bb", True),
    (r"^(?:(?<x>a)|(?<x>b))\k<x>$", "ba", False),
    (r"(?<$é\u0061>x)\k<$éa>", "xx", True),
    (r"(?<=^a+)b", "aab", True),
    (r"(?:|a)*b", "aab", True),
]


@pytest.mark.parametrize(("pattern", "text", "expected"), MATCHES)
def test_a_condition_matches_as_in_javascript(pattern: str, text: str, expected: bool) -> None:
    condition = compile_condition(pattern)
    assert (condition.final.search(text) is not None) == expected
    assert condition.portable
    assert condition.warnings == ()


ERRORS = [
    ("(a", "missing )", 0),
    ("ab)", "unmatched )", 2),
    ("*a", "nothing to repeat", 0),
    ("a**", "nothing to repeat", 2),
    ("a|{1}", "nothing to repeat", 2),
    ("^*", "nothing to repeat", 1),
    (r"\b+", "nothing to repeat", 2),
    ("(?<=a)+", "nothing to repeat", 6),
    ("(?<!a){2}", "nothing to repeat", 6),
    ("a{2,1}", "numbers out of order in {} quantifier", 1),
    ("[b-a]", "range out of order in class", 1),
    ("x[a", "missing ]", 1),
    ("a\\", "\\ at the end of the pattern", 1),
    ("a(?i)b", "invalid group", 1),
    ("(?iq:a)", "invalid flags in group", 0),
    ("(?i-i:a)", "invalid flags in group", 0),
    ("(?-:a)", "invalid flags in group", 0),
    ("(?|a)", "invalid group", 0),
    ("(?R)", "invalid group", 0),
    ("(?<1>a)", "invalid group name", 3),
    ("(?<a", "invalid group name", 3),
    ("(?<a>x)(?<a>y)", "group name 'a' is used twice", 7),
    (r"(?<a>x)\k<b>", "no group is named 'b'", 7),
    (r"(?<a>x)\k", "invalid named reference", 7),
]


@pytest.mark.parametrize(("pattern", "message", "position"), ERRORS)
def test_a_mistake_is_reported_with_its_position(pattern: str, message: str, position: int) -> None:
    with pytest.raises(PatternError) as caught:
        compile_condition(pattern)
    assert (caught.value.message, caught.value.position) == (message, position)


@pytest.mark.parametrize(
    "pattern",
    [
        "a" * 10_001,
        "(" * 201 + ")" * 201,
        "(?!" * 200 + "a" + ")" * 200,
        "a{1000000000}",
        "(?:a{1000}){1000}",
        "(?:" * 100 + "(a|b)" + "){1,2}" * 100,
        "(?>" + "(?:" * 30 + "a" + ")+" * 30 + ")",
    ],
    ids=lambda pattern: pattern[:20],
)
def test_a_pattern_beyond_the_limits_is_an_error_and_nothing_worse(pattern: str) -> None:
    with pytest.raises(PatternError):
        compile_condition(pattern)


def test_deep_but_permitted_nesting_compiles() -> None:
    assert compile_condition("(" * 200 + "a" + ")" * 200).final.search("a")


def test_a_count_beyond_all_texts_is_no_limit() -> None:
    assert compile_condition("^a{1,99999999999999999999}$").final.search("a" * 50)
