from __future__ import annotations

import pytest

from ttsr_proxy.rules.model import Rule


def read(frontmatter: str) -> Rule:
    return Rule.from_markdown("dir/r.mdc", f"---\n{frontmatter}\n---\nBody")


def warned(rule: Rule, *words: str) -> bool:
    return any(all(word in warning for word in words) for warning in rule.warnings)


@pytest.mark.parametrize(
    ("path", "name"),
    [("a.md", "a"), ("x/y/b.mdc", "b"), ("a.md.mdc", "a.md"), (r"c:\x\d.md", "d"), ("RULES", "RULES")],
)
def test_the_name_is_the_file_name_without_its_extension(path, name):
    assert Rule.from_markdown(path, "x").name == name


def test_to_dict_has_camel_case_keys_and_leaves_absent_ones_out():
    rule = read(
        "condition: x\nastCondition: f($A)\nscope: text\ninterruptMode: never\nagents: Main, Sub*\n"
        "question: Is it?\nreminder: Short\nrepeatMode: after-gap\nrepeatGap: 2\ncontextMode: keep\n"
        "maxInterrupts: 1\nonExhausted: block\nobserve: true"
    )
    assert rule.to_dict() == {
        "name": "r",
        "path": "dir/r.mdc",
        "content": "Body",
        "alwaysApply": False,
        "condition": ["x"],
        "astCondition": ["f($A)"],
        "scope": ["text"],
        "interruptMode": "never",
        "agents": ["main", "sub*"],
        "question": "Is it?",
        "reminder": "Short",
        "repeatMode": "after-gap",
        "repeatGap": 2,
        "contextMode": "keep",
        "maxInterrupts": 1,
        "onExhausted": "block",
        "observe": True,
    }
    assert rule.warnings == ()
    assert Rule("a").to_dict() == {"name": "a", "content": ""}


def test_observe_takes_only_a_boolean():
    assert read("condition: x\nobserve: false").observe is False
    quoted = read('condition: x\nobserve: "true"')
    assert quoted.observe is None
    assert warned(quoted, "line 3", "`observe`", "without quotes")


def test_a_rule_made_in_code_keeps_its_lists_verbatim():
    rule = Rule("a", condition=["*.rs"], globs=["a,b"], scope=["text,thinking"])
    assert (rule.condition, rule.globs, rule.scope) == (("*.rs",), ("a,b",), ("text,thinking",))


def test_one_string_for_a_list_is_refused():
    with pytest.raises(TypeError, match="condition"):
        Rule("a", condition="x")


@pytest.mark.parametrize("value", ["false", '"no"', "off", "No", '"FALSE"'])
def test_enabled_off_is_understood_in_every_spelling(value):
    rule = read(f"enabled: {value}\ncondition: x")
    assert not rule.enabled
    assert rule.disabled_by.startswith("enabled: ")


@pytest.mark.parametrize("value", ["true", '"yes"', "on", ""])
def test_enabled_on_is_the_default(value):
    assert read(f"enabled: {value}\ncondition: x").enabled


def test_an_unclear_enabled_is_reported_and_leaves_the_rule_on():
    rule = read("enabled: maybe")
    assert rule.enabled
    assert warned(rule, "line 2", "`enabled`", "maybe")


@pytest.mark.parametrize(
    ("value", "expected", "warns"),
    [
        ("true", True, False),
        ("false", False, False),
        ("", False, False),
        ('"true"', False, True),
        ("yes", False, True),
        ("1", False, True),
    ],
)
def test_always_apply_is_true_for_the_yaml_boolean_only(value, expected, warns):
    rule = read(f"alwaysApply: {value}")
    assert rule.always_apply is expected
    assert warned(rule, "`alwaysApply`") is warns


