from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttsr_proxy.toolcalls.patches import PatchReader


def read(fragments: list[str]) -> list[tuple[tuple[str, ...], str]]:
    reader = PatchReader()
    sections: dict[int, tuple[tuple[str, ...], list[str]]] = {}
    for piece in [piece for fragment in fragments for piece in reader.feed(fragment)] + reader.finish():
        paths, pieces = sections.setdefault(piece.section, (piece.paths, []))
        assert paths == piece.paths
        pieces.append(piece.text)
    assert list(sections) == list(range(len(sections)))
    return [(paths, "".join(pieces)) for paths, pieces in sections.values()]


@pytest.mark.parametrize(
    ("patch", "sections"),
    [
        (
            "*** Begin Patch\n*** Update File: a.ts\n@@ f\n ctx\n-old\n+const a = 1\n+\n+b\n"
            "*** Add File: README.md\n+note: any\n*** End Patch\n",
            [(("a.ts",), "const a = 1\n\nb"), (("README.md",), "note: any")],
        ),
        ("*** Update File: a.ts\n*** Move to: b.ts\n@@\n+x", [(("b.ts", "a.ts"), "x")]),
        ("*** Delete File: a.ts\n", [(("a.ts",), "")]),
        ("*** Delete File: a.ts", [(("a.ts",), "")]),
        (
            "*** Update File: a.ts\n+1\n*** Update File: b.ts\n+2\n*** Update File: a.ts\n+3",
            [(("a.ts",), "1\n3"), (("b.ts",), "2")],
        ),
        ("*** Update File: Cargo.toml\n[package]\n+name\n", [(("Cargo.toml",), "name")]),
        ("*** Update File: a.ts\r\n+x\r\n+y\rz\r\n", [(("a.ts",), "x\ny\rz")]),
        ("*** Add File: a b.ts  \n++1\n+-2\n", [(("a b.ts",), "+1\n-2")]),
        (
            "[src/a.ts#AB12]\nPUT 3.=3:\n+one\nPUT >$:\n+two\n[README.md#0000]\nPUT >$:\n+note: any",
            [(("src/a.ts",), "one\ntwo"), (("README.md",), "note: any")],
        ),
        ("*** Begin Patch\n[a.ts]\nSWAP 1.=1:\n+x\n*** End Patch", [(("a.ts",), "x")]),
        ('["a b.ts"#12AF]\n+x', [(("a b.ts",), "x")]),
        ("[a.ts#0000]\nREM", [(("a.ts",), "")]),
        ("+early\n[a.ts#0000]\n+late", [((), "early"), (("a.ts",), "late")]),
        (
            "--- a/a.ts\n+++ b/a.ts\n@@ -1,2 +1,2 @@\n ctx\n-old\n+x\n--- a/b.md\n+++ b/b.md\n@@\n+y\n",
            [(("a.ts",), "x"), (("b.md",), "y")],
        ),
        ("--- /dev/null\n+++ b/a.ts\t2026-01-01\n+x", [(("a.ts",), "x")]),
        ("--- a/a.ts\n+++ /dev/null\n-x", [(("a.ts",), "")]),
        ("--- old.ts\n+++ new.ts\n+x", [(("new.ts", "old.ts"), "x")]),
        ("*** Update File: a.sql\n--- note\n+++ note\n+x", [(("a.sql",), "++ note\nx")]),
        ("--- a.ts\n+++ a.ts\n-- x\n--- y\n+z\n[b.md]\n+w", [(("a.ts",), "z\nw")]),
        ("no patch at all\n- x", []),
        ("", []),
    ],
)
def test_only_added_lines_count_each_for_its_own_file(patch, sections):
    assert read([patch]) == sections
    assert read(list(patch)) == sections


@settings(max_examples=100, deadline=None)
@given(
    lines=st.lists(
        st.sampled_from(
            [
                "*** Begin Patch",
                "--- a/d.ts",
                "+++ b/d.ts",
                "*** Update File: a.ts",
                "*** Add File: b.md",
                "*** Delete File: c",
                "*** Move to: d.ts",
                "[e.ts#12AB]",
                "[]",
                "*",
                "+",
                "+x\r",
                "+ y",
                "-z",
                " [k]",
                "",
                "\r",
            ]
        ),
        max_size=14,
    ),
    cuts=st.lists(st.integers(0, 300), max_size=30),
)
def test_a_patch_means_the_same_however_it_is_cut(cut, lines, cuts):
    patch = "\n".join(lines)

    assert read(cut(patch, cuts)) == read([patch])
