"""The first look at new text."""

from __future__ import annotations

import pytest

from ttsr_proxy.triggers.gate import GateKey, LiteralGate, lower

GATE = LiteralGate(
    [
        GateKey(0, ("console.log",), lower=False),
        GateKey(1, (": any", "as any"), lower=False),
        GateKey(2, ("todo",), lower=True),
        GateKey(3, ("=",), lower=False),
    ]
)


@pytest.mark.parametrize(
    ("window", "fresh", "woken"),
    [
        ("le.log", 1, {0}),
        ("le.log x", 1, set()),
        ("b as any", 3, {1}),
        ("a: any", 3, {1}),
        ("ToDo", 1, {2}),
        ("x = y", 5, {3}),
        ("nothing of this", 15, set()),
        ("x = 1; console.log(TODO as any)" * 5, 155, {0, 1, 2, 3}),
    ],
)
def test_a_condition_wakes_when_its_literal_ends_in_the_new_text(
    window: str, fresh: int, woken: set[int]
) -> None:
    assert set(GATE.woken(window, fresh)) == woken


def test_lower_case_keeps_offsets() -> None:
    assert lower("A\u0130B") == "a\u0130b"
    assert lower("ÀÉ") == "àé"
