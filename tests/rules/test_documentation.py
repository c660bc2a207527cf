"""What authors can write is what the page for authors says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ttsr_proxy.rules.metadata import KNOWN_KEYS
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.rules.providers import PROVIDERS
from ttsr_proxy.rules.shipped import shipped_rules_directory

PAGE = (Path(__file__).parents[2] / "docs" / "writing-rules.md").read_text("utf-8")


@pytest.mark.parametrize("key", KNOWN_KEYS)
def test_every_frontmatter_key_is_documented(key):
    assert re.search(rf"`{key}[`:]", PAGE)


@pytest.mark.parametrize("provider", PROVIDERS, ids=[provider.name for provider in PROVIDERS])
def test_every_provider_is_documented_with_its_priority(provider):
    assert f"| `{provider.name}` | {provider.priority} |" in PAGE


def test_exactly_the_shipped_rules_are_documented():
    documented = set(re.findall(r"(?m)^\| `([a-z-]+)` \| (?!\d)", PAGE[PAGE.index("## The shipped rules") :]))
    assert documented == {path.stem for path in shipped_rules_directory().glob("*.md")}


def test_shipped_rules_that_only_remind_are_marked():
    for path in shipped_rules_directory().glob("*.md"):
        (line,) = re.findall(rf"(?m)^\| `{path.stem}` \| .*$", PAGE)
        reminds = Rule.from_markdown(path.name, path.read_bytes()).interrupt_mode == "never"
        assert line.endswith("; reminds |") is reminds


def test_the_first_example_is_a_good_rule():
    example = re.search(r"```markdown\n(.*?)```", PAGE, re.DOTALL)[1]
    rule = Rule.from_markdown("python-bare-except.md", example)
    assert rule.condition
    assert rule.warnings == ()
