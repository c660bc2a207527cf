from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttsr_proxy.rules.model import Rule


def read(frontmatter: str, body: str = "Body") -> Rule:
    return Rule.from_markdown("r.md", f"---\n{frontmatter}\n---\n{body}")


def warned(rule: Rule, *words: str) -> bool:
    return any(all(word in warning for word in words) for warning in rule.warnings)


class TestWhereFrontmatterIs:
    def test_crlf_reads_as_lf_and_leaves_no_cr_in_the_body(self):
        rule = Rule.from_markdown("r.md", "---\r\ncondition: x\r\n---\r\none\r\ntwo\r\n")
        assert (rule.condition, rule.content) == (("x",), "one\ntwo")
        assert warned(rule, "CRLF")

    @pytest.mark.parametrize("before", ["\ufeff", "\n\n", "<!-- made by a tool -->\n", "<!--\n a\n-->\n\n"])
    def test_marks_blank_lines_and_comments_before_the_fence_are_skipped(self, before):
        rule = Rule.from_markdown("r.md", before + "---\npaths: [a]\n---\nB")
        assert (rule.globs, rule.content) == (("a",), "B")
        assert rule.warnings

    def test_a_horizontal_rule_in_the_body_is_not_frontmatter(self):
        text = "# Title\n\n---\n\nkey: value\n\n---\nmore\n"
        assert Rule.from_markdown("r.md", text).content == text

    def test_prose_between_two_horizontal_rules_at_the_top_is_body(self):
        text = "---\n\n# Title\n\nNote: be kind\n\n---\nmore\n"
        assert Rule.from_markdown("r.md", text).content == text

    def test_a_long_line_of_dashes_is_not_a_fence(self):
        assert Rule.from_markdown("r.md", "-----\na: b\n-----\n").content == "-----\na: b\n-----\n"

    def test_frontmatter_after_text_has_no_effect_and_is_reported_with_its_line(self):
        rule = Rule.from_markdown("r.md", "Intro\n\n---\nalwaysApply: true\n---\nB")
        assert rule.always_apply is False
        assert warned(rule, "line 3", "start of the file")

    def test_the_first_of_two_blocks_counts_and_the_second_is_reported(self):
        rule = Rule.from_markdown("r.md", "---\ntrigger: manual\n---\n---\ndescription: x\n---\nbody")
        assert rule.description is None
        assert warned(rule, "line 4", "second frontmatter block")

    def test_a_block_that_is_never_closed_is_reported(self):
        assert warned(Rule.from_markdown("r.md", "---\ncondition: x\nB"), "never closed")

    def test_comments_are_not_for_the_model_but_examples_in_code_are(self):
        body = "<!-- note -->Say `<!-- x -->`.\n\n```html\n<!-- kept -->\n```\n<!-- open"
        assert (
            read("description: d", body).content
            == "Say `<!-- x -->`.\n\n```html\n<!-- kept -->\n```\n<!-- open"
        )


class TestEncodings:
    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
    def test_a_byte_order_mark_says_the_encoding(self, encoding):
        rule = Rule.from_markdown("r.md", "---\ncondition: é\n---\nB".encode(encoding))
        assert rule.condition == ("é",)
        assert rule.warnings

    def test_a_latin_1_file_loads_with_replacement_and_says_where(self):
        rule = Rule.from_markdown("r.md", b"---\ncondition: x\n---\ncaf\xe9")
        assert (rule.condition, rule.content) == (("x",), "caf\ufffd")
        assert warned(rule, "line 4", "UTF-8")

    def test_utf_16_without_a_mark_is_pointed_out(self):
        assert warned(Rule.from_markdown("r.md", "---\n".encode("utf-16-le")), "UTF-16")


