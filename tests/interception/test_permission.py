"""Which rules hold a block back."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ttsr_proxy.config import BudgetSettings, TtsrSettings
from ttsr_proxy.interception.budgets import Budget
from ttsr_proxy.interception.permission import Permission
from ttsr_proxy.protocols.events import BlockStarted
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.toolcalls.families import FamilyTable
from ttsr_proxy.triggers.ruleset import RuleSet

RULES = st.lists(
    st.builds(
        Rule,
        st.sampled_from("abcdef"),
        condition=st.just(["x"]),
        scope=st.sampled_from([["text", "thinking", "tool"], ["text"], ["tool:bash"]]),
        interrupt_mode=st.sampled_from([None, "always", "prose-only", "tool-only", "never"]),
        repeat_mode=st.sampled_from([None, "once", "always"]),
        max_interrupts=st.sampled_from([None, 0, 1]),
        on_exhausted=st.sampled_from([None, "pass", "block"]),
        observe=st.sampled_from([None, True]),
    ),
    min_size=2,
    max_size=4,
    unique_by=lambda rule: rule.name,
)
BUDGETS = st.builds(
    BudgetSettings,
    per_rule=st.sampled_from([0, 1, 2]),
    per_response=st.sampled_from([0, 2, 4]),
    on_exhausted=st.sampled_from(["pass", "block"]),
)
BLOCKS = st.sampled_from(
    [
        BlockStarted(b"", 0, "text", None, None, {}),
        BlockStarted(b"", 0, "thinking", None, None, {}),
        BlockStarted(b"", 0, "tool", "Bash", "call", {}),
        BlockStarted(b"", 0, "tool", "unheard_of", "call", {}),
    ]
)


RESTRICTIONS = st.sampled_from(
    ["none", "none", "none", "observe", "helper", "choices", "barred", "inherited"]
)


@settings(max_examples=300)
@given(st.data())
def test_a_block_is_held_for_exactly_the_rules_whose_match_must_not_be_shown(data: st.DataObject) -> None:
    def draw(strategy: st.SearchStrategy[Any]) -> Any:
        return data.draw(strategy)

    rules, restriction = draw(RULES), draw(RESTRICTIONS)
    names = [rule.name for rule in rules]
    ttsr = TtsrSettings(observe=restriction == "observe", budget=draw(BUDGETS))
    inherited = dict.fromkeys(names[:2], 1) if restriction == "inherited" else {}
    budget = Budget(ttsr.budget, 0, inherited, sum(inherited.values()))
    permission = Permission(
        RuleSet(rules, draw(st.sampled_from(["always", "prose-only", "tool-only", "never"]))),
        FamilyTable.default(),
        ttsr,
        budget,
        [],
        draw(st.sampled_from([(), names])),
        "a helper call" if restriction == "helper" else None,
        uninterrupted="several choices" if restriction == "choices" else None,
    )
    permission.barred = "upstream refused the reminder" if restriction == "barred" else ""
    block = draw(BLOCKS)
    reach = permission.reach(block)

    def withheld(rule: Rule) -> bool:
        decision = permission.judge(rule, block.kind).decision
        return decision == "interrupt" or (decision == "exhausted" and budget.on_exhausted(rule) == "block")

    assert reach.holding == {rule.name for rule in rules if rule.name in reach.rules and withheld(rule)}
