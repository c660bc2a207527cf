from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttsr_proxy.toolcalls import FamilyTable, ToolCallReader, View, ViewDelta, views_of_call
from ttsr_proxy.toolcalls.document import MAX_SINGLE_VIEWS

FAMILIES = FamilyTable.default()
TOOLS = [*(family.tools[0] for family in FAMILIES.families), "_edit", "MultiEdit", "deploy"]
CUTS = st.lists(st.integers(0, 600), max_size=40)
TEXT = st.text(st.characters(exclude_categories=()) | st.sampled_from('"\\\n+[]#*\ud83d\ude00'), max_size=12)
PATCH_TEXT = st.lists(
    st.sampled_from(["*** Update File: a.ts", "*** Move to: b.ts", "[c.md#12AB]", "+x", "-y", " z", "+"]),
    max_size=6,
).map("\n".join)
NAMES = st.sampled_from(
    [
        *("path", "file_path", "filePath", "notebook_path", "paths", "source", "destination", "target"),
        *(
            "content",
            "new_string",
            "old_string",
            "newString",
            "new_source",
            "command",
            "cmd",
            "code",
            "file_text",
        ),
        *("new_str", "insert_text", "input", "patchText", "pattern", "edits", "replacements"),
    ]
)
ARGUMENTS = st.dictionaries(
    NAMES,
    TEXT
    | PATCH_TEXT
    | st.integers()
    | st.none()
    | st.lists(TEXT, max_size=3)
    | st.lists(st.dictionaries(NAMES | st.just("newText"), TEXT, max_size=3), max_size=3),
    max_size=5,
)


def read(tool: str, fragments: list[str], **options) -> tuple[View, ...]:
    """The views of a streamed call; its deltas must add up to them."""
    reader = ToolCallReader(tool, FAMILIES, **options)
    deltas = [delta for fragment in fragments for delta in reader.feed(fragment)]
    deltas += reader.finish()
    views = reader.views()
    assert {view.kind for view in views} <= reader.kinds
    assert added_up(deltas) == dict(enumerate(views))
    assert reader.finish() == ()
    return views


def added_up(deltas: list[ViewDelta]) -> dict[int, View]:
    views: dict[int, View] = {}
    for delta in deltas:
        so_far = views.get(delta.view, View(delta.paths, "", delta.kind))
        assert (so_far.paths, so_far.kind) == (delta.paths, delta.kind)
        views[delta.view] = View(delta.paths, so_far.text + delta.text, delta.kind)
    return dict(sorted(views.items()))


@settings(max_examples=100, deadline=None)
@given(tool=st.sampled_from(TOOLS), arguments=ARGUMENTS, cuts=CUTS)
def test_any_split_gives_the_views_of_the_parsed_arguments(cut, tool, arguments, cuts):
    document = json.dumps(arguments, separators=(",", ":"), ensure_ascii=False)

    views = read(tool, cut(document, cuts), project_root="/w/p")

    assert views == views_of_call(tool, json.loads(document), FAMILIES, project_root="/w/p")
    assert views == views_of_call(tool, document, FAMILIES, project_root="/w/p")
    for view in views:
        view.text.encode()


@settings(max_examples=100, deadline=None)
@given(
    tool=st.sampled_from(TOOLS),
    text=st.text(st.sampled_from('{}[]",:\\u0d8 \n1+#*a\x00\ud83d\ude00'), max_size=50),
    prefix=st.sampled_from(["", "{", '{"path":"a","content":"x', '{"path":"a"}', "[a.ts#00]\n+"]),
    freeform=st.booleans(),
    cuts=CUTS,
)
def test_garbage_never_raises_and_gives_the_same_views_however_it_is_cut(
    cut, tool, text, prefix, freeform, cuts
):
    whole = prefix + text

    assert read(tool, cut(whole, cuts), freeform=freeform) == read(tool, [whole], freeform=freeform)


@settings(max_examples=50, deadline=None)
@given(order=st.permutations(["path", "content", "i", "mode"]))
def test_the_order_of_keys_does_not_matter(order):
    values = {"path": "/w/p/a.ts", "content": "x", "i": "intent", "mode": 3}
    document = json.dumps({key: values[key] for key in order})

    assert read("write", list(document), project_root="/w/p") == (View(("a.ts",), "x", "write"),)