@pytest.mark.parametrize(
    ("trigger", "always", "enabled"),
    [
        ("always_on", True, True),
        ("glob", False, True),
        ("model_decision", False, True),
        ("manual", False, False),
    ],
)
def test_windsurf_triggers_become_what_they_mean(trigger, always, enabled):
    rule = read(f"trigger: {trigger}\nglobs: '**/*.test.ts'\ndescription: d")
    assert (rule.always_apply, rule.enabled) == (always, enabled)
    assert rule.globs == ("**/*.test.ts",)
    assert rule.warnings == ()


def test_an_explicit_always_apply_beats_the_trigger():
    assert read("trigger: always_on\nalwaysApply: false").always_apply is False


def test_an_empty_paths_list_means_never_and_empty_globs_mean_no_gate():
    assert read("paths: []").disabled_by == "paths: [] (no file)"
    assert read("globs:").enabled
    assert read("globs: []").enabled
    assert read("globs: '*.ts'\npaths: []").enabled


@pytest.mark.parametrize("value", ["off", "false", "no"])
def test_interrupt_mode_off_is_never_with_a_warning(value):
    rule = read(f"interruptMode: {value}")
    assert rule.interrupt_mode == "never"
    assert warned(rule, "`interruptMode`", "never")


def test_wrong_words_are_reported_with_a_suggestion():
    assert warned(read("interruptMode: Never"), "`never`", "did you mean")
    assert warned(read("repeatMode: after_gap"), "did you mean `after-gap`")
    assert warned(read("interruptMode: sometimes"), "prose-only", "sometimes")


def test_unknown_keys_are_reported_with_a_suggestion():
    rule = read("condition: x\nrepeatgap: 3\nauthor: me")
    assert rule.repeat_gap is None
    assert warned(rule, "line 3", "`repeatgap`", "did you mean `repeatGap`")
    assert warned(rule, "line 4", "`author`")


@pytest.mark.parametrize("value", ["-1", "2.5", "true", '"3"', "many"])
def test_a_count_must_be_a_whole_number(value):
    rule = read(f"repeatGap: {value}")
    assert rule.repeat_gap is None
    assert warned(rule, "`repeatGap`", "whole number")


def test_values_of_the_wrong_type_cost_only_themselves():
    rule = read("condition: [x, 5, {a: b}]\ndescription: 12\nscope: text")
    assert (rule.condition, rule.description, rule.scope) == (("x",), None, ("text",))
    assert warned(rule, "`condition`", "5")
    assert warned(rule, "`description`", "12")


def test_a_long_or_empty_reminder_gives_way_to_the_body():
    assert read(f"reminder: {'é' * 512}").reminder_text == "é" * 512
    long = read(f"reminder: {'é' * 513}")
    assert long.reminder_text == "Body"
    assert warned(long, "`reminder`", "1,026")
    assert read("reminder: ' '").reminder_text == "Body"


def test_a_list_of_globs_as_condition_becomes_scope():
    rule = read('condition: "*.ts,*.{js,jsx}"')
    assert rule.condition == (".*",)
    assert rule.scope == (
        "tool:edit(*.ts)",
        "tool:write(*.ts)",
        "tool:edit(*.{js,jsx})",
        "tool:write(*.{js,jsx})",
    )


def test_a_catch_all_rule_interrupts_once_unless_it_says_otherwise():
    assert read('condition: "*.rs"').interrupt_budget(2) == 1
    assert read('condition: "*.rs"\nmaxInterrupts: 3').interrupt_budget(2) == 3
    assert read("condition: x").interrupt_budget(2) == 2


@pytest.mark.parametrize(
    ("literal", "condition"),
    [
        ("/any/i", "(?i)any"),
        ("/a\\/b/gm", "(?m)a\\/b"),
        ("/[/]x+/u", "[/]x+"),
        ("/usr/bin/", "/usr/bin/"),
        ("/a/b", "/a/b"),
    ],
)
def test_a_javascript_regex_literal_with_flags_is_understood(literal, condition):
    assert read(f"condition: {literal}").condition == (condition,)


def test_a_condition_about_curly_quotes_keeps_them():
    assert read("condition: “|”").condition == ("“|”",)
    assert read("condition: “foo”").condition == ("foo",)
