"""What authors can write is what the page for authors says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ttsr_proxy.rules.metadata import KNOWN_KEYS
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.rules.providers import PROVIDERS

PAGE = (Path(__file__).parents[2] / "docs" / "writing-rules.md").read_text("utf-8")


@pytest.mark.parametrize("key", KNOWN_KEYS)
def test_every_frontmatter_key_is_documented(key):
    assert re.search(rf"`{key}[`:]", PAGE)


@pytest.mark.parametrize("provider", PROVIDERS, ids=[provider.name for provider in PROVIDERS])
def test_every_provider_is_documented_with_its_priority(provider):
    assert f"| `{provider.name}` | {provider.priority} |" in PAGE


def test_the_first_example_is_a_good_rule():
    example = re.search(r"```markdown\n(.*?)```", PAGE, re.DOTALL)[1]
    rule = Rule.from_markdown("python-bare-except.md", example)
    assert rule.condition
    assert rule.warnings == ()
