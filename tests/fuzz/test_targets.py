"""A short run of every fuzzing target; `make fuzz` runs them for longer, guided by coverage."""

from __future__ import annotations

import pytest
from fuzz_targets import TARGETS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize("name", TARGETS)
@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_no_input_raises_or_depends_on_how_it_was_cut(name: str, data: st.DataObject) -> None:
    target, pieces = TARGETS[name]
    parts = st.lists(st.sampled_from(pieces) | st.binary(max_size=4), max_size=25)
    number = data.draw(st.integers(0, 255))
    target(bytes([number]) + b"".join(data.draw(parts)))
