"""Scope tokens."""

from __future__ import annotations

import pytest

from ttsr_proxy.triggers.globs import path_names
from ttsr_proxy.triggers.match import Source
from ttsr_proxy.triggers.scope import DEFAULT_SCOPE, parse_scope


def reached(
    tokens: list[str], source: Source, tool: str | None = None, *paths: str, kind: str | None = None
) -> bool:
    scope, _ = parse_scope(tokens)
    return scope.matches(source, tool, kind, [path_names(path, None) for path in paths])


@pytest.mark.parametrize("tokens", [None, []])
def test_without_tokens_text_and_every_tool_are_watched_but_thinking_is_not(tokens: list[str] | None) -> None:
    scope, warnings = parse_scope(tokens)
    assert scope == DEFAULT_SCOPE
    assert warnings == ()
    assert scope.text
    assert scope.any_tool
    assert not scope.thinking


def test_a_token_matches_a_tool_by_its_own_name_or_its_kind_in_any_case() -> None:
    assert reached(["tool:Edit"], "tool", "eDIT")
    assert reached(["tool:edit"], "tool", "MultiEdit", kind="Edit")
    assert reached(["multiedit"], "tool", "MultiEdit", kind="edit")
    assert not reached(["tool:write"], "tool", "MultiEdit", kind="edit")


def test_a_kind_is_not_guessed_from_the_name_of_the_tool() -> None:
    assert not reached(["tool:edit"], "tool", "edit_file")


def test_a_glob_in_a_token_needs_one_path_that_matches() -> None:
    assert reached(["tool:edit(*.ts)"], "tool", "edit", "a.py", "src/b.ts")
    assert not reached(["tool:edit(*.ts)"], "tool", "edit", "a.py")
    assert not reached(["tool:edit(*.ts)"], "tool", "edit")


def test_white_space_in_the_parentheses_is_no_glob() -> None:
    assert reached(["tool:edit( )"], "tool", "edit")
    assert parse_scope(["tool( )"])[0].any_tool


@pytest.mark.parametrize(
    "token", ["tool:", "tool:edit(", "tool:edit()", "tool edit", "tool:my.tool", "(x)", "a,b"]
)
def test_a_token_that_is_not_understood_is_left_out_and_named(token: str) -> None:
    scope, warnings = parse_scope([token])
    assert not scope.reachable
    assert len(warnings) == 1
    assert repr(token) in warnings[0]


def test_one_bad_token_does_not_cost_the_others() -> None:
    scope, warnings = parse_scope(["tool:edit(", " Thinking "])
    assert scope.thinking
    assert len(warnings) == 1


def test_names_outside_ascii_are_no_tokens() -> None:
    # U+212A KELVIN SIGN folds to "k" in Unicode, not in JavaScript's pattern.
    assert not parse_scope(["tool:\u212a"])[0].reachable


def test_a_glob_beyond_the_limits_drops_its_token_with_the_reason() -> None:
    scope, warnings = parse_scope([f"tool:edit({'a' * 5_000})"])
    assert not scope.reachable
    assert "longer than" in warnings[0]
