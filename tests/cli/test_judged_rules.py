"""What the `rules` commands say of rules with a question."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ttsr_proxy.cli import main

Run = Callable[..., Result]

POLITE = "---\nquestion: Is it rude?\ndescription: Be polite\nscope: text\n---\nBe polite.\n"
FILTERED = r"""---
question: Does it log a name?
condition: log\(
scope: tool:write(*.py)
maxInterrupts: 2
---
No names.
"""
OFF = "judged: needs a judge; no judge is configured (library.judge.provider)"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    rules = tmp_path / "project" / ".omp" / "rules"
    rules.mkdir(parents=True)
    (rules / "polite.md").write_text(POLITE)
    (rules / "filtered.md").write_text(FILTERED)
    return tmp_path / "project"


@pytest.fixture
def run(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TTSR_BUILTIN_RULES", "false")
    monkeypatch.chdir(project)
    return lambda *arguments: CliRunner().invoke(main, ["rules", *arguments])


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTSR_LIBRARY_JUDGE_PROVIDER", "jev")
    monkeypatch.setenv("TYPESAFE_API_KEY", "k")


def listed(run: Run) -> dict[str, dict[str, object]]:
    return {rule["name"]: rule for rule in json.loads(run("list", "--json").output)["rules"]}


def test_without_a_judge_the_list_says_that_they_are_off_and_why(run: Run) -> None:
    rules = listed(run)
    assert (rules["filtered"]["bucket"], rules["filtered"]["reason"]) == (None, OFF)
    # It has a description, so it is still there to be read.
    assert (rules["polite"]["bucket"], rules["polite"]["reason"]) == ("rulebook", OFF)
    assert "judged: needs a judge" in run("list").output


def test_a_judge_without_its_key_is_no_judge(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTSR_LIBRARY_JUDGE_PROVIDER", "jev")
    monkeypatch.delenv("TYPESAFE_API_KEY", raising=False)
    assert "TYPESAFE_API_KEY is not set" in str(listed(run)["polite"]["reason"])


@pytest.mark.usefixtures("judge")
def test_with_a_judge_they_watch_and_never_interrupt(run: Run) -> None:
    rule = listed(run)["polite"]
    assert (rule["bucket"], rule["state"], rule["reason"]) == ("ttsr", "active", None)
    assert rule["question"] == "Is it rude?"
    assert rule["effective"]["interruptMode"] == "never"  # type: ignore[index]
    assert "judged, never" in run("list").output


def test_the_linter_says_that_there_is_no_judge_and_which_keys_mean_nothing(run: Run) -> None:
    findings = json.loads(run("check", "--json").output)["findings"]
    assert sorted((finding["code"], finding["key"]) for finding in findings) == [
        ("judged-never-interrupts", "maxInterrupts"),
        ("no-judge", "question"),
        ("no-judge", "question"),
    ]
    assert {finding["line"] for finding in findings} == {2, 5}


@pytest.mark.usefixtures("judge")
def test_with_a_judge_the_linter_has_nothing_to_say_of_the_question(run: Run) -> None:
    assert run("check", ".omp/rules/polite.md", "--strict").exit_code == 0


@pytest.mark.usefixtures("judge")
@pytest.mark.parametrize(
    ("arguments", "reasons"),
    [
        (("--text", "You fool."), {"polite": "needs a judge", "filtered": "scope"}),
        (
            ("--text", "log(x)", "--path", "a.py"),
            {"polite": "scope", "filtered": "judged: needs a judge, and this command asks none"},
        ),
        (("--text", "x = 1", "--path", "a.py"), {"polite": "scope", "filtered": "no condition matches"}),
    ],
)
def test_a_trial_says_which_rule_would_ask_and_asks_nobody(
    run: Run, arguments: tuple[str, ...], reasons: dict[str, str]
) -> None:
    verdicts = {one["name"]: one for one in json.loads(run("test", "--json", *arguments).output)["rules"]}
    for name, reason in reasons.items():
        assert verdicts[name]["fires"] is False
        assert reason in verdicts[name]["reason"]


def test_without_a_judge_a_trial_says_so(run: Run) -> None:
    (verdict,) = json.loads(run("test", "--json", "--text", "x", "--rule", "filtered").output)["rules"]
    assert verdict["reason"] == f"inactive: {OFF}"
