"""Ranking by shared words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ttsr_proxy.library.retrieval.lexical import LexicalIndex, overlap

TEXTS = ("Every outbound HTTP request sets a timeout.", "Log records are structured.", "Pin the versions.")


def test_the_text_with_the_rare_words_of_the_query_is_first() -> None:
    scores = LexicalIndex(TEXTS).scores(["call the service by HTTP, without any timeout"])
    assert max(scores) == scores[0] > 0
    assert scores[1:] == [0.0, 0.0]


def test_other_forms_of_a_word_count_as_the_word() -> None:
    assert LexicalIndex(TEXTS).scores(["requesting"])[0] > 0


def test_words_that_are_everywhere_do_not_count() -> None:
    assert LexicalIndex(TEXTS).scores(["the is a"]) == [0.0, 0.0, 0.0]


def test_a_text_has_the_score_of_its_best_query() -> None:
    index = LexicalIndex(TEXTS)
    one, other = index.scores(["timeout"]), index.scores(["structured logs"])
    assert index.scores(["timeout", "structured logs"]) == [
        max(pair) for pair in zip(one, other, strict=True)
    ]


@given(st.lists(st.text(), max_size=3))
def test_no_query_is_an_error(queries: list[str]) -> None:
    assert len(LexicalIndex(TEXTS).scores(queries)) == len(TEXTS)


def test_the_overlap_is_the_share_of_the_shorter_text_s_words() -> None:
    assert overlap("set a timeout", "every request must set a timeout") == 1.0
    assert overlap("set a timeout", "pin the versions") == 0.0
    assert overlap("", "pin") == 0.0
