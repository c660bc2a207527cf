"""Contexts cut into pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ttsr_proxy.library.retrieval.chunks import MAX_CHARS, MAX_WORDS, chunks


def test_a_short_text_is_one_piece() -> None:
    assert chunks("Read the README.\n  Then write LICENSE. ") == ["Read the README. Then write LICENSE."]


def test_a_long_text_is_cut_at_sentences_and_lines() -> None:
    filler = [f"This is sentence number {number}." for number in range(30)]
    assert chunks(" ".join(filler)) == filler
    assert chunks("\n".join(filler)) == filler


def test_a_piece_that_comes_again_is_not_compared_again() -> None:
    assert chunks("\n".join(["the same line of a log file"] * 50)) == ["the same line of a log file"]


def test_a_text_without_words_is_no_piece() -> None:
    assert chunks(" \n\t ") == []


@given(st.text())
def test_pieces_are_short_and_nothing_is_lost(text: str) -> None:
    pieces = chunks(text * 7)
    assert all(len(piece) <= MAX_CHARS and len(piece.split()) <= MAX_WORDS for piece in pieces)
    assert set("".join(text.split())) == set("".join("".join(pieces).split()))
    assert len(set(pieces)) == len(pieces)
