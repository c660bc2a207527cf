"""Where the match is marked in the violating output."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from many_interrupts import many_interrupts

from ttsr_proxy.interrupts.marking import Marked, mark_violation
from ttsr_proxy.interrupts.record import InterruptRecord

Change = Callable[..., InterruptRecord]


@pytest.fixture
def record() -> Change:
    (made,) = many_interrupts(1, 0.0, 1.0)
    return lambda **changes: dataclasses.replace(made, **changes)


def test_of_two_equal_texts_the_one_in_the_matchs_context_is_marked(record: Change) -> None:
    marked = mark_violation(record(violation="eval is bad: eval(x)", before="bad: ", matched="eval"))
    assert marked == Marked("eval is bad: ", "eval", "(x)")


def test_a_match_of_several_lines_is_found_in_the_arguments_of_a_call(record: Change) -> None:
    marked = mark_violation(
        record(violation='{"content": "a\\nbad(\\"x\\")\\n"}', before="a\n", matched='bad("x")')
    )
    assert marked == Marked('{"content": "a\\n', 'bad(\\"x\\")', '\\n"}')


@pytest.mark.parametrize("matched", ["not there", ""])
def test_nothing_is_marked_where_the_match_is_not_found(record: Change, matched: str) -> None:
    assert mark_violation(record(violation="other text", matched=matched)) == Marked("other text", "", "")
