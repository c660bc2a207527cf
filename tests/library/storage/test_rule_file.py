"""Rules as Markdown files."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttsr_proxy.library.model import LibraryRule, Origin, Triggers
from ttsr_proxy.library.storage.frontmatter import write_frontmatter
from ttsr_proxy.library.storage.rule_file import RuleFileError, read_rule, write_rule
from ttsr_proxy.rules.frontmatter import read_document
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.triggers.compiled import compile_rule

RULE = LibraryRule(
    atomic_id="http-timeout",
    scenario_id="outbound-http",
    constraint="Every outbound HTTP request must set a timeout.",
    title="Explicit timeouts",
    revision=3,
    applies_when="Code calls a remote service: any.",
    exception="it's a test",
    triggers=Triggers(
        condition=(r"requests\.(get|post)\((?![^)]*timeout)",),
        ast_condition=("requests.get($A)",),
        scope=("tool:edit(*.py)", "tool:write(*.py)"),
        globs=("src/**/*.py",),
        interrupt_mode="tool-only",
    ),
    question="Does it set a timeout?",
    created_at="2026-01-02T03:04:05Z",
    updated_at="2026-01-02T03:04:05Z",
    origin=Origin("viking://user/alice/resources/uploads/standards.md", "9f", "HTTP/3"),
    compiler="deterministic",
)


def test_a_written_rule_is_read_back_as_it_was() -> None:
    text = write_rule(RULE)
    read = read_rule(text, "outbound-http", "http-timeout.md")
    assert replace(read, content="") == RULE
    assert read.content == text


def test_a_written_rule_is_a_rule_file_of_the_rulebook_without_warnings() -> None:
    rule = Rule.from_markdown("http-timeout.md", write_rule(RULE))
    assert rule.warnings == ()
    assert (rule.name, rule.content) == ("http-timeout", RULE.constraint)
    assert rule.condition == RULE.triggers.condition
    assert compile_rule(rule).warnings == ()


def test_a_paused_rule_is_off_for_every_reader_of_rule_files() -> None:
    paused = LibraryRule("a", "b", "Do not.", "T", status="paused")
    assert not Rule.from_markdown("a.md", write_rule(paused)).enabled


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,8}_[a-z]{1,8}", fullmatch=True),
        st.recursive(
            st.text(max_size=30) | st.booleans() | st.integers(-9, 9),
            lambda inner: st.lists(inner, max_size=3),
        ),
        max_size=5,
    )
)
def test_frontmatter_is_read_back_whatever_the_texts_hold(values: dict[str, object]) -> None:
    document = read_document(write_frontmatter(values, "body"))
    assert document.metadata == values
    assert document.body == "body"


def test_a_file_written_by_hand_needs_nothing_but_a_constraint() -> None:
    rule = read_rule("Never do that.\n", "habits", "never-that.md")
    assert (rule.atomic_id, rule.title, rule.status, rule.revision) == (
        "never-that",
        "never-that",
        "active",
        1,
    )


@pytest.mark.parametrize(
    ("front", "status"),
    [
        ("enabled: false", "paused"),
        ("status: paused", "paused"),
        ("status: active\nenabled: false", "paused"),
    ],
)
def test_a_rule_can_be_paused_by_hand(front: str, status: str) -> None:
    assert read_rule(f"---\n{front}\n---\nDo not.\n", "s", "a.md").status == status


@pytest.mark.parametrize(
    ("text", "name", "part"),
    [
        ("---\natomic_id: other\n---\nDo not.\n", "a.md", "`atomic_id` is 'other'"),
        ("---\nscenario_id: other\n---\nDo not.\n", "a.md", "`scenario_id` is 'other'"),
        ("---\nrevision: 0\n---\nDo not.\n", "a.md", "`revision` must be a whole number"),
        ("---\nstatus: sleeping\n---\nDo not.\n", "a.md", "`status` must be one of active, paused, archived"),
        ("---\ntitle: [a]\n---\nDo not.\n", "a.md", "`title` must be text"),
        ("---\ntitle: a\n---\n\n", "a.md", "the constraint is missing"),
        ("Do not.\n", "Bad Name.md", "cannot be an id"),
    ],
)
def test_a_file_that_contradicts_itself_is_no_rule(text: str, name: str, part: str) -> None:
    with pytest.raises(RuleFileError, match=part.replace("(", r"\(")):
        read_rule(text, "s", name)
