"""The reference implementation's own answers for conditions, on complete texts."""

import json
from pathlib import Path
from typing import Any

import pytest

from ttsr_proxy.triggers.jsregex import PatternError, compile_condition

VECTORS = Path(__file__).parents[2] / "conformance" / "regex.jsonl"


def vectors() -> list[Any]:
    with VECTORS.open(encoding="utf-8") as lines:
        return [pytest.param(vector, id=vector["id"]) for vector in map(json.loads, lines)]


@pytest.mark.parametrize("vector", vectors())
def test_a_condition_is_accepted_and_matches_as_in_the_reference_implementation(vector: Any) -> None:
    (rule,) = vector["rules"]
    (condition,) = rule["condition"]
    if vector["expect"]["registered"] == [False]:
        with pytest.raises(PatternError):
            compile_condition(condition)
        return
    matched = compile_condition(condition).final.search(vector["snippet"]) is not None
    assert matched == (vector["expect"]["regex"] == [rule["name"]])
