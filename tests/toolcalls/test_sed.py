from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttsr_proxy.toolcalls.sed import added_by_sed


@pytest.mark.parametrize(
    ("script", "added"),
    [
        ("s/old/new/", ["new"]),
        ("s/old/new/g;s/a/b/", ["new", "b"]),
        ("s|a/b|c/d|g", ["c/d"]),
        (r"s/a\/b/c\/d/", ["c/d"]),
        (r"s/\(a\)/x\1y/", [r"x\1y"]),
        (r"s/a/one\ntwo \& three/", ["one\ntwo & three"]),
        ("s/a/one\\\ntwo/", ["one\ntwo"]),
        ("s/old/", []),
        ("s/old/cut", ["cut"]),
        ("s/old//", [""]),
        ("3s/old/new/", ["new"]),
        ("1,$ s/old/new/", ["new"]),
        ("/a;b/,/c/ s/old/new/", ["new"]),
        (r"\,path,s/old/new/", ["new"]),
        ("$!N;s/old/new/;P;D", ["new"]),
        ("/x/{s/old/new/;d}", ["new"]),
        ("2a more text", ["more text"]),
        ("2i\\\nfirst\\\nsecond", ["first\nsecond"]),
        ("/x/c\\  kept", ["kept"]),
        ("y/abc/xyz/;s/a/b/", ["b"]),
        ("# s/a/b/\ns/c/d/", ["d"]),
        ("p;d;w out.txt", []),
        ("", []),
    ],
)
def test_replacements_and_added_lines_count_and_patterns_do_not(script, added):
    assert list(added_by_sed(script)) == added


@given(st.text(st.sampled_from("s/|aic\\{};,$!0129\n #y&x"), max_size=40))
def test_no_script_makes_it_fail(script):
    added_by_sed(script)


def test_a_very_long_script_is_read_to_its_end():
    assert added_by_sed("s/a/b/;" * 20_000 + "$a end")[-1] == "end"
    assert added_by_sed("/" * 100_000) == ()
