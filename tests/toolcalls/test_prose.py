from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttsr_proxy.toolcalls import FamilyTable, ProseEditReader, View, formats_told

FAMILIES = FamilyTable.default()
BLOCK = "<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n"
A = ("src/a.ts",)


def read(formats: set[str], *fragments: str) -> tuple[tuple[View, ...], list[str]]:
    """The views, and the text of each edit with its file name."""
    reader = ProseEditReader(formats, FAMILIES, project_root="/w/p")
    text, safe = "", 0
    grown: dict[int, str] = {}
    for fragment in fragments:
        text += fragment
        deltas = reader.feed(fragment)
        assert safe <= reader.safe_until <= len(text)
        safe = reader.safe_until
        for delta in deltas:
            grown[delta.view] = grown.get(delta.view, "") + delta.text
            assert (reader.tool(delta.view), delta.kind) in reader.contexts
        for region in reader.regions:
            assert region.end is not None or safe <= region.start
    for delta in reader.finish():
        grown[delta.view] = grown.get(delta.view, "") + delta.text
    assert reader.complete == len(reader.views())
    assert grown == {number: view.text for number, view in enumerate(reader.views())}
    assert all(reader.region(view) in reader.regions for view in grown)
    return reader.views(), [text[region.start : region.end] for region in reader.regions]


@pytest.mark.parametrize(
    ("edit", "path"),
    [
        (f"src/a.ts\n```ts\n{BLOCK}", A),
        (f"src/a.ts\n{BLOCK}", A),
        (f"**src/a.ts**\n\n````\n{BLOCK}", A),
        (f"### `src/a.ts`:\n```\n{BLOCK}", A),
        (f"```ts\nsrc/a.ts\n{BLOCK}", A),
        (f"/w/p/src/a.ts\n<source>\n{BLOCK}", A),
        (f"Makefile\n```\n{BLOCK}", ("Makefile",)),
        (f"```ts\n{BLOCK}", ()),
        (BLOCK, ()),
    ],
)
def test_a_search_replace_block_is_an_edit_from_its_file_name_on(edit, path):
    text = f"I will change it:\n\n{edit}```\nDone.\n"

    views, edits = read({"search-replace"}, text)

    assert views == (View(path, "new", "edit"),)
    assert edits == [edit]


def test_blocks_without_a_name_belong_to_the_file_before_them():
    text = f"src/a.ts\n```\n{BLOCK}{BLOCK}```\nand then\n```\n{BLOCK}```\nb.md\n```\n{BLOCK}```\n"

    views, _ = read({"search-replace"}, text)

    assert [view.paths for view in views] == [A, A, A, ("b.md",)]


def test_a_fence_behind_a_file_name_is_a_whole_file():
    views, edits = read({"whole"}, "Here:\n\nsrc/a.ts\n```ts\nx\n\ny\n```\nwith `x`\n```\nexample\n```\n")

    assert views == (View(A, "x\n\ny\n", "write"),)
    assert edits == ["src/a.ts\n```ts\nx\n\ny\n```\n"]


def test_unified_diffs_and_patches_are_split_by_file():
    diff = "```diff\n--- src/a.ts\n+++ src/a.ts\n@@ ... @@\n-old\n+new\n--- b.md\n+++ b.md\n+x\n```\n"
    views, edits = read({"udiff"}, f"So:\n{diff}Done.")
    assert views == (View(A, "new", "edit"), View(("b.md",), "x", "edit"))
    assert edits == [diff]

    patch = "*** Begin Patch\n*** Update File: src/a.ts\n@@\n-old\n+new\n*** End Patch\n"
    views, edits = read({"patch"}, f"So:\n{patch}Done.")
    assert views == (View(A, "new", "edit"),)
    assert edits == [patch]


def test_calls_as_xml_are_read_like_the_tools_that_they_name():
    write = "<write_to_file>\n<path>src/a.ts</path>\n<content>\nx </content>\ny\n</content>\n</write_to_file>"
    replace = f"<replace_in_file>\n<path>src/a.ts</path>\n<diff>\n{BLOCK}</diff>\n</replace_in_file>"
    run = "<execute_command><command>echo x > b.ts</command></execute_command>"
    files = "".join(
        f"<file>\n<path>{path}</path>\n<diff>\n<content>\n{BLOCK}</content>\n</diff>\n</file>\n"
        for path in ("src/a.ts", "b.md")
    )
    several = f"<apply_diff>\n<args>\n{files}</args>\n</apply_diff>"

    views, edits = read({"xml"}, f"First\n{write}\nthen {replace}\n{run}\n{several}\n")

    assert views == (
        View(A, "x </content>\ny\n", "write"),
        View(A, "new", "edit"),
        View((), "echo x > b.ts", "bash"),
        View(("b.ts",), "x\n", "write"),
        View(A, "new", "edit"),
        View(("b.md",), "new", "edit"),
    )
    assert [edit.rstrip("\n") for edit in edits] == [write, replace, run, several]


