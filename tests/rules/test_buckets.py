from __future__ import annotations

import pytest

from ttsr_proxy.rules.buckets import NO_BUCKET, bucket_rules
from ttsr_proxy.rules.discovery import Discovery, FoundRule
from ttsr_proxy.rules.model import Rule


def found(*rules, provider="cursor"):
    return Discovery(tuple(FoundRule(rule, provider, 50) for rule in rules), ())


def bucket(discovery, **options):
    defaults = {"enabled": True, "disabled_rules": (), "builtin_rules": True, "register": lambda rules: {}}
    return bucket_rules(discovery, **(defaults | options))


TRIGGER, ALWAYS, BOOK = {"condition": ["x"]}, {"always_apply": True}, {"description": "d"}


@pytest.mark.parametrize(
    ("fields", "accepted", "expected"),
    [
        (TRIGGER, True, "ttsr"),
        ({"ast_condition": ["f()"]}, True, "ttsr"),
        (TRIGGER | ALWAYS | BOOK, True, "ttsr"),
        (TRIGGER | ALWAYS, False, "always-apply"),
        (TRIGGER | BOOK, False, "rulebook"),
        (TRIGGER, False, None),
        (ALWAYS | BOOK, True, "always-apply"),
        (BOOK, True, "rulebook"),
        ({"description": ""}, True, None),
        ({"condition": [], "description": "d"}, True, "rulebook"),
        ({"globs": ["*.ts"]}, True, None),
    ],
)
def test_each_rule_goes_to_the_first_bucket_that_takes_it(fields, accepted, expected):
    answer = {} if accepted else {"a": "condition 1 does not compile: missing )"}
    (entry,) = bucket(found(Rule("a", **fields)), register=lambda rules: answer).entries
    assert entry.bucket == expected
    assert entry.state == ("active" if expected else "inactive")
    if not accepted:
        assert entry.reason == "condition 1 does not compile: missing )"
    elif expected is None:
        assert entry.reason == NO_BUCKET
    else:
        assert entry.reason is None


def test_only_rules_that_take_part_and_have_a_trigger_are_registered_in_order():
    seen = []
    bucket(
        found(
            Rule("b", condition=["x"]),
            Rule("a", ast_condition=["f()"]),
            Rule("off", condition=["x"], enabled=False),
            Rule("disabled", condition=["x"]),
            Rule("book", description="d"),
        ),
        disabled_rules=["disabled"],
        register=lambda rules: seen.extend(rule.name for rule in rules) or {},
    )
    assert seen == ["b", "a"]


def test_with_matching_off_nothing_is_registered_and_hybrid_rules_fall_back():
    def register(rules):
        raise AssertionError("registered")

    inventory = bucket(
        found(Rule("hybrid", condition=["x"], always_apply=True), Rule("pure", condition=["x"])),
        enabled=False,
        register=register,
    )
    assert [rule.name for rule in inventory.always_apply] == ["hybrid"]
    assert inventory.ttsr == ()
    assert all("ttsr.enabled" in entry.reason for entry in inventory.entries)


def test_a_disabled_rule_is_listed_with_the_place_that_disabled_it():
    inventory = bucket(found(Rule("x", description="d")), disabled_rules=["x"], disabled_in="ttsr-proxy.yaml")
    (entry,) = inventory.entries
    assert (entry.state, entry.bucket, entry.reason) == ("inactive", None, "disabled in ttsr-proxy.yaml")
    assert inventory.addressable == ()


def test_a_disabled_name_that_no_rule_has_is_reported():
    (problem,) = bucket(found(Rule("no-eval")), disabled_rules=["no-evil"]).problems
    assert "no-evil" in problem.message
    assert "did you mean 'no-eval'" in problem.message


def test_a_rule_switched_off_in_its_file_says_how():
    rule = Rule.from_markdown("a.md", "---\ntrigger: manual\ndescription: d\n---\n")
    (entry,) = bucket(found(rule)).entries
    assert entry.reason == "disabled in its file (trigger: manual)"


def test_shipped_rules_can_be_switched_off_as_a_whole():
    (entry,) = bucket(
        found(Rule("a", condition=["x"]), provider="builtin-defaults"), builtin_rules=False
    ).entries
    assert (entry.state, entry.reason) == ("inactive", "shipped rules are off (ttsr.builtinRules is false)")


def test_a_shipped_rule_never_falls_back_into_the_prompt():
    rule = Rule("a", condition=["x"], description="d")
    (entry,) = bucket(found(rule, provider="builtin-defaults"), enabled=False).entries
    assert (entry.state, entry.bucket) == ("inactive", None)
    assert "ttsr.enabled" in entry.reason


def test_precedence_comes_before_every_switch():
    winner = FoundRule(Rule("a", path="/p/a.md", condition=["x"], enabled=False), "native", 100)
    loser = FoundRule(Rule("a", path="/q/a.md", condition=["x"]), "cline", 40, shadowed_by=winner)
    inventory = bucket(Discovery((winner, loser), ()), disabled_rules=["a"])
    assert [entry.reason for entry in inventory.entries] == [
        "disabled in its file (enabled: false)",
        "shadowed by /p/a.md (native)",
    ]


def test_a_refused_rule_does_not_colour_the_rule_it_shadows():
    winner = FoundRule(Rule("a", path="/p/a.md", condition=["("]), "native", 100)
    loser = FoundRule(Rule("a", path="/q/a.md", condition=["x"]), "cline", 40, shadowed_by=winner)
    entries = bucket(Discovery((winner, loser), ()), register=lambda rules: {"a": "no good"}).entries
    assert [entry.reason for entry in entries] == ["no good", "shadowed by /p/a.md (native)"]


def test_addressable_rules_are_those_in_a_bucket():
    rules = (Rule("t", **TRIGGER), Rule("a", **ALWAYS), Rule("b", **BOOK), Rule("n"))
    assert [rule.name for rule in bucket(found(*rules)).addressable] == ["b", "a", "t"]


def test_an_entry_as_json_has_every_key():
    rule = Rule("a", path="/p/a.md", condition=["x"], globs=["*.ts"], warnings=("w",))
    (entry,) = bucket(found(rule)).entries
    assert entry.to_dict() == {
        "name": "a",
        "path": "/p/a.md",
        "provider": "cursor",
        "bucket": "ttsr",
        "state": "active",
        "reason": None,
        "description": None,
        "alwaysApply": None,
        "condition": ["x"],
        "astCondition": None,
        "question": None,
        "globs": ["*.ts"],
        "globsKey": "globs",
        "scope": None,
        "interruptMode": None,
        "repeatMode": None,
        "repeatGap": None,
        "contextMode": None,
        "maxInterrupts": None,
        "onExhausted": None,
        "observe": None,
        "agents": None,
        "warnings": ["w"],
    }
