"""Triggers are tried before they are believed."""

from __future__ import annotations

import pytest

from ttsr_proxy.library.compilation.proof import Claim, faults, ordinary_snippets
from ttsr_proxy.library.compilation.prover import Prover
from ttsr_proxy.library.model import Triggers

EVAL = Triggers(condition=(r"\beval\(",), scope=("tool:write(*.py)",))


def test_a_claim_that_holds_has_no_faults() -> None:
    assert faults(Claim(EVAL, ("x = eval(y)",), ("x = literal_eval(y)",))) == []


def test_an_ast_claim_that_holds_has_no_faults() -> None:
    triggers = Triggers(ast_condition=("eval($X)",), scope=("tool:edit(*.py)",))
    assert faults(Claim(triggers, ("x = eval(y)",), ("x = literal_eval(y)",))) == []


@pytest.mark.parametrize(
    ("triggers", "positive", "negative", "part"),
    [
        (EVAL, ("exec(x)",), ("y",), "positive example 'exec(x)' does not match"),
        (EVAL, ("eval(x)",), ("eval(y)",), "negative example 'eval(y)' matches"),
        (EVAL, (), ("y",), "need at least one entry"),
        (Triggers(condition=("(",)), ("(",), ("y",), "does not compile"),
        (Triggers(condition=("x*",)), ("x",), ("y",), "matches the empty text"),
        (Triggers(condition=(".*",)), ("x",), ("",), "matches everything"),
        (Triggers(condition=("return",)), ("return",), ("y",), "too broad: it matches ordinary text"),
        (Triggers(condition=("x" * 501,)), ("x" * 501,), ("y",), "longer than 500"),
        (Triggers(condition=(r"\beval\(",), scope=("nowhere(",)), ("eval(",), ("y",), "scope"),
        (Triggers(ast_condition=("eval($X)",)), ("eval(x)",), ("y",), "needs a scope with a file extension"),
        (
            Triggers(ast_condition=("def (((",), scope=("tool:write(*.py)",)),
            ("def f(): pass",),
            ("y",),
            "positive example 'def f(): pass' does not match",
        ),
        (
            Triggers(ast_condition=("return $X",), scope=("tool:write(*.py)",)),
            ("return 1",),
            ("y",),
            "too broad: it matches ordinary code",
        ),
    ],
)
def test_what_does_not_hold_is_told(
    triggers: Triggers, positive: tuple[str, ...], negative: tuple[str, ...], part: str
) -> None:
    assert part in " ".join(faults(Claim(triggers, positive, negative)))


def test_the_ordinary_snippets_are_many_and_distinct() -> None:
    assert len(set(ordinary_snippets())) == len(ordinary_snippets()) >= 150


async def test_a_proof_that_ends_its_process_is_a_fault_and_the_next_one_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prover = Prover()
    try:
        claim = Claim(EVAL, ("eval(x)",), ("y",))
        assert await prover.faults(claim) == []
        assert prover._pool is not None
        (process,) = prover._pool._processes.values()
        process.kill()
        process.join()
        assert await prover.faults(claim) in ([], ["trying it ended the process that tried it"])
        assert await prover.faults(claim) == []
        monkeypatch.setattr("ttsr_proxy.library.compilation.prover.DEADLINE_SECONDS", 0.0)
        assert "took longer" in (await prover.faults(claim))[0]
    finally:
        prover.close()
