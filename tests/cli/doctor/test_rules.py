"""What `doctor` says of the rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ttsr_proxy.cli.doctor.finding import Finding
from ttsr_proxy.cli.doctor.rules import of_projects
from ttsr_proxy.config import ProjectSettings, Settings, TtsrSettings

MakeSettings = Callable[..., Settings]


def rule(project: ProjectSettings, name: str, text: str) -> Path:
    file = project.path / ".omp/rules" / f"{name}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\n{text}\n---\nDo better.\n", encoding="utf-8")
    return file


def about(settings: Settings, word: str) -> list[Finding]:
    return [finding for finding in of_projects(settings) if word in finding.what]


def test_directories_with_rules_are_named_with_their_counts(
    settings: MakeSettings, project: ProjectSettings
) -> None:
    rule(project, "a", "condition: aaa")
    rule(project, "b", "condition: bbb")
    (finding,) = about(settings(), "native")
    assert (finding.level, str(project.path / ".omp/rules") in finding.what) == ("ok", True)
    assert finding.what.startswith("2 rules")


def test_a_project_without_rules_of_its_own_is_a_warning(settings: MakeSettings) -> None:
    (finding,) = about(settings(), "no rule of your own")
    assert finding.level == "warn"


def test_a_condition_that_does_not_compile_is_a_failure_with_the_reason(
    settings: MakeSettings, project: ProjectSettings
) -> None:
    rule(project, "broken", "condition: '('\ndescription: Broken")
    (finding,) = about(settings(), "broken")
    assert finding.level == "fail"
    assert "condition" in finding.what
    assert "rules check" in finding.mend


def test_a_rule_that_does_nothing_is_a_warning(settings: MakeSettings, project: ProjectSettings) -> None:
    rule(project, "idle", "globs: '*.py'")
    assert [finding.level for finding in about(settings(), "idle")] == ["warn"]


def test_a_frontmatter_warning_is_a_warning(settings: MakeSettings, project: ProjectSettings) -> None:
    rule(project, "odd", "condition: aaa\ninterruptMode: sometimes")
    found = about(settings(), "interruptMode")
    assert [finding.level for finding in found] == ["warn"]


def test_a_rule_that_somebody_switched_off_is_not_worth_a_word(
    settings: MakeSettings, project: ProjectSettings
) -> None:
    rule(project, "off", "condition: '('\nenabled: false")
    assert about(settings(), "off (") == []


def test_a_link_that_leads_nowhere_is_a_failure(settings: MakeSettings, project: ProjectSettings) -> None:
    rule(project, "a", "condition: aaa").with_name("gone.md").symlink_to("/nonexistent/rule.md")
    (finding,) = about(settings(), "gone.md")
    assert (finding.level, "cannot be read" in finding.what) == ("fail", True)


def test_a_disabled_rule_that_does_not_exist_is_a_warning(
    settings: MakeSettings, project: ProjectSettings
) -> None:
    place = replace(project, ttsr=TtsrSettings(disabled_rules=("no-evil",)))
    (finding,) = about(settings(projects=(place,)), "no-evil")
    assert finding.level == "warn"


def test_with_several_projects_each_line_says_which(settings: MakeSettings, project: ProjectSettings) -> None:
    found = of_projects(settings(projects=(project, replace(project, name="shop"))))
    assert {finding.what.split(":")[0] for finding in found} == {"project default", "project shop"}


def test_a_library_that_cannot_be_read_is_a_failure(settings: MakeSettings) -> None:
    made = settings()
    folder = made.library_root / "users/default/memories/rules/scenario"
    folder.mkdir(parents=True)
    (folder / "rule.md").write_bytes(b"\xff\xfe")
    (finding,) = about(made, "the rule library")
    assert finding.level == "fail"


def test_a_judged_rule_without_a_judge_is_a_warning(settings: MakeSettings, project: ProjectSettings) -> None:
    rule(project, "polite", "question: Is it rude?")
    (finding,) = about(settings(), "polite")
    assert finding.level == "warn"
    assert "no judge is configured" in finding.what
