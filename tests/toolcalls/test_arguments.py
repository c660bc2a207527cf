from __future__ import annotations

import pytest

from ttsr_proxy.toolcalls.arguments import ArgumentPattern


@pytest.mark.parametrize(
    ("pattern", "location", "matches"),
    [
        ("path", ("path",), True),
        ("path", ("Path",), True),
        ("path", ("x", "path"), False),
        ("path", ("file_path",), False),
        ("*path", ("file_path",), True),
        ("*path", ("path",), True),
        ("*path", ("pathology",), False),
        ("*paths[]", ("paths", 3), True),
        ("*paths[]", ("paths",), False),
        ("edits[].newText", ("edits", 0, "newText"), True),
        ("edits[].newText", ("edits", "0", "newText"), False),
        ("action.command[]", ("action", "command", 1), True),
        ("path", (), False),
    ],
)
def test_a_pattern_names_the_arguments_at_its_place(pattern, location, matches):
    assert ArgumentPattern(pattern).matches(location) is matches


@pytest.mark.parametrize(
    ("pattern", "location", "reaches"),
    [
        ("path", ("edits", 0, "newText"), True),
        ("edits[].path", ("edits", 0, "newText"), True),
        ("edits[].path", ("content",), False),
        ("edits[].path", ("edits", 0), False),
        ("path", (), False),
    ],
)
def test_a_path_reaches_what_stands_in_its_object_and_below(pattern, location, reaches):
    assert ArgumentPattern(pattern).reaches(location) is reaches


@pytest.mark.parametrize("text", ["", " ", "a..b", "[]", "[].a", "a[0]", "a b", ".a", "a."])
def test_what_is_no_pattern_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match="such as 'path'"):
        ArgumentPattern(text)