def test_the_same_call_gives_the_same_view_in_one_piece_character_by_character_and_cut_before_its_end():
    document = '{"path":"q.cpp","content":"// MARK_ME\\n"}'
    view = View(("q.cpp",), "// MARK_ME\n", "write")

    for fragments in ([document], list(document), [document[:-2], document[-2:]]):
        assert read("write", fragments) == (view,)


def test_text_flows_once_its_path_is_known():
    reader = ToolCallReader("Write", FAMILIES)

    assert reader.feed('{"content":"ab') == ()
    assert reader.paths == ()
    assert reader.feed('c","file_path":"a.t') == ()
    assert reader.feed('s"') == (ViewDelta(0, ("a.ts",), "write", "abc"),)
    assert reader.paths == ("a.ts",)
    assert reader.feed("}") == ()
    assert reader.finish() == ()


def test_text_after_its_path_is_given_out_fragment_by_fragment():
    reader = ToolCallReader("Write", FAMILIES)
    reader.feed('{"file_path":"a.ts","content":"a')

    assert reader.feed("b\\") == (ViewDelta(0, ("a.ts",), "write", "b"),)
    assert reader.feed("nc") == (ViewDelta(0, ("a.ts",), "write", "\nc"),)


def test_an_empty_text_is_a_view_with_one_delta():
    reader = ToolCallReader("Edit", FAMILIES)

    deltas = reader.feed('{"file_path":"a.ts","old_string":"x","new_string":""}')

    assert deltas == (ViewDelta(0, ("a.ts",), "edit", ""),)


def test_of_two_path_arguments_the_first_complete_one_counts():
    assert read("write", ['{"path":"a.ts","file_path":"b.md","content":"x"}']) == (
        View(("a.ts",), "x", "write"),
    )


def test_without_a_path_text_waits_for_the_end_of_the_call():
    reader = ToolCallReader("Write", FAMILIES)

    assert reader.feed('{"content":"abc"') == ()
    assert reader.finish() == (ViewDelta(0, (), "write", "abc"),)


def test_a_command_flows_at_once():
    reader = ToolCallReader("Bash", FAMILIES)

    assert reader.kind == "bash"
    assert reader.feed('{"command":"git pu') == (ViewDelta(0, (), "bash", "git pu"),)
    assert reader.feed('sh"') == (ViewDelta(0, (), "bash", "sh"),)


def test_each_edit_is_its_own_view_so_that_texts_never_join():
    document = json.dumps(
        {
            "file_path": "a.ts",
            "edits": [{"old_string": "1", "new_string": "gi"}, {"old_string": "2", "new_string": "rm"}],
        }
    )

    assert [view.text for view in read("MultiEdit", list(document))] == ["gi", "rm"]


def test_a_family_that_needs_another_spelling_still_finds_path_and_text():
    assert read("write", ['{"body":"x","targetPath":"a.ts"}']) == (View(("a.ts",), "x", "write"),)
    assert read("edit", ['{"file":"x","changes":[{"oldText":"o","to":"n"}]}']) == (
        View((), "x", "edit"),
        View((), "n", "edit"),
    )


def test_what_an_edit_takes_away_is_no_view_even_when_the_call_is_cut():
    for end in ('"', '","new_string":"n"}', '"}'):
        texts = [view.text for view in read("Edit", ['{"file_path":"a.ts","old_string":"gone' + end])]
        assert "gone" not in "".join(texts)


def test_a_cut_call_has_the_views_of_what_arrived():
    assert read("Write", ['{"file_path":"a.ts","content":"half\\n li']) == (
        View(("a.ts",), "half\n li", "write"),
    )
    assert read("deploy", ['{"target":"pro']) == (View((), '{"target":"pro', None), View((), "pro", None))


def test_arguments_that_stop_being_json_are_seen_to_the_end():
    assert read("Write", ['{"file_path":"a.ts","content":"x"', ' "more": evil()']) == (
        View(("a.ts",), "x", "write"),
        View(("a.ts",), '"more": evil()', "write"),
    )
    assert read("bash", ["git push"]) == (View((), "git push", "bash"),)


def test_calls_glued_under_one_index_are_read_one_by_one():
    document = '{"file_path":"a.ts","content":"gi"}{"content":"rm","file_path":"b.md"}'

    assert read("Write", list(document)) == (View(("a.ts",), "gi", "write"), View(("b.md",), "rm", "write"))


def test_white_space_between_glued_calls_belongs_to_neither():
    document = '{"command":"x"} \n \u3000 y'

    assert (
        read("bash", list(document))
        == read("bash", [document])
        == (
            View((), "x", "bash"),
            View((), "\u3000 y", "bash"),
        )
    )