@pytest.mark.parametrize(
    "text",
    [
        "Use this:\n```ts\nconst x = 1\n```\n",
        "src/a.ts\nis the file\n```ts\nconst x = 1\n```\n",
        "```\nsrc/a.ts\nsrc/b.ts\n```\n",
        "see `<<<<<<< SEARCH` marks\n",
        "a < b\n<other>\n",
    ],
)
@pytest.mark.parametrize("format", ["search-replace", "whole", "udiff", "patch", "xml"])
def test_ordinary_prose_and_code_is_no_edit(text, format):
    views, edits = read({format}, text, "The end.\n")

    assert views == ()
    assert edits == []


def test_prose_is_safe_to_show_up_to_what_may_begin_an_edit():
    reader = ProseEditReader({"search-replace"}, FAMILIES)
    shown = []
    for piece in [
        "Hello ",
        "world.\n",
        "src/",
        "a.ts",
        "\n",
        "```ts\n",
        "<<<<<<< SEARCH\n",
        "old\n=======\n",
    ]:
        reader.feed(piece)
        shown.append(reader.safe_until)
    assert shown == [0, 13, 13, 13, 13, 13, 13, 13]

    reader.feed("new\n>>>>>>> REPLACE\n")
    assert reader.safe_until == 13 + len("src/a.ts\n```ts\n" + BLOCK)
    reader.feed("x" * 300)
    assert reader.safe_until == 13 + len("src/a.ts\n```ts\n" + BLOCK) + 300


def test_an_edit_that_is_cut_off_has_what_has_come_of_it():
    assert read({"search-replace"}, "a.ts\n```\n<<<<<<< SEARCH\nold\n=======\nne")[0] == (
        View(("a.ts",), "ne", "edit"),
    )
    assert read({"whole"}, "a.ts\n```\nx\ny")[0] == (View(("a.ts",), "x\ny", "write"),)
    assert read({"xml"}, "<write_to_file><path>a.ts</path><content>x")[0] == (View(("a.ts",), "x", "write"),)
    assert read({"patch"}, "*** Begin Patch\n*** Add File: a.ts\n+x")[0] == (View(("a.ts",), "x", "edit"),)


@pytest.mark.parametrize(
    ("prompt", "formats"),
    [
        ("Every *SEARCH/REPLACE block*:\n<<<<<<< SEARCH", {"search-replace"}),
        ("You MUST use this *file listing* format:", {"whole"}),
        ("like `diff -U0` would", {"udiff"}),
        ("between\n*** Begin Patch\nand", {"patch"}),
        ("<write_to_file> or <apply_diff> with <<<<<<< SEARCH", {"xml"}),
        ("You are a helpful assistant.", set()),
    ],
)
def test_the_prompt_tells_the_formats(prompt, formats):
    assert formats_told(["Hello", prompt]) == formats


PIECES = st.sampled_from(
    [
        *("a.ts\n", "```\n", "```ts\n", "<<<<<<< SEARCH\n", "=======\n", ">>>>>>> REPLACE\n", "x\n", "\n"),
        *("--- a.ts\n", "+++ a.ts\n", "+y\n", "*** Begin Patch\n", "*** End Patch\n", "**b.md**:\n"),
        *("<write_to_file>", "</write_to_file>\n", "<path>", "</path>", "<content>", "</content>", "é", "<"),
        *("*** Update File: a.ts\n", "<source>\n", "</source>\n", "z" * 250, "\r\n", "\ud83d", "\x00"),
    ]
)
FORMATS = st.sampled_from(
    [{"search-replace"}, {"whole"}, {"search-replace", "whole"}, {"udiff", "patch"}, {"xml"}, {"patch"}]
)


@settings(max_examples=300, deadline=None)
@given(formats=FORMATS, pieces=st.lists(PIECES, max_size=20), cuts=st.lists(st.integers(0, 900), max_size=12))
def test_any_split_gives_the_same_edits(cut, formats, pieces, cuts):
    text = "".join(pieces)

    assert read(formats, *cut(text, cuts)) == read(formats, text)


def test_very_long_lines_and_answers_are_read_in_small_pieces():
    text = "word " * 40_000 + "\n" + "src/a.ts\n```\n" + "line\n" * 20_000 + "```\n"
    pieces = [text[at : at + 4] for at in range(0, len(text), 4)]
    reader = ProseEditReader({"whole"}, FAMILIES)
    for piece in pieces:
        reader.feed(piece)
    reader.finish()

    (view,) = reader.views()
    assert view.text == "line\n" * 20_000


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_second_tag_on_a_line_does_not_let_go_of_the_first(cut):
    text = "Now <write_to_file><write_to_file>a.ts\n</write_to_file>"

    assert read({"xml"}, text[:cut], text[cut:]) == read({"xml"}, text)


def test_an_angle_bracket_that_is_no_tag_holds_nothing():
    reader = ProseEditReader({"xml"}, FAMILIES)

    reader.feed("if a < b and <writ")
    assert reader.safe_until == len("if a < b and ")
    reader.feed("ing>")
    assert reader.safe_until == len("if a < b and <writing>")
