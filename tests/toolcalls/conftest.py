"""What the tests of tool calls share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

import pytest

Cut = Callable[[str, Iterable[int]], list[str]]


@pytest.fixture(scope="session")
def cut() -> Cut:
    """Cuts a text at the given positions, taken modulo its length."""

    def cut(text: str, positions: Iterable[int]) -> list[str]:
        marks = sorted({position % (len(text) + 1) for position in positions} | {0, len(text)})
        return [text[start:end] for start, end in pairwise(marks)]

    return cut