def test_many_glued_calls_are_seen_to_the_end():
    views = read("bash", ['{"command":"x"}' * 5000 + '{"command":"last"}'])

    assert len(views) < 100
    assert '"last"' in views[-1].text


def test_a_call_that_brings_no_fragment_is_a_call_without_arguments():
    for tool in ("deploy", "ls"):
        assert read(tool, []) == read(tool, [""]) == views_of_call(tool, {}, FAMILIES)


def test_a_freeform_patch_has_a_view_per_file_as_it_streams():
    reader = ToolCallReader("apply_patch", FAMILIES, project_root="/w/p", freeform=True)

    assert reader.feed("*** Begin Patch\n*** Update File: /w/p/a.ts\n@@\n-o\n+con") == (
        ViewDelta(0, ("a.ts",), "edit", "con"),
    )
    assert reader.feed("st\n*** Add File: b.md\n+x") == (
        ViewDelta(0, ("a.ts",), "edit", "st"),
        ViewDelta(1, ("b.md",), "edit", "x"),
    )
    assert reader.finish() == ()
    assert reader.paths == ("a.ts", "b.md")


def test_freeform_text_that_is_no_patch_is_one_view():
    assert read("apply_patch", ["what ", "is this"], freeform=True) == (View((), "what is this", "edit"),)
    assert read("deploy", ["to ", "production"], freeform=True) == (View((), "to production", None),)
    assert read("exec", ["\ud83d", "\ude00\ud83d"], freeform=True) == (View((), "\U0001f600�", "eval"),)


def test_a_patch_argument_that_is_no_patch_is_seen_whole():
    assert read("edit", ['{"input":"SEARCH\\na\\nREPLACE\\nb"}']) == (
        View((), "SEARCH\na\nREPLACE\nb", "edit"),
    )


def test_very_many_strings_share_a_view_at_last():
    views = read("deploy", [json.dumps({"list": [f"s{n}" for n in range(MAX_SINGLE_VIEWS + 3)]})])

    assert len(views) == MAX_SINGLE_VIEWS + 2
    assert views[-1].text == "\n".join(f"s{n}" for n in range(MAX_SINGLE_VIEWS, MAX_SINGLE_VIEWS + 3))


def test_deeply_nested_arguments_do_not_raise():
    deep: dict = {}
    for _ in range(300):
        deep = {"a": deep}

    assert views_of_call("Write", deep, FAMILIES)
    assert views_of_call("deploy", '{"a":' * 100_000, FAMILIES)


def test_two_readers_share_nothing():
    first, second = ToolCallReader("bash", FAMILIES), ToolCallReader("bash", FAMILIES)
    first.feed('{"command":"gi')
    second.feed('{"command":"rm')
    first.feed('t push"}')
    first.finish()
    second.finish()

    assert [view.text for view in first.views()] == ["git push"]
    assert [view.text for view in second.views()] == ["rm"]


@pytest.mark.parametrize("content_first", [False, True])
def test_the_work_grows_with_the_input_and_not_faster(content_first):
    def calls_made(fragments: list[str]) -> int:
        """Calls of Python and C functions while the fragments are read."""
        count = 0

        def on_event(_frame, event, _argument):
            nonlocal count
            count += event in ("call", "c_call")

        reader = ToolCallReader("Write", FAMILIES)
        sys.setprofile(on_event)
        try:
            for fragment in fragments:
                reader.feed(fragment)
            reader.finish()
        finally:
            sys.setprofile(None)
        return count

    def fragments_of(count: int) -> list[str]:
        content = [r"fifty characters of \"text\" and a line feed at end\n"] * count
        before, after = (
            ('{"content":"', '","path":"a.ts"}') if content_first else ('{"path":"a.ts","content":"', '"}')
        )
        return [before, *content, after]

    assert calls_made(fragments_of(4000)) < 2.1 * calls_made(fragments_of(2000))


def test_a_megabyte_in_twenty_thousand_fragments_is_given_out_once():
    content = "fifty characters of text, and a line feed at the end\n" * 20_000
    document = json.dumps({"content": content, "path": "a.ts"})
    reader = ToolCallReader("Write", FAMILIES)

    deltas = [delta for at in range(0, len(document), 50) for delta in reader.feed(document[at : at + 50])]

    assert deltas == [ViewDelta(0, ("a.ts",), "write", content)]
