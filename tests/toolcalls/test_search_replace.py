from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttsr_proxy.toolcalls.search_replace import SearchReplaceReader

MARKS = [
    ("<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"),
    ("------- SEARCH", "=======", "+++++++ REPLACE"),
    ("<<<<< SEARCH>", "=====", ">>>>> REPLACE<"),
]
LINES = st.sampled_from(
    [*(mark for marks in MARKS for mark in marks), "old", "new", "", "======", ":start_line:3", "-------"]
)


def blocks(*fragments: str) -> list[str]:
    reader = SearchReplaceReader()
    texts: dict[int, str] = {}
    for piece in [*(piece for fragment in fragments for piece in reader.feed(fragment)), *reader.finish()]:
        assert piece.paths == ()
        texts[piece.section] = texts.get(piece.section, "") + piece.text
    return list(texts.values())


@pytest.mark.parametrize(("search", "divider", "replace"), MARKS)
def test_the_replacing_part_of_each_block_counts(search, divider, replace):
    text = f"{search}\nold\n{divider}\nnew\n\nmore\n{replace}\nbetween\n{search}\nx\n{divider}\n{replace}\n"

    assert blocks(text) == ["new\n\nmore", ""]


def test_carriage_returns_are_line_ends():
    assert blocks("<<<<<<< SEARCH\r\nold\r\n=======\r\nnew\r\n>>>>>>> REPLACE\r\n") == ["new"]


def test_a_block_that_is_not_ended_has_what_has_come_of_it():
    assert blocks("<<<<<<< SEARCH\nold\n=======\nnew\nhal") == ["new\nhal"]
    assert blocks("<<<<<<< SEARCH\nold") == []


@given(lines=st.lists(LINES, max_size=12), cuts=st.lists(st.integers(0, 200), max_size=10))
def test_any_split_gives_the_same_blocks(cut, lines, cuts):
    text = "\n".join(lines)

    assert blocks(*cut(text, cuts)) == blocks(text)
