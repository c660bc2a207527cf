"""Text that is safe to show."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttsr_proxy.cli.terminal import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 漢 🎉", "plain é 漢 🎉"),
        ("\x1b[31m", r"\x1b[31m"),
        ("a\r\nb", r"a\r\nb"),
        ("\u202egp", r"\u202egp"),
    ],
)
def test_what_a_terminal_acts_on_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_kept_characters_and_the_limit() -> None:
    assert printable("a\nb\tc", keep="\n") == "a\nb\\tc"
    assert printable("abcdef", limit=4) == "abc…"
    assert printable("abcd", limit=4) == "abcd"


@given(st.text())
def test_nothing_that_acts_is_left_in_any_text(text: str) -> None:
    assert not [char for char in printable(text) if unicodedata.category(char) in ("Cc", "Cf", "Cs")]
