"""What rule listings did not tell, and the right answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ttsr_proxy.cli import main

Ask = Callable[..., Any]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TTSR_BUILTIN_RULES", "false")
    monkeypatch.chdir(root)
    return root


def write(root: Path, path: str, front: str, body: str = "Do the other thing.") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(f"---\n{front}\n---\n{body}\n")


def ttsr(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code in (0, 1), result.output
    return result.stdout


def listed(*arguments: str, command: str = "list") -> list[dict[str, Any]]:
    """The rules that do not come with the product."""
    rules: list[dict[str, Any]] = json.loads(ttsr("rules", command, "--json", *arguments))["rules"]
    return [rule for rule in rules if rule.get("provider") != "builtin-defaults"]


def test_a_setting_is_listed_as_it_holds_for_each_rule(project: Path) -> None:
    write(project, ".cursor/rules/plain.mdc", "condition: x\nscope: tool:bash")
    write(project, ".cursor/rules/own.mdc", "condition: x\ninterruptMode: always\nmaxInterrupts: 7")
    (project / "ttsr-proxy.yaml").write_text("ttsr: {interruptMode: never, repeatMode: after-gap}")
    own, plain = listed()
    assert plain["path"].endswith(".cursor/rules/plain.mdc")
    assert (plain["provider"], plain["bucket"], plain["reason"]) == ("cursor", "ttsr", None)
    assert plain["effective"]["scope"] == ["tool:bash"]
    modes = [
        (rule["effective"]["interruptMode"], rule["effective"]["maxInterrupts"]) for rule in (own, plain)
    ]
    assert modes == [("always", 7), ("never", 2)]
    assert plain["effective"]["repeatMode"] == "after-gap"


def test_a_rule_that_is_switched_off_stays_listed_with_the_place_that_did_it(project: Path) -> None:
    write(project, ".cursor/rules/x.mdc", "condition: x")
    write(project, ".cursor/rules/y.mdc", "condition: y\nenabled: 'no'")
    (project / "ttsr-proxy.yaml").write_text("ttsr: {disabledRules: [x]}")
    reasons = {rule["name"]: (rule["state"], rule["reason"]) for rule in listed()}
    assert reasons == {
        "x": ("inactive", "disabled in ttsr.disabledRules"),
        "y": ("inactive", "disabled in its file (enabled: no)"),
    }


@pytest.mark.parametrize("glob", ["*.rs", "src/*"])
def test_a_condition_that_is_a_glob_is_listed_as_what_it_means_and_interrupts_once(
    project: Path, glob: str
) -> None:
    write(project, ".cursor/rules/x.mdc", f'condition: "{glob}"')
    (rule,) = listed()
    assert rule["condition"] == [".*"]
    assert rule["effective"]["scope"] == [f"tool:edit({glob})", f"tool:write({glob})"]
    assert rule["effective"]["maxInterrupts"] == 1


def test_of_two_tools_rules_of_one_name_the_other_is_listed_with_its_winner(project: Path) -> None:
    write(project, ".cursor/rules/style.mdc", "condition: x")
    write(project, ".clinerules/style.md", "condition: y")
    winner, other = listed()
    assert (winner["provider"], winner["state"]) == ("cursor", "active")
    assert (other["provider"], other["state"]) == ("cline", "inactive")
    assert other["reason"] == f"shadowed by {winner['path']} (cursor)"


def test_a_trial_says_which_scope_was_missed_or_hit(project: Path) -> None:
    write(project, ".cursor/rules/phrase.mdc", "condition: short brief")
    said = ("--rule", "phrase", "--text", "Let me write the short brief now.")
    (in_text,) = listed(*said, command="test")
    (in_thinking,) = listed(*said, "--source", "thinking", command="test")
    assert in_text["fires"]
    assert not in_thinking["fires"]
    assert "does not reach thinking" in in_thinking["reason"]


@pytest.mark.parametrize(
    ("front", "body", "code"),
    [
        ("condition: git push --force", "Use --force-with-lease.", "action-in-prose"),
        ("condition: git push --force\nscope: tool:bash", "", "empty-rule"),
        ("condition: ['TS\\d{4}', '.']\nscope: tool:bash", "Fix it.", "broad-condition"),
    ],
)
def test_the_linter_names_rules_that_will_annoy(project: Path, front: str, body: str, code: str) -> None:
    write(project, ".cursor/rules/x.mdc", front, body)
    findings = json.loads(ttsr("rules", "check", "--json"))["findings"]
    assert code in [finding["code"] for finding in findings]


def test_only_directories_that_are_given_are_read_with_their_subdirectories(project: Path) -> None:
    write(project, ".cursor/rules/a/b/nested.mdc", "condition: x")
    write(project, "given/a/b/deep.md", "condition: x")
    (project / "given/a/loop").symlink_to(project / "given")
    (project / "outside").mkdir()
    write(project, "outside/stranger.md", "condition: x")
    (project / "given/a/out").symlink_to(project / "outside")
    assert [rule["name"] for rule in listed("--rules", "given")] == ["deep"]


def test_rules_of_a_nested_repository_hold_below_it_only(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, ".cursor/rules/outer.mdc", "condition: x")
    write(project, "sub/.cursor/rules/inner.mdc", "condition: x")
    (project / "sub/.git").write_text("gitdir: ../.git/modules/sub\n")
    assert [rule["name"] for rule in listed()] == ["outer"]
    monkeypatch.chdir(project / "sub")
    assert [rule["name"] for rule in listed()] == ["inner"]
