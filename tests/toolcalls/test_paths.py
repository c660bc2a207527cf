from __future__ import annotations

import pytest

from ttsr_proxy.toolcalls.paths import normalise_path


@pytest.mark.parametrize(
    ("path", "root", "expected"),
    [
        ("/w/p/src/a.ts", "/w/p", "src/a.ts"),
        ("/w/p/src/a.ts", "/w/p/", "src/a.ts"),
        ("/w/p2/a.ts", "/w/p", "/w/p2/a.ts"),
        ("/tmp/a.ts", "/w/p", "/tmp/a.ts"),
        ("src\\a.ts", "/w/p", "src/a.ts"),
        ("C:\\w\\p\\src\\a.ts", "c:\\w\\P", "src/a.ts"),
        ("/W/P/a.ts", "/w/p", "/W/P/a.ts"),
        ("./a.ts", "/w/p", "./a.ts"),
        ("../a.ts", "/w/p", "../a.ts"),
        ("/w/p", "/w/p", "/w/p"),
        ("/w/p/", "/w/p", "/w/p/"),
        ("/a.ts", "/", "a.ts"),
        ("/w/p/a.ts", None, "/w/p/a.ts"),
        ("", "/w/p", ""),
    ],
)
def test_a_path_below_the_root_becomes_relative_and_all_others_stay(path, root, expected):
    assert normalise_path(path, root) == expected
