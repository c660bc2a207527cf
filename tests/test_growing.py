from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ttsr_proxy.growing import MOST_PIECES, GrowingText


@given(st.lists(st.tuples(st.text(max_size=3), st.booleans()), max_size=3 * MOST_PIECES))
def test_it_is_all_its_pieces_whenever_somebody_looks(pieces: list[tuple[str, bool]]) -> None:
    growing, said = GrowingText(), ""
    for piece, looks in pieces:
        growing.add(piece)
        said += piece
        assert not looks or growing.text == said
    assert growing.text == said
