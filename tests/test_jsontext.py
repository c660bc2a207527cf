"""JSON that is read and written again."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttsr_proxy.jsontext import canonical, decode, encode

NUMBERS = [
    "1.50",
    "1e400",
    "-1E-400",
    "NaN",
    "-Infinity",
    "0.1000000000000000055511151231257827",
    "1e3",
    "-0.0",
]


@pytest.mark.parametrize("number", [*NUMBERS, "123456789012345678901234567890", "18446744073709551615"])
def test_a_number_is_written_as_it_was_read(number: str) -> None:
    document = f'{{"a":[{number},"x"]}}'.encode()
    assert encode(decode(document)) == document


def test_half_a_surrogate_pair_is_written_as_its_escape() -> None:
    document = b'{"a":["\\ud800",1.5]}'
    assert encode(decode(document)) == document


@given(st.floats(allow_nan=False))
def test_a_number_is_the_float_that_it_means(number: float) -> None:
    read = decode(json.dumps([number]))
    assert read == [number]
    assert canonical(read) == canonical([number])


def test_different_spellings_of_a_number_are_one_value() -> None:
    assert canonical(decode("[1.50, 1e3]")) == canonical(decode("[1.5, 1000.0]"))
