"""`ttsr-proxy rules check`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ttsr_proxy.cli import main

SOUND = "---\ncondition: frobnicate\n---\nUse the other function.\n"
WRONG = "---\ncondition: frobnicate\nglob: '*.py'\n---\nUse the other function.\n"
DOUBTFUL = "---\ncondition: git push --force\n---\nAsk first.\n"

Run = Callable[..., Result]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project/.omp/rules").mkdir(parents=True)
    return tmp_path / "project"


@pytest.fixture
def run(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TTSR_BUILTIN_RULES", "false")
    monkeypatch.chdir(project)

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["rules", "check", *arguments])

    return invoke


def codes(result: Result) -> list[str]:
    findings: list[dict[str, Any]] = json.loads(result.stdout)["findings"]
    return [finding["code"] for finding in findings]


@pytest.mark.parametrize(
    ("text", "arguments", "status"),
    [
        (SOUND, [], 0),
        (WRONG, [], 1),
        (DOUBTFUL, [], 0),
        (DOUBTFUL, ["--strict"], 1),
        (SOUND, ["nowhere.md"], 2),
    ],
)
def test_the_exit_status_is_for_ci(
    run: Run, project: Path, text: str, arguments: list[str], status: int
) -> None:
    (project / ".omp/rules/r.md").write_text(text)
    assert run(*arguments).exit_code == status


def test_a_finding_is_told_with_its_place_and_what_to_do(run: Run, project: Path) -> None:
    (project / ".omp/rules/r.md").write_text(WRONG)
    result = run()
    assert result.stdout.splitlines() == [
        ".omp/rules/r.md:3: error [unknown-key] glob: not a key of rule files; ignored"
        " (did you mean `globs`?)",
        "    Correct the key's name, or remove it.",
    ]
    assert result.stderr == "1 rule checked: 1 error, 0 warnings\n"


def test_json_has_every_finding_and_the_counts(run: Run, project: Path) -> None:
    (project / ".omp/rules/r.md").write_text(WRONG)
    (project / ".omp/rules/s.md").write_text(DOUBTFUL)
    told = json.loads(run("--json").stdout)
    assert (told["rules"], told["errors"], told["warnings"]) == (2, 1, 1)
    first = told["findings"][0]
    assert (first["level"], first["code"], first["line"], first["key"]) == ("error", "unknown-key", 3, "glob")
    assert first["path"] == str(project / ".omp/rules/r.md")


def test_rules_that_have_no_effect_are_found(run: Run, project: Path) -> None:
    (project / ".omp/rules/r.md").write_text(SOUND)
    (project / ".omp/rules/plain.md").write_text("Only text.\n")
    (project / ".omp/rules/off.md").write_text(SOUND.replace("condition", "enabled: false\ncondition"))
    (project / ".cursor/rules").mkdir(parents=True)
    (project / ".cursor/rules/r.mdc").write_text(SOUND)
    assert sorted(codes(run("--json"))) == ["no-bucket", "shadowed"]


def test_settings_that_name_no_rule_are_found(run: Run, project: Path) -> None:
    (project / ".omp/rules/r.md").write_text(SOUND)
    (project / "ttsr-proxy.yaml").write_text("ttsr: {disabledRules: [rr]}")
    assert codes(run("--json")) == ["unreadable"]


def test_files_and_directories_can_be_checked_wherever_they_are(run: Run, project: Path) -> None:
    (project / ".omp/rules/elsewhere.md").write_text(WRONG)
    (project / "drafts/deep").mkdir(parents=True)
    (project / "drafts/deep/a.md").write_text(WRONG)
    (project / "drafts/b.mdc").write_text(DOUBTFUL)
    assert codes(run("--json", "drafts")) == ["action-in-prose", "unknown-key"]
    assert codes(run("--json", "drafts/deep/a.md")) == ["unknown-key"]


def test_tools_of_the_configuration_are_known(run: Run, project: Path) -> None:
    (project / ".omp/rules/r.md").write_text("---\ncondition: x1y\nscope: tool:save_file\n---\nNo.\n")
    assert codes(run("--json")) == ["unknown-tool"]
    (project / "ttsr-proxy.yaml").write_text(
        "ttsr: {toolFamilies: [{tools: [save_file], kind: write, path: [path]}]}"
    )
    assert codes(run("--json")) == []


def test_the_shipped_rules_are_sound(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTSR_BUILTIN_RULES", "true")
    result = run("--strict")
    assert (result.exit_code, result.stdout) == (0, "")
