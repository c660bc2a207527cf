"""Where a request echoes earlier responses."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ttsr_proxy.protocols.anthropic import ANTHROPIC
from ttsr_proxy.protocols.anthropic.history import text_block
from ttsr_proxy.protocols.history import HistoryItem
from ttsr_proxy.sessions.echoes import find_echoes, find_newest


def call(number: int) -> dict[str, object]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {}}


blocks = st.one_of(
    st.sampled_from(["", "a", "b"]).map(text_block),
    st.integers(0, 3).map(call),
    st.just({"type": "thinking", "thinking": "hm", "signature": "s"}),
)
histories = st.lists(
    st.builds(ANTHROPIC.item_of_block, blocks, st.sampled_from(["user", "assistant", "system"])), max_size=12
)


@given(histories, st.booleans())
def test_the_newest_echo_is_the_same_without_reading_the_whole_history(
    items: list[HistoryItem], prefill: bool
) -> None:
    every = find_echoes(items, ANTHROPIC.chain_text, prefill=prefill)
    newest = find_newest(items, ANTHROPIC.chain_text, prefill=prefill)
    assert newest.place == every.place
    assert newest.runs == every.runs[len(every.runs) - len(newest.runs) :]
    assert bool(newest.runs) == bool(every.runs)


def test_a_long_conversation_is_read_from_its_last_call_but_one() -> None:
    items = [
        ANTHROPIC.item_of_block(block, role)
        for number in range(50)
        for block, role in ((call(number), "assistant"), (text_block(f"result {number}"), "user"))
    ]
    assert len(find_newest(items, ANTHROPIC.chain_text).runs) == 1
