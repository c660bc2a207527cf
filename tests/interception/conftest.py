"""Playbooks that end with nothing left unexpected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playbook import Playbook


@pytest.fixture
def playbook() -> Iterator[Callable[..., Playbook]]:
    """Make a playbook: rules, then keyword arguments of `Playbook`."""
    books: list[Playbook] = []

    def make(*rules: Any, **options: Any) -> Playbook:
        book = Playbook(*rules, **options)
        books.append(book)
        return book

    yield make
    for book in books:
        book.settle()
