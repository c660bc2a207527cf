"""Rule files as people write them, and what they mean."""

from __future__ import annotations

from typing import Any

import pytest

from ttsr_proxy.rules.model import Rule


def file(*front: str, body: str = "Do the other thing.\n") -> str:
    return "\n".join(["---", *front, "---", body])


WITHOUT_A_WORD: dict[str, tuple[str, dict[str, Any]]] = {
    "a list of globs": (file("globs: ['**/*.ts', '**/*.js']"), {"globs": ["**/*.ts", "**/*.js"]}),
    "a block list": (file("applyTo:", '  - "**/*.m"'), {"globs": ["**/*.m"]}),
    "a text where a list could be": (file("applyTo: '**/*.m'"), {"globs": ["**/*.m"]}),
    "commas between globs": (
        file("globs: src/**/*.ts, src/**/*.tsx,"),
        {"globs": ["src/**/*.ts", "src/**/*.tsx"]},
    ),
    "a comma inside braces": (
        file('applyTo: "**/*.{java,kt},**/*.md"'),
        {"globs": ["**/*.{java,kt}", "**/*.md"]},
    ),
    "commas inside quotes": (file('globs: "*.ts, *.tsx"'), {"globs": ["*.ts", "*.tsx"]}),
    "globs as fileMatchPattern": (file("fileMatchPattern: 'a/*.py'"), {"globs": ["a/*.py"]}),
    "globs as paths": (file("paths: ['a/*.py']"), {"globs": ["a/*.py"]}),
    "windows line ends": (
        file("condition: x", body="One.\nTwo.\n").replace("\n", "\r\n"),
        {"condition": ["x"], "content": "One.\nTwo."},
    ),
    "a line across the body": (
        "Text.\n\n---\n\nMore text.\n",
        {"content": "Text.\n\n---\n\nMore text.", "condition": None},
    ),
    "always on": (file("trigger: always_on"), {"always_apply": True}),
    "by glob": (file("trigger: glob", "globs: '**/*.test.ts'"), {"globs": ["**/*.test.ts"]}),
    "several conditions": (
        file("condition: ['TS\\d{4}', 'rejected']"),
        {"condition": ["TS\\d{4}", "rejected"]},
    ),
}

WITH_A_WARNING: dict[str, tuple[str | bytes, dict[str, Any], str]] = {
    "a star in front": (
        file("globs: *.ts,*.tsx", "alwaysApply: true", "description: d"),
        {"globs": ["*.ts", "*.tsx"], "always_apply": True, "description": "d"},
        "globs",
    ),
    "two stars": (file("applyTo: **", "description: d"), {"globs": ["**"], "description": "d"}, "applyTo"),
    "two quoted texts": (file('globs: "*.ts","*.tsx"'), {"globs": ["*.ts", "*.tsx"]}, "globs"),
    "a scope of two quoted words": (
        file("condition: x", 'scope: "text","thinking"'),
        {"scope": ["text", "thinking"], "condition": ["x"]},
        "scope",
    ),
    "curly quotes": (file("applyTo: “**/*.{ts,tsx}”"), {"globs": ["**/*.{ts,tsx}"]}, "quot"),
    "a byte order mark": (
        b"\xef\xbb\xbf" + file('globs: "*.ts"').encode(),
        {"globs": ["*.ts"]},
        "byte order mark",
    ),
    "UTF-16": (file("condition: x").encode("utf-16"), {"condition": ["x"]}, "UTF-16"),
    "latin-1": (file("condition: x", body="caf\xe9").encode("latin-1"), {"condition": ["x"]}, "UTF-8"),
    "a comment in front": ("<!-- made -->\n" + file("paths: [a]"), {"globs": ["a"]}, "frontmatter"),
    "a tab as indent": (file("condition:", "\t- a"), {"condition": ["a"]}, "tab"),
    "a backspace": (file('condition: "\\bfind\\b"'), {"condition": ["\\bfind\\b"]}, "single quotes"),
    "a broken escape": (file('condition: "\\s+any"'), {"condition": ["\\s+any"]}, "single quotes"),
    "a comment sign": (file("condition: # fixme"), {}, "comment"),
    "a comment sign behind the text": (file("condition: foo #bar"), {"condition": ["foo"]}, "#"),
    "a mode that reads as a switch": (file("condition: x", "interruptMode: off"), {}, "interruptMode"),
    "an unknown mode": (file("condition: x", "interruptMode: sometimes"), {}, "always"),
    "a key in other letters": (file("condition: x", "repeatgap: 3"), {"condition": ["x"]}, "repeatGap"),
    "two blocks": (
        "---\ntrigger: manual\n---\n---\ndescription: x\n---\nbody",
        {"description": None},
        "second",
    ),
}


def assert_fields(rule: Rule, expected: dict[str, Any]) -> None:
    for name, value in expected.items():
        found = getattr(rule, name)
        found = list(found) if isinstance(found, tuple) else found
        assert (found.strip() if name == "content" else found) == value, name


@pytest.mark.parametrize(("text", "expected"), WITHOUT_A_WORD.values(), ids=WITHOUT_A_WORD)
def test_a_sound_file_means_what_it_says(text: str, expected: dict[str, Any]) -> None:
    rule = Rule.from_markdown("r.md", text)
    assert_fields(rule, expected)


@pytest.mark.parametrize(("text", "expected", "word"), WITH_A_WARNING.values(), ids=WITH_A_WARNING)
def test_a_slip_is_repaired_or_told(text: str | bytes, expected: dict[str, Any], word: str) -> None:
    rule = Rule.from_markdown("r.md", text)
    assert_fields(rule, expected)
    assert any(word in warning for warning in rule.warnings), rule.warnings


@pytest.mark.parametrize("spelling", ["false", '"no"', "off", "no", "'false'"])
def test_every_spelling_of_off_switches_a_rule_off(spelling: str) -> None:
    assert Rule.from_markdown("r.md", file("condition: x", f"enabled: {spelling}")).disabled_by


@pytest.mark.parametrize(
    ("front", "applies"),
    [
        ("alwaysApply: true", True),
        ('alwaysApply: "true"', False),
        ("alwaysApply: false", False),
        ("a: 1", False),
    ],
)
def test_always_apply_is_true_only_as_a_switch(front: str, applies: bool) -> None:
    assert Rule.from_markdown("r.md", file("condition: x", front)).always_apply is applies


def test_an_empty_list_of_paths_is_never_and_no_value_is_everywhere() -> None:
    never = Rule.from_markdown("r.md", file("condition: x", "paths: []"))
    everywhere = Rule.from_markdown("r.md", file("condition: x", "globs:"))
    assert never.disabled_by
    assert not everywhere.disabled_by
    assert not everywhere.globs
