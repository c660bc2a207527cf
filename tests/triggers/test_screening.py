"""Which judged rules ask about a text."""

from __future__ import annotations

import pytest

from ttsr_proxy.rules.model import Rule
from ttsr_proxy.triggers.match import StreamContext
from ttsr_proxy.triggers.ruleset import NEEDS_JUDGE, RuleSet
from ttsr_proxy.triggers.screening import Screening

TEXT = StreamContext("text")
WRITE = StreamContext("tool", "Write", ("src/a.py",), "write")
ASKS = "Is it rude?"


def asking(rule: Rule, text: str, context: StreamContext) -> list[str | None]:
    """What each question is about: the matched text, or None for the whole."""
    screening = Screening(RuleSet([rule], judged=True), text, context)
    hits = screening.ast_check.run() if screening.ast_check is not None else ()
    return [
        None if match is None else text[match.start : match.end] for _, match in screening.occasions(hits)
    ]


@pytest.mark.parametrize(
    ("rule", "in_text", "in_file"),
    [
        (Rule("r", question=ASKS), [None], [None]),
        (Rule("r", question=ASKS, scope=["text"]), [None], []),
        (Rule("r", question=ASKS, scope=["tool:write(*.py)"]), [], [None]),
        (Rule("r", question=ASKS, scope=["tool:write(*.ts)"]), [], []),
        (Rule("r", question=ASKS, globs=["src/**"]), [], [None]),
        (Rule("r", question=ASKS, globs=["lib/**"]), [], []),
        (Rule("r", question=ASKS, condition=["pr.nt"]), ["print"], ["print"]),
        (Rule("r", question=ASKS, condition=["never"]), [], []),
        (Rule("r", question=ASKS, ast_condition=["print($A)"]), [], ["print(x)"]),
        (Rule("r", question=ASKS, condition=["x"], ast_condition=["never($A)"]), ["x"], ["x"]),
    ],
)
def test_scope_globs_and_conditions_say_what_is_worth_a_question(
    rule: Rule, in_text: list[str | None], in_file: list[str | None]
) -> None:
    assert asking(rule, "print(x)", TEXT) == in_text
    assert asking(rule, "print(x)", WRITE) == in_file


def test_only_a_set_for_a_judge_takes_rules_with_a_question() -> None:
    rules = [Rule("q", question=ASKS), Rule("both", condition=["x"], question=ASKS)]
    assert RuleSet(rules).rejected == {"q": NEEDS_JUDGE, "both": NEEDS_JUDGE}
    assert RuleSet(rules, judged=True).registered == ("q", "both")


def test_a_rule_whose_conditions_cannot_be_used_asks_nothing() -> None:
    ruleset = RuleSet([Rule("q", condition=["("], question=ASKS)], judged=True)
    assert "does not compile" in ruleset.rejected["q"]
