"""Where matches can start."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ttsr_proxy.triggers.jsregex import compile_condition
from ttsr_proxy.triggers.starts import AHEAD, StartTable

PATTERNS = ("foo", r"\bfoo", "^fo", "(?m)^o", r"(?<=x)f", r"f(?!x)", r"\s*=", "[^f]o", ".", "$", r"\Bo+x")
CONDITIONS = [compile_condition(pattern) for pattern in PATTERNS]
TABLE = StartTable(enumerate(CONDITIONS))


def test_a_condition_that_looks_further_back_is_not_covered() -> None:
    assert all(map(StartTable.covers, CONDITIONS))
    assert not StartTable.covers(compile_condition(r"(?<=\bfoo )bar"))


@settings(max_examples=100)
@given(st.text(alphabet="fox =\n\u2028", min_size=1, max_size=12))
def test_the_table_is_exact_about_the_characters_it_looks_at(text: str) -> None:
    for place in range(len(text)):
        near = text[: place + AHEAD]
        expected = {
            index
            for index, condition in enumerate(CONDITIONS)
            if condition.streaming.match(near, place, partial=True) is not None
        }
        assert set(TABLE.at(text, place)) == expected
