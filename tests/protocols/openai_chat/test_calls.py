from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ttsr_proxy.protocols.openai_chat.calls import CallPiece, OpenCall

VALUES = st.recursive(
    st.none() | st.integers() | st.text(alphabet='ab"\\{}[]é', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='k"\\}', max_size=3), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(alphabet='k"\\}', max_size=3), VALUES, max_size=3), st.data())
def test_arguments_are_complete_at_their_last_bracket_and_never_before(
    value: dict[str, Any], data: Any
) -> None:
    source = json.dumps(value, ensure_ascii=False)
    call = OpenCall(0, CallPiece({"function": {"name": "A"}}, "function"))
    at = 0
    while at < len(source):
        assert not call.complete
        size = data.draw(st.integers(1, 4))
        call.pieces.append(source[at : at + size])
        at += size
    assert call.complete


def test_plain_text_is_never_complete() -> None:
    call = OpenCall(0, CallPiece({"custom": {"name": "A"}}, "custom"), ["{}"])
    assert not call.complete