class TestYaml:
    def test_words_that_yaml_1_1_reads_as_booleans_are_text(self):
        assert read("condition: [on, off, yes, No, y]").condition == ("on", "off", "yes", "No", "y")

    def test_hyphenated_keys_are_camel_case(self):
        assert read("always-apply: true\nrepeat-gap: 3").repeat_gap == 3

    def test_a_bad_line_costs_no_other_key_its_type(self):
        rule = read("globs: *.ts\nalwaysApply: true\ndescription: |\n  two\n  lines\nrepeatGap: 3")
        assert (rule.globs, rule.always_apply, rule.repeat_gap) == (("*.ts",), True, 3)
        assert rule.description == "two\nlines\n"
        assert warned(rule, "line 2", "`globs`", "YAML")
        assert len(rule.warnings) == 1

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            ("globs: *.ts,*.tsx", ("*.ts", "*.tsx")),
            ("globs: **/*", ("**/*",)),
            ("applyTo: **", ("**",)),
            ('globs: "*.ts", "*.tsx"', ("*.ts", "*.tsx")),
            ('globs: "*.ts, *.tsx"', ("*.ts", "*.tsx")),
            ("globs: src/**/*.ts,src/**/*.tsx,,", ("src/**/*.ts", "src/**/*.tsx")),
            ('applyTo: "**/*.{java,kt},**/*.md"', ("**/*.{java,kt}", "**/*.md")),
            ('applyTo:\n  - "**/*.m"', ("**/*.m",)),
            ("globs: [*.ts, **/*.{js,jsx}]", ("*.ts", "**/*.{js,jsx}")),
            ("globs:\n  - *.ts\n  - '*.js'", ("*.ts", "*.js")),
            ("applyTo: “**/*.{ts,tsx}”", ("**/*.{ts,tsx}",)),
            ("globs: “*.ts”, ‘*.js’", ("*.ts", "*.js")),
            ('globs: "*.ts”', ("*.ts",)),
            ("globs:", None),
            ('globs: ""', None),
            ("globs: []", ()),
        ],
    )
    def test_every_spelling_of_globs_gives_the_same_list(self, line, expected):
        assert read(line).globs == expected

    @pytest.mark.parametrize("key", ["globs", "paths", "applyTo", "fileMatchPattern", "apply-to"])
    def test_foreign_keys_for_globs_are_understood_and_remembered(self, key):
        rule = read(f"{key}: '*.ts'")
        assert rule.globs == ("*.ts",)
        assert rule.globs_key == key.replace("apply-to", "applyTo")

    def test_globs_win_over_a_second_spelling_which_is_reported(self):
        rule = read("paths: ['*.js']\nglobs: '*.ts'")
        assert rule.globs == ("*.ts",)
        assert warned(rule, "line 2", "`paths`", "`globs`")

    @pytest.mark.parametrize(
        "scope", ['"text","thinking"', "text, thinking", "'text' , 'thinking'", "[text, thinking]"]
    )
    def test_every_spelling_of_a_scope_list_is_understood(self, scope):
        assert read(f"condition: x\nscope: {scope}").scope == ("text", "thinking")

    @pytest.mark.parametrize(
        ("condition", "expected"),
        [
            (r'"\bfind\b"', (r"\bfind\b",)),
            (r'"\s+any"', (r"\s+any",)),
            (r'["\s+any", "\d\\w"]', (r"\s+any", r"\d\w")),
            (r'"\p{L}\P{Lu}"', (r"\p{L}\P{Lu}",)),
            (r'"\u{1F600}"', (r"\u{1F600}",)),
            (r'"a\x41\u0042"', ("aAB",)),
            ("[abc]+x", ("[abc]+x",)),
            ("*abc", ("*abc",)),
            ("`x`", ("`x`",)),
            ("foo: bar", ("foo: bar",)),
            (r"'it''s \b'", (r"it's \b",)),
        ],
    )
    def test_regular_expressions_survive_yaml(self, condition, expected):
        assert read(f"condition: {condition}\nscope: text").condition == expected

    def test_a_backspace_meant_as_a_word_boundary_is_reported(self):
        assert warned(read(r'condition: "\bfind\b"'), r"\b", "single quotes")

    def test_a_well_quoted_condition_gives_no_warning(self):
        assert read(r"condition: '\bfind\b # not a comment'").warnings == ()

    @pytest.mark.parametrize(("value", "word"), [("foo #bar", "shortened"), ("# fixme", "empty")])
    def test_a_condition_cut_by_a_yaml_comment_is_reported(self, value, word):
        assert warned(read(f"description: d\ncondition: {value}"), "line 3", "`condition`", word)

    def test_brackets_that_look_like_a_character_class_are_reported(self):
        assert warned(read("condition: [a-z]"), "character class")

    def test_a_repeated_key_is_reported_and_the_last_one_counts(self):
        rule = read("condition: a\ncondition: b")
        assert rule.condition == ("b",)
        assert warned(rule, "line 3", "twice")

    def test_lines_that_are_no_keys_are_reported_when_yaml_fails(self):
        rule = read("nonsense\nglobs: *.ts")
        assert rule.globs == ("*.ts",)
        assert warned(rule, "line 2", "nonsense")

    @pytest.mark.parametrize(
        "block",
        [
            pytest.param("a: " + "[" * 5000, id="deep"),
            pytest.param("repeatGap: " + "9" * 5000, id="long-number"),
            pytest.param("repeatGap: 0x" + "f" * 60_000, id="long-hex"),
            pytest.param("description: " + "d" * 70_000, id="long"),
            "? [a]\n: b",
            "a: &a [*a]",
            "x: \x07",
            "y: !!python/none",
        ],
    )
    def test_hostile_yaml_never_raises(self, block):
        assert read(f"{block}\ncondition: x").name == "r"

    @settings(max_examples=100, deadline=None)
    @given(st.text(alphabet=st.sampled_from("---\n:[]{}&*#'\"\\ \tabc|>%@!,?<\ufeff“”0"), max_size=80))
    def test_no_text_raises(self, text):
        rule = Rule.from_markdown("r.md", text)
        assert rule == Rule.from_markdown("r.md", text)
        Rule.from_markdown("r.md", "---\n" + text + "\n---\nB").to_dict()

    @settings(max_examples=50, deadline=None)
    @given(st.binary(max_size=60))
    def test_no_bytes_raise(self, data):
        assert Rule.from_markdown("r.md", data).name == "r"
