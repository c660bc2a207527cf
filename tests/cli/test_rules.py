"""`ttsr-proxy rules`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ttsr_proxy.cli import main, terminal

NO_EVAL = r"""---
description: Parse input, never evaluate it
condition: ['\bexec\(', '\beval\(']
scope: [text, "tool:write(*.py)"]
interruptMode: tool-only
maxInterrupts: 3
---
Never call eval.
"""
HOUSE_STYLE = "---\ndescription: How we write\n---\nShort sentences.\n"
GATED = "---\ncondition: TODO\nglobs: src/**\n---\nNo TODO.\n"
BROKEN = "---\ncondition: '('\n---\nNothing.\n"
STRUCTURAL = "---\nastCondition: print($A)\n---\nUse the log.\n"

Run = Callable[..., Result]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    rules = tmp_path / "project" / ".omp" / "rules"
    rules.mkdir(parents=True)
    texts = {
        "no-eval": NO_EVAL,
        "house-style": HOUSE_STYLE,
        "gated": GATED,
        "broken": BROKEN,
        "log": STRUCTURAL,
    }
    for name, text in texts.items():
        (rules / f"{name}.md").write_text(text)
    return tmp_path / "project"


@pytest.fixture
def run(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TTSR_BUILTIN_RULES", "false")
    monkeypatch.chdir(project)

    def invoke(*arguments: str, **options: Any) -> Result:
        return CliRunner().invoke(main, ["rules", *arguments], **options)

    return invoke


def by_name(result: Result) -> dict[str, dict[str, Any]]:
    assert result.exit_code == 0, result.stderr
    return {rule["name"]: rule for rule in reversed(json.loads(result.stdout)["rules"])}


def test_each_rule_is_listed_with_its_file_bucket_state_and_reason(run: Run, project: Path) -> None:
    rules = by_name(run("list", "--json"))
    told = {
        name: (rule["bucket"], rule["state"]) for name, rule in rules.items() if rule["provider"] == "native"
    }
    assert told == {
        "no-eval": ("ttsr", "active"),
        "house-style": ("rulebook", "active"),
        "gated": ("ttsr", "active"),
        "broken": (None, "inactive"),
        "log": ("ttsr", "active"),
    }
    assert "condition 1 does not compile" in rules["broken"]["reason"]
    assert rules["no-eval"]["path"] == str(project / ".omp/rules/no-eval.md")


def test_the_modes_and_the_budget_that_hold_are_listed(run: Run, project: Path) -> None:
    (project / "ttsr-proxy.yaml").write_text("ttsr: {interruptMode: never, repeatGap: 4, onExhausted: block}")
    rules = by_name(run("list", "--json"))
    own, configured = rules["no-eval"]["effective"], rules["gated"]["effective"]
    assert (own["interruptMode"], own["maxInterrupts"]) == ("tool-only", 3)
    assert (configured["interruptMode"], configured["maxInterrupts"]) == ("never", 2)
    assert (own["repeatGap"], own["repeatMode"], own["contextMode"]) == (4, "once", "discard")
    assert own["onExhausted"] == "block"


def test_rules_that_are_only_observed_are_listed_as_that(run: Run, project: Path) -> None:
    (project / ".omp/rules/quiet.md").write_text("---\ncondition: x\nobserve: true\n---\nQuiet.\n")
    rules = by_name(run("list", "--json"))
    assert rules["quiet"]["effective"]["observe"] is True
    assert rules["quiet"]["effective"]["overrides"] == ["observe"]
    assert rules["no-eval"]["effective"]["observe"] is False
    assert "observed*" in next(line for line in run("list").stdout.splitlines() if line.startswith("quiet"))
    (project / "ttsr-proxy.yaml").write_text("ttsr: {observe: true}")
    assert by_name(run("list", "--json"))["no-eval"]["effective"]["observe"] is True


def test_what_a_rule_overrides_and_where_it_looks_is_listed(run: Run) -> None:
    rules = by_name(run("list", "--json"))
    assert rules["no-eval"]["effective"]["overrides"] == ["interruptMode", "maxInterrupts"]
    assert rules["no-eval"]["effective"]["scope"] == ["text", "tool:write(*.py)"]
    assert rules["gated"]["effective"]["overrides"] == []
    assert rules["gated"]["effective"]["scope"] == ["tool"]
    assert rules["gated"]["effective"]["globs"] == ["src/**"]
    assert rules["log"]["effective"]["scope"] == ["tool"]
    line = next(line for line in run("list").stdout.splitlines() if line.startswith("no-eval"))
    assert "text; write: *.py" in line
    assert "tool-only* 3x*" in line
    assert " once " in line


def test_a_shadowed_rule_stays_listed_with_its_winner(run: Run, project: Path) -> None:
    (project / ".cursor/rules").mkdir(parents=True)
    (project / ".cursor/rules/no-eval.mdc").write_text(GATED)
    listed = json.loads(run("list", "--json").stdout)["rules"]
    (shadowed,) = [rule for rule in listed if rule["name"] == "no-eval" and rule["state"] == "inactive"]
    assert "shadowed by" in shadowed["reason"]


def test_mounted_directories_come_first(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mounted").mkdir()
    (tmp_path / "mounted/extra.md").write_text(GATED)
    rules = by_name(run("list", "--json", "--rules", str(tmp_path / "mounted")))
    assert rules["extra"]["provider"] == "mounted"


def test_the_table_names_every_rule_its_file_and_why_it_is_inactive(run: Run) -> None:
    result = run("list")
    assert result.exit_code == 0
    lines = {line.split()[0]: line for line in result.stdout.splitlines() if line.split()}
    assert ".omp/rules/no-eval.md" in lines["no-eval"]
    assert "tool-only" in lines["no-eval"]
    assert "TODO" not in lines["gated"]
    assert "in src/**" in lines["gated"]
    assert "does not compile" in lines["broken"]


def test_nothing_of_a_long_path_is_cut_off(run: Run, tmp_path: Path) -> None:
    mounted = tmp_path / ("deep-" * 20) / ("er-" * 20)
    mounted.mkdir(parents=True)
    (mounted / "extra.md").write_text(GATED)
    arguments = ["list", "--rules", str(mounted)]
    assert "…" not in run(*arguments).stdout


def test_a_narrow_terminal_shows_each_rule_in_lines_of_its_own(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "_PIPE_COLUMNS", 80)
    lines = run("list").stdout.splitlines()
    first = lines.index("no-eval  ttsr  native  tool-only* 3x*  once")
    assert lines[first + 1 : first + 3] == ["    text; write: *.py", "    .omp/rules/no-eval.md"]


def test_a_disabled_rule_that_does_not_exist_is_a_problem(run: Run, project: Path) -> None:
    (project / "ttsr-proxy.yaml").write_text("ttsr: {disabledRules: [no-evil]}")
    assert "no-evil" in run("list").stderr
    assert json.loads(run("list", "--json").stdout)["problems"][0]["path"] == "ttsr.disabledRules"


def test_show_prints_the_keys_and_the_text(run: Run) -> None:
    result = run("show", "no-eval")
    assert "Never call eval." in result.stdout
    assert "provider: native" in result.stdout
    assert by_name(run("show", "no-eval", "--json"))["no-eval"]["content"] == "Never call eval."


@pytest.mark.parametrize("arguments", [["show", "no-evil"], ["test", "--text", "x", "--rule", "no-evil"]])
def test_an_unknown_name_is_an_error_that_offers_the_close_one(run: Run, arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "did you mean no-eval?" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "reasons"),
    [
        (["--text", "eval(x)"], {"no-eval": None, "gated": "globs: none of src/** matches no path"}),
        (
            ["--text", "print(x)"],
            {"no-eval": "no condition matches", "log": "astCondition: it looks at tool calls only"},
        ),
        (["--text", "eval(", "--source", "thinking"], {"no-eval": "does not reach thinking"}),
        (
            ["--text", "eval(", "--path", "a.ts"],
            {"no-eval": "no path glob of text, tool:write(*.py) matches a.ts"},
        ),
        (["--text", "eval(", "--path", "a.py"], {"no-eval": None}),
        (["--text", "eval(", "--path", "a.py", "--tool", "Write"], {"no-eval": None}),
        (["--text", "eval(", "--path", "a.py", "--tool", "Read"], {"no-eval": "does not reach tool Read"}),
        (["--text", "TODO", "--path", "src/a/b.py"], {"gated": None}),
        (["--text", "TODO", "--path", "lib/b.py"], {"gated": "globs: none of src/** matches lib/b.py"}),
        (["--text", "print(1)", "--path", "a.py"], {"log": None}),
        (
            ["--text", "x"],
            {"house-style": "rulebook bucket", "broken": "inactive: condition 1 does not compile"},
        ),
    ],
)
def test_a_trial_says_which_rules_fire_and_why_others_do_not(
    run: Run, arguments: list[str], reasons: dict[str, str | None]
) -> None:
    rules = by_name(run("test", "--json", *arguments))
    for name, reason in reasons.items():
        assert rules[name]["fires"] is (reason is None)
        assert (reason or "") in (rules[name]["reason"] or "")


def test_a_trial_names_the_condition_and_the_place(run: Run) -> None:
    rules = by_name(run("test", "--json", "--path", "a.py", "--text", "import os\nx = eval(y)\n"))
    assert rules["no-eval"]["match"] == {
        "trigger": "regex",
        "pattern": r"\beval\(",
        "start": 14,
        "end": 19,
        "line": 2,
        "column": 5,
        "text": "eval(",
        "before": "x = ",
        "after": "y)",
    }
    assert rules["no-eval"]["interrupts"] is True


def test_a_file_is_tried_as_what_a_tool_writes_to_its_path(run: Run, project: Path) -> None:
    (project / "app.py").write_bytes(b"x = 1\r\nx = eval(y)\r\n")
    result = run("test", "app.py", "--rule", "no-eval")
    assert result.stdout.splitlines() == [
        r"FIRES no-eval: condition \beval\( matches at line 2, column 5: x = eval(y) (interrupts)"
    ]


def test_every_place_is_told_with_the_condition_that_matches_there(run: Run) -> None:
    text = "eval(a)\nexec(b)\n" + "eval(c)\n" * 5
    result = run("test", "--path", "a.py", "--rule", "no-eval", "--text", text)
    lines = result.stdout.splitlines()
    assert lines[0] == r"FIRES no-eval: condition \beval\( matches at line 1, column 1: eval(a) (interrupts)"
    assert lines[1] == r"        also condition \bexec\( matches at line 2, column 1: exec(b)"
    assert lines[-1] == "        and 2 more"
    rules = by_name(run("test", "--json", "--path", "a.py", "--text", text))
    assert [match["line"] for match in rules["no-eval"]["matches"]] == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("frontmatter", "fired", "reason"),
    [
        ("", "r", "repeat: it matches, but fired in the last answer (repeatMode once)"),
        ("repeatMode: always", "r", None),
        (
            "repeatMode: after-gap\nrepeatGap: 3",
            "r:2",
            "fired 2 answers ago (repeatMode after-gap with repeatGap 3)",
        ),
        ("repeatMode: after-gap\nrepeatGap: 3", "r:3", None),
    ],
)
def test_a_rule_that_has_fired_is_kept_by_its_repeat_policy(
    run: Run, project: Path, frontmatter: str, fired: str, reason: str | None
) -> None:
    (project / ".omp/rules/r.md").write_text(f"---\ncondition: foo\n{frontmatter}\n---\nx\n")
    rule = by_name(run("test", "--json", "--text", "a foo", "--fired", fired))["r"]
    assert (reason or "") in (rule["reason"] or "")
    assert rule["fires"] is (reason is None)
    assert rule["match"]["start"] == 2


def test_fired_takes_a_rule_and_a_number_of_answers(run: Run) -> None:
    assert run("test", "--text", "x", "--fired", "no-eval:0").exit_code == 2
    assert "did you mean no-eval?" in run("test", "--text", "x", "--fired", "no-evil:2").stderr


def test_a_rule_for_other_agents_says_so(run: Run, project: Path) -> None:
    (project / ".omp/rules/r.md").write_text("---\ncondition: foo\nagents: review*\n---\nx\n")
    assert by_name(run("test", "--json", "--text", "foo"))["r"]["reason"] == (
        "agents: it is for review*, not for main"
    )
    assert by_name(run("test", "--json", "--text", "foo", "--agent", "reviewer"))["r"]["fires"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("a.xyz", "astCondition: no language known for the file name of a.xyz"),
        ("a.py", "astCondition: searched as python"),
    ],
)
def test_an_ast_condition_says_as_what_it_was_searched(run: Run, path: str, reason: str) -> None:
    assert reason in by_name(run("test", "--json", "--path", path, "--text", "1"))["log"]["reason"]


def test_an_ast_condition_that_is_no_code_in_the_language_says_so(run: Run, project: Path) -> None:
    (project / ".omp/rules/r.md").write_text("---\nastCondition: 'a = 1; b = 2'\n---\nx\n")
    reason = by_name(run("test", "--json", "--path", "a.py", "--text", "1"))["r"]["reason"]
    assert "no pattern is one piece of python code" in reason


def test_a_path_outside_the_project_is_named_as_the_reason(run: Run) -> None:
    reason = by_name(run("test", "--json", "--path", "/tmp/src/a", "--text", "TODO"))["gated"]["reason"]
    assert "outside the project" in reason


def test_standard_input_is_tried_as_text(run: Run) -> None:
    result = run("test", "-", "--rule", "no-eval", input="call eval(x)")
    assert "line 1, column 6" in result.stdout
    assert "(reminds only)" in result.stdout


@pytest.mark.parametrize("arguments", [[], ["a.py", "--text", "x"]])
def test_a_trial_takes_one_text(run: Run, project: Path, arguments: list[str]) -> None:
    (project / "a.py").write_text("")
    result = run("test", *arguments)
    assert result.exit_code == 2
    assert "--text" in result.stderr


def test_a_wrong_configuration_is_told_without_a_traceback(run: Run, project: Path) -> None:
    (project / "ttsr-proxy.yaml").write_text("ttsr: {toolFamilies: [{kind: write}]}\n")
    result = run("list")
    assert result.exit_code == 2
    assert "toolFamilies" in result.stderr
    (project / "ttsr-proxy.yaml").write_text("prot: 1\n")
    result = run("list")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"ttsr-proxy: {project}/ttsr-proxy.yaml: prot: unknown key")


@pytest.mark.parametrize(
    ("observed", "variable"), [("observe: true\n", "false"), ("", "true")], ids=["by its rule", "by settings"]
)
@pytest.mark.parametrize(("mode", "effect"), [("always", "would interrupt"), ("never", "would remind")])
def test_a_rule_that_only_observes_says_what_it_would_do(
    run: Run, project: Path, observed: str, variable: str, mode: str, effect: str
) -> None:
    text = f"---\ncondition: FIXME\n{observed}interruptMode: {mode}\n---\nFix it.\n"
    (project / ".omp/rules/fix.md").write_text(text)
    arguments = ("test", "--rule", "fix", "--text", "FIXME")
    result = run(*arguments, env={"TTSR_OBSERVE": variable})
    assert f"({effect}; observed only)" in result.stdout
    (rule,) = json.loads(run(*arguments, "--json", env={"TTSR_OBSERVE": variable}).stdout)["rules"]
    assert (rule["fires"], rule["interrupts"], rule["effect"]) == (True, False, effect)
