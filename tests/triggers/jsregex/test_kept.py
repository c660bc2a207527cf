"""Compiled conditions are kept."""

from __future__ import annotations

import pytest

from ttsr_proxy.triggers.jsregex import PatternError, compile_condition


def test_the_same_condition_is_compiled_once() -> None:
    assert compile_condition("foo[a-z]{2,3}") is compile_condition("foo[a-z]{2,3}")


def test_a_condition_that_cannot_be_compiled_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(PatternError):
            compile_condition("(")
