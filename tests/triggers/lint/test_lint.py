"""The linter: each kind of mistake is found where it stands, and sound rules are left alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttsr_proxy import Rule
from ttsr_proxy.config import TtsrSettings
from ttsr_proxy.rules.frontmatter import read_document
from ttsr_proxy.rules.repairs import decode
from ttsr_proxy.triggers.lint import Finding, lint_rule

TOOLS = {"edit", "write", "bash", "Read", "MultiEdit", "mcp__files__*"}


def lint(
    frontmatter: str, body: str = "Do it in another way.", ttsr: TtsrSettings | None = None
) -> list[Finding]:
    text = f"---\n{frontmatter}\n---\n{body}\n"
    lines = read_document(decode(text)[0]).lines
    return list(lint_rule(Rule.from_markdown("r.md", text), lines, ttsr or TtsrSettings(), TOOLS))


def codes(frontmatter: str, body: str = "Do it in another way.") -> list[tuple[str, str]]:
    return [(finding.level, finding.code) for finding in lint(frontmatter, body)]


@pytest.mark.parametrize(
    ("frontmatter", "level", "code"),
    [
        ("condition: '('", "error", "invalid-condition"),
        ("condition: '(?P<a>foo)(?P=a)'", "warning", "not-portable"),
        (r'condition: "\bfoo\b"', "error", "double-quoted-escape"),
        ("condition: foo #bar", "error", "cut-by-comment"),
        ("condition: [a-z]foo", "warning", "broken-yaml"),
        ("condition: [foo]", "error", "brackets-as-list"),
        ("condition: foo\nrepeatgap: 3", "error", "unknown-key"),
        ("condition: foo\nrepeatGap: often", "error", "wrong-value"),
        ("condition: foo\nscope: tool\nscope: text", "error", "key-given-twice"),
        ("condition: foo\nreminder: " + "x" * 1_025, "error", "reminder-too-long"),
        ("condition: 'foo|'", "error", "broad-alternative"),
        ("condition: '|foo'", "error", "broad-alternative"),
        ("condition: '(?:foo|x*)'", "error", "broad-alternative"),
        ("condition: 'frobnicate|e'", "error", "broad-alternative"),
        ("condition: ''\ndescription: x", "error", "empty-condition"),
        ("condition: 'x*'", "error", "broad-condition"),
        ("condition: '.*'", "error", "broad-condition"),
        ("condition: '[a-z]+'", "error", "broad-condition"),
        (r"condition: '\bdef\b|return'" + "\nscope: tool:write(*.py)", "error", "broad-condition"),
        (r"condition: '(a+)+\d'", "error", "catastrophic-condition"),
        (r"condition: '(?:\w+\s*)+;'", "error", "catastrophic-condition"),
        (r"condition: '(?:x|(?:b*)*)*!'", "error", "catastrophic-condition"),
        (r"condition: 'x[\s\S]*y[\s\S]*z[\s\S]*!'", "warning", "slow-condition"),
        (r"condition: '[\s\S]*foo'", "warning", "unbounded-in-prose"),
        ("condition: foo\nscope: 'tool:('", "error", "invalid-scope"),
        ("condition: foo\nscope: '!'", "error", "scope-reaches-nothing"),
        ("condition: foo\nscope: tool:wrte", "warning", "unknown-tool"),
        ("astCondition: print($A)\nscope: text", "error", "ast-condition-without-tool"),
        ("astCondition: ' '", "error", "empty-condition"),
        ("astCondition: 'a = 1; b = 2'\nscope: tool:write(*.py)", "error", "ast-condition-is-no-code"),
        ("astCondition: print($A)\nglobs: '*.xyz'", "error", "no-language"),
        ("condition: foo\nglobs: src/", "error", "glob-matches-nothing"),
        ("condition: foo\nglobs: ./src/*.py", "error", "glob-matches-nothing"),
        ("condition: foo\nscope: tool:edit(src/../a.py)", "error", "glob-matches-nothing"),
        ("condition: foo\nglobs: ~/x.py", "error", "glob-matches-nothing"),
        ("condition: foo\nglobs: '*.py'\nscope: text", "error", "globs-without-tool"),
        ("condition: foo\nglobs: '*.py'\nscope: tool:edit(*.ts)", "error", "globs-contradict-scope"),
        ("condition: foo\nglobs: src/a.py\nscope: tool:edit(lib/**)", "error", "globs-contradict-scope"),
        ("condition: foo\nscope: tool\ninterruptMode: prose-only", "warning", "mode-never-interrupts"),
        ("condition: foo\nscope: text\ninterruptMode: tool-only", "warning", "mode-never-interrupts"),
        ("condition: git push --force", "warning", "action-in-prose"),
        (r"condition: '\bgit\s+push\b'" + "\nscope: text", "warning", "action-in-prose"),
        ("description: " + "x" * 400, "warning", "long-description"),
    ],
)
def test_a_mistake_is_found(frontmatter: str, level: str, code: str) -> None:
    assert (level, code) in codes(frontmatter)


@pytest.mark.parametrize(
    "frontmatter",
    [
        r"condition: '\beval\('" + "\nscope: tool:write(*.py), tool:edit(*.py)",
        "condition: '*.rs'",
        "condition: foo\nglobs: 'src/**/*.{ts,tsx}'\nscope: tool:edit(*.ts)",
        "condition: foo\nglobs: '**/*.py'\nscope: tool:edit(src/**)",
        "condition: foo\nscope: text, thinking\ninterruptMode: prose-only",
        "condition: git push --force\nscope: tool:bash",
        r"condition: 'TODO[\s\S]{0,200}later'",
        r"condition: '(?m)^\s*pass$'" + "\nscope: tool:write(*.py)",
        "astCondition: console.log($$$)\nglobs: '*.{ts,js}'",
        "description: A rule to read",
        "alwaysApply: true",
        r"condition: '[\s\S]*foo'" + "\nscope: tool",
        "condition: '(?:a|b)foo|bar'",
        r"condition: 'x(?:[^\n]*\n){1,4}y'",
        r"condition: 'foo(?:,[a-z]{1,20}){1,9};'",
        r"condition: 'foo(?:a+)+'",
        "condition: foo\nglobs: '!*.md'\nscope: tool:edit(*.md)",
        "condition: foo\nscope: tool:multiedit, mcp__files__save",
    ],
)
def test_a_sound_rule_has_no_findings(frontmatter: str) -> None:
    assert lint(frontmatter) == []


def test_a_finding_names_file_line_key_and_what_to_do() -> None:
    (finding,) = lint("description: d\ncondition: foo\nrepeatgap: 3")
    assert (finding.path, finding.line, finding.key) == ("r.md", 4, "repeatgap")
    assert "did you mean `repeatGap`?" in finding.what
    assert finding.advice
    (finding,) = lint("description: d\nttsr_trigger: '('")
    assert (finding.line, finding.key) == (3, "ttsr_trigger")


def test_the_broad_alternative_is_quoted() -> None:
    (finding,) = lint(r"condition: 'a\|b|(c|d)e|[|]|x*'" + "\nscope: tool:bash")
    assert "alternative 4 of condition 1, 'x*'" in finding.what


def test_a_rule_about_prose_that_breaks_itself_is_found() -> None:
    body = "Never say that a failure is pre-existing."
    assert ("warning", "matches-own-text") in codes("condition: pre-existing\nscope: text", body)
    assert codes("condition: pre-existing\nscope: tool:edit", body) == []
    assert codes("condition: pre-existing\nscope: text\nreminder: Look into it.", body) == []


def test_a_rule_without_text_is_found() -> None:
    assert codes("condition: foo", "") == [("error", "empty-rule")]


def test_a_long_rule_is_found_unless_a_reminder_is_sent() -> None:
    body = "word " * 2_000
    assert codes("condition: foo", body) == [("warning", "long-rule")]
    assert codes("condition: foo\nreminder: Short.", body) == []


def test_a_rule_that_is_switched_off_is_checked_too() -> None:
    assert ("error", "broad-condition") in codes("condition: '.*'\nenabled: false")


def test_prose_that_no_rule_interrupts_need_not_be_held() -> None:
    never = TtsrSettings(interrupt_mode="never")
    assert lint(r"condition: '[\s\S]*foo'", ttsr=never) == []


def test_a_control_character_in_a_condition_is_found() -> None:
    found = lint_rule(Rule("r", content="x", condition=["\bfoo"]), {}, TtsrSettings())
    assert [finding.code for finding in found] == ["control-character"]


def test_a_condition_proven_linear_is_not_tried() -> None:
    found = lint_rule(Rule("r", content="x", condition=["foo"] * 500, scope=["tool"]), {}, TtsrSettings())
    assert found == ()


CONFORMANCE = Path(__file__).parents[2] / "conformance" / "parse.jsonl"


@pytest.mark.parametrize("line", CONFORMANCE.read_text("utf-8").splitlines())
def test_rule_files_of_every_kind_can_be_checked(line: str) -> None:
    case = json.loads(line)
    rule = Rule.from_markdown(case["file"], case["content"])
    lines = read_document(decode(case["content"])[0]).lines
    for finding in lint_rule(rule, lines, TtsrSettings(), TOOLS):
        assert finding.what
        assert finding.advice


@settings(max_examples=60)
@given(st.text(alphabet="ab()[]|*+?\\d.^${},:=!<1-\n", max_size=16))
def test_no_condition_breaks_the_linter(condition: str) -> None:
    for finding in lint_rule(Rule("r", content="x", condition=[condition]), {}, TtsrSettings()):
        assert finding.key == "condition"
