"""Rule sets: which rules are accepted, which reach a block, which interrupt."""

from __future__ import annotations

import pytest

from ttsr_proxy import Rule, RuleSet, StreamContext
from ttsr_proxy.modes import InterruptMode
from ttsr_proxy.triggers.match import Source

TEXT = StreamContext("text")


def test_a_rule_is_accepted_if_one_condition_can_be_used_and_the_others_are_warned_of() -> None:
    ruleset = RuleSet([Rule("a", condition=["(", "ok"], scope=["text", "tool:edit("])])
    assert ruleset.registered == ("a",)
    assert ruleset.rejected == {}
    first, second = ruleset.warnings["a"]
    assert first.startswith("condition 1 does not compile: ")
    assert "tool:edit(" in second


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (Rule("a"), "has no condition and no astCondition"),
        (Rule("a", condition=[], ast_condition=[" "]), "astCondition 1 is not used: the pattern is empty"),
        (Rule("a", condition=["("]), "condition 1 does not compile: "),
        (Rule("a", condition=["x", "("], scope=["tool:edit("]), "scope reaches no stream"),
        (Rule("a", condition=["x"], enabled=False), "disabled"),
    ],
)
def test_a_rejected_rule_has_its_reason(rule: Rule, reason: str) -> None:
    ruleset = RuleSet([rule, Rule("b", condition=["x"])])
    assert ruleset.registered == ("b",)
    assert ruleset.rejected["a"].startswith(reason)


def test_the_first_accepted_rule_of_a_name_wins() -> None:
    first, second = Rule("a", condition=["x"]), Rule("a", condition=["y"], path="two.md")
    ruleset = RuleSet([first, second])
    assert ruleset.rules == (first,)
    assert "two.md" in ruleset.warnings["a"][0]
    ruleset = RuleSet([Rule("a", condition=["("]), second])
    assert ruleset.rules == (second,)
    assert ruleset.rejected == {}


@pytest.mark.parametrize(
    ("rule", "warned"),
    [
        (Rule("a", ast_condition=["foo($A)", "a; b"], globs=["src/**/*.{ts,tsx}"]), True),
        (Rule("a", ast_condition=["foo($A)", "a; b"], scope=["tool:write(*.py)"]), True),
        (Rule("a", ast_condition=["foo($A)", "a; b"], globs=["*.ts", "*.css"]), False),
        (Rule("a", ast_condition=["foo($A)", "a; b"]), False),
    ],
)
def test_an_ast_pattern_that_is_no_code_in_the_languages_of_its_rule_is_warned_of(
    rule: Rule, warned: bool
) -> None:
    warnings = RuleSet([rule]).warnings.get("a", ())
    assert [warning.partition(":")[0] for warning in warnings] == ["astCondition 2 never matches"] * warned


def test_a_glob_that_cannot_be_used_does_not_widen_its_rule() -> None:
    ruleset = RuleSet([Rule("a", condition=["x"], globs=["a" * 5_000])])
    assert "longer than" in ruleset.warnings["a"][0]
    assert ruleset.check("x", StreamContext("tool", "edit", ("a.ts",))) == ()


def test_one_glob_that_matches_nothing_does_not_disable_the_rule() -> None:
    ruleset = RuleSet([Rule("a", condition=["x"], globs=["nope/**", " ", "**/*.ts"])])
    assert ruleset.check("x", StreamContext("tool", "edit", ("src/a.ts",)))


@pytest.mark.parametrize(
    ("mode", "sources"),
    [
        ("always", {"text", "thinking", "tool"}),
        ("prose-only", {"text", "thinking"}),
        ("tool-only", {"tool"}),
        ("never", set()),
    ],
)
def test_the_mode_says_where_a_match_interrupts(mode: InterruptMode, sources: set[str]) -> None:
    asked: tuple[Source, ...] = ("text", "thinking", "tool")
    for ruleset, rule in (
        (RuleSet([], interrupt_mode=mode), Rule("a")),
        (RuleSet([], interrupt_mode="never"), Rule("a", interrupt_mode=mode)),
        (RuleSet([]), Rule("a", interrupt_mode=mode)),
    ):
        assert {source for source in asked if ruleset.interrupts(rule, source)} == sources


def test_an_unknown_mode_is_an_error_that_names_the_allowed_ones() -> None:
    with pytest.raises(ValueError, match="prose-only"):
        RuleSet([], interrupt_mode="sometimes")  # type: ignore[arg-type]


def test_reaching_names_the_rules_that_some_paths_could_bring_to_match() -> None:
    ruleset = RuleSet(
        [
            Rule("default", condition=["x"]),
            Rule("ts", condition=["x"], globs=["*.ts"]),
            Rule("edit", condition=["x"], scope=["tool:edit(*.py)"]),
            Rule("thinking", condition=["x"], scope=["thinking"]),
            Rule("ast", ast_condition=["f()"]),
        ]
    )

    def names(source: Source, tool: str | None = None, kind: str | None = None) -> list[str]:
        return [rule.name for rule in ruleset.reaching(source, tool, kind)]

    assert names("text") == ["default"]
    assert names("thinking") == ["thinking"]
    assert names("tool", "bash") == ["default", "ts", "ast"]
    assert names("tool", "MultiEdit", "edit") == ["default", "ts", "edit", "ast"]


def test_a_project_glob_does_not_reach_outside_the_project_root() -> None:
    outside = StreamContext("tool", "write", ("/tmp/scratch/a.ts",))
    rule = Rule("a", condition=["x"], globs=["**/*.ts"])
    assert RuleSet([rule]).check("x", outside)
    assert not RuleSet([rule], project_root="/w/app").check("x", outside)
    assert RuleSet([Rule("a", condition=["x"], globs=["/tmp/**"])], project_root="/w/app").check("x", outside)
    scoped = Rule("a", condition=["x"], scope=["tool:write(**/*.ts)"])
    assert not RuleSet([scoped], project_root="/w/app").check("x", outside)


def test_agents_select_rules_and_an_unknown_agent_is_main() -> None:
    ruleset = RuleSet(
        [
            Rule("all", condition=["x"]),
            Rule("implementers", condition=["x"], agents=["implement*"]),
            Rule("main", condition=["x"], agents=["main"]),
        ]
    )
    assert ruleset.for_agent("implementer-2").registered == ("all", "implementers")
    assert ruleset.for_agent(None).registered == ("all", "main")
    assert ruleset.for_agent("").registered == ("all", "main")


def test_a_selection_shares_what_is_compiled_and_is_made_once() -> None:
    ruleset = RuleSet([Rule("a", condition=["x", "("]), Rule("b", condition=["y"])], "tool-only")
    chosen = ruleset.select(lambda rule: rule.name == "a")
    assert chosen.registered == ("a",)
    assert chosen.interrupt_mode == "tool-only"
    assert set(chosen.warnings) == {"a"}
    assert chosen is ruleset.select(lambda rule: rule.name == "a")
    assert ruleset.select(lambda _: True) is ruleset
    assert [match.rule.name for match in chosen.check("xy", TEXT)] == ["a"]


def test_many_different_paths_do_not_fill_memory() -> None:
    ruleset = RuleSet([Rule("a", condition=["x"], globs=["*.ts"])])
    for number in range(2_000):
        assert ruleset.check("x", StreamContext("tool", "edit", (f"{number}.ts",)))
    assert len(ruleset._plans) <= 512
