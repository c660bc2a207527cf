"""`ttsr-proxy rules scan`."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ttsr_proxy.cli import main, parallel
from ttsr_proxy.cli.rules import judging

Run = Callable[..., Result]

RULES = {
    "no-eval": "---\ncondition: '\\beval\\('\nscope: tool:write(*.py)\n---\nParse it.\n\nIt runs anything.\n",
    "log": "---\nastCondition: print($A)\nglobs: '*.py'\ninterruptMode: never\n---\nUse the log.\n",
    "prose": "---\ncondition: eval\nscope: text\n---\nNo.\n",
    "shell": "---\ncondition: rm -rf\nscope: tool:bash\n---\nNo.\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    rules = tmp_path / "project" / ".omp" / "rules"
    rules.mkdir(parents=True)
    for name, text in RULES.items():
        (rules / f"{name}.md").write_text(text)
    root = tmp_path / "project"
    (root / "src").mkdir()
    (root / "src/a.py").write_text("x = 1\nprint(eval(y)); eval(z)\n")
    (root / "src/b.ts").write_text("eval(1)\n")
    (root / "run.sh").write_text("rm -rf x\n")
    return root


@pytest.fixture
def run(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TTSR_BUILTIN_RULES", "false")
    monkeypatch.chdir(project)

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["rules", "scan", *arguments])

    return invoke


def matches(result: Result) -> list[tuple[Any, ...]]:
    assert result.exit_code in (0, 1), result.stderr
    found = json.loads(result.stdout)["matches"]
    return [(m["path"], m["line"], m["column"], m["rule"], m["interrupts"], m["text"]) for m in found]


def test_every_match_is_told_with_its_place(run: Run) -> None:
    result = run()
    assert result.stdout.splitlines() == [
        "src/a.py:2:1: log: print(eval(y))",
        "src/a.py:2:7: no-eval: eval(",
        "src/a.py:2:17: no-eval: eval(",
    ]
    assert "3 matches of 2 rules in 1 file (" in result.stderr
    assert result.exit_code == 1


def test_json_has_every_match_and_what_was_read(run: Run) -> None:
    result = run("--json", "src")
    assert matches(result) == [
        ("src/a.py", 2, 1, "log", False, "print(eval(y))"),
        ("src/a.py", 2, 7, "no-eval", True, "eval("),
        ("src/a.py", 2, 17, "no-eval", True, "eval("),
    ]
    told = json.loads(result.stdout)
    assert (told["files"], told["lines"], told["skipped"]) == (2, 3, [])


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["src/b.ts"], 0),
        (["src"], 1),
        (["src", "--fail-on", "nothing"], 0),
        (["src", "--fail-on", "interrupting"], 1),
        (["src", "--fail-on", "interrupting", "--rule", "log"], 0),
        (["src", "--rule", "log"], 1),
        (["nowhere"], 2),
        (["--rule", "no-evil"], 2),
    ],
)
def test_the_exit_status_is_for_ci(run: Run, arguments: list[str], status: int) -> None:
    assert run(*arguments).exit_code == status


def test_files_can_be_judged_as_another_tool_s_input(run: Run) -> None:
    assert [match[0::3] for match in matches(run("--json", "--tool", "Bash", "run.sh"))] == [
        ("run.sh", "shell")
    ]


def test_rule_files_are_judged_only_when_they_are_named(run: Run) -> None:
    arguments = ["--json", "--tool", "bash", "--rule", "shell"]
    assert [match[0] for match in matches(run(*arguments, "."))] == ["run.sh"]
    assert matches(run(*arguments, ".omp/rules/shell.md"))[0][0] == ".omp/rules/shell.md"


def test_binary_large_and_unreadable_files_are_skipped_and_said(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "src/data.py").write_bytes(b"eval(1)\0")
    (project / "src/huge.py").write_text("eval(1)\n" * 2_000)
    (project / "src/latin.py").write_bytes("eval('é')".encode("latin-1"))
    (project / "src/marked.py").write_bytes(b"\xef\xbb\xbfeval(1)\r\n")
    real = Path.open

    def opened(self: Path, *arguments: Any, **options: Any) -> Any:
        if self.name == "b.ts":
            raise PermissionError(13, "Permission denied")
        return real(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", opened)
    result = run("--json", "src", "--max-size", "0.01", "--rule", "no-eval")
    assert json.loads(result.stdout)["skipped"] == [
        {"path": "src/b.ts", "reason": "cannot be read: Permission denied"},
        {"path": "src/data.py", "reason": "binary"},
        {"path": "src/huge.py", "reason": "larger than 10,485 bytes"},
    ]
    assert [match[:3] for match in matches(result)][-2:] == [("src/latin.py", 1, 1), ("src/marked.py", 1, 1)]
    assert "skipped, binary: src/data.py" in run("src").stderr


def test_what_was_not_searched_is_said(run: Run, project: Path) -> None:
    (project / "src/long.py").write_text("print(1)\n" + "x = 1\n" * 50_000)
    result = run("src/long.py")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "not inspected: src/long.py: ast conditions" in result.stderr


def test_files_outside_the_project_are_read_and_said_to_be_outside(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("eval(1)")
    result = run(str(tmp_path / "other.py"))
    assert result.exit_code == 0
    assert "1 file outside the project" in result.stderr


def test_worker_processes_find_the_same_in_the_same_order(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(120):
        (project / f"src/m{number}.py").write_text("eval(1)\n" * (number % 3))
    alone = run("--json", "--jobs", "1").stdout
    monkeypatch.setattr(judging, "FEW_FILES", 1)
    assert run("--json", "--jobs", "2").stdout == alone


def test_a_worker_that_dies_is_told_without_a_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Dying(ThreadPoolExecutor):
        def __init__(self, jobs: int, **options: Any) -> None:
            super().__init__(jobs)

        def map(self, *arguments: Any) -> Any:
            yield from ()
            raise BrokenProcessPool("a process was terminated")

    monkeypatch.setattr(judging, "FEW_FILES", 0)
    monkeypatch.setattr(parallel, "ProcessPoolExecutor", Dying)
    result = run("src", "--jobs", "2")
    assert result.exit_code == 2
    assert "a worker died while judging one of the files src/a.py to src/b.ts" in result.stderr


def test_sarif_names_rules_places_and_levels(run: Run, project: Path) -> None:
    (project / "src/blob.py").write_bytes(b"\0")
    log = json.loads(run("--sarif").stdout)
    assert log["version"] == "2.1.0"
    (sarif_run,) = log["runs"]
    rules = sarif_run["tool"]["driver"]["rules"]
    assert {rule["id"]: rule["defaultConfiguration"]["level"] for rule in rules} == {
        "log": "warning",
        "no-eval": "error",
    }
    first, second, third = sarif_run["results"]
    assert rules[first["ruleIndex"]]["id"] == first["ruleId"] == "log"
    assert second["message"] == {"text": "Parse it."}
    assert second["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "src/a.py", "uriBaseId": "PROJECTROOT"},
        "region": {
            "startLine": 2,
            "startColumn": 7,
            "endLine": 2,
            "endColumn": 12,
            "charOffset": 12,
            "charLength": 5,
            "snippet": {"text": "eval("},
        },
    }
    assert second["partialFingerprints"] != third["partialFingerprints"]
    (note,) = sarif_run["invocations"][0]["toolExecutionNotifications"]
    assert note["message"] == {"text": "binary"}


def test_fingerprints_stay_when_lines_move(run: Run, project: Path) -> None:
    def fingerprints() -> list[Any]:
        results = json.loads(run("--sarif").stdout)["runs"][0]["results"]
        return [result["partialFingerprints"] for result in results]

    before = fingerprints()
    path = project / "src/a.py"
    path.write_text("\n\n" + path.read_text())
    assert fingerprints() == before


def test_names_that_are_no_plain_uris_are_escaped(run: Run, project: Path) -> None:
    (project / "src/a b#c.py").write_text("eval(1)")
    results = json.loads(run("--sarif", "src/a b#c.py").stdout)["runs"][0]["results"]
    assert results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "src/a%20b%23c.py"


OBJECTS: dict[str, tuple[set[str], dict[str, str]]] = {
    "log": ({"version", "runs"}, {"$schema": "uri", "version": "string", "runs": "run[]"}),
    "run": (
        {"tool"},
        {
            "tool": "tool",
            "columnKind": "string",
            "originalUriBaseIds": "bases",
            "invocations": "invocation[]",
            "results": "result[]",
        },
    ),
    "tool": ({"driver"}, {"driver": "driver"}),
    "driver": ({"name"}, {"name": "string", "version": "string", "rules": "descriptor[]"}),
    "descriptor": (
        {"id"},
        {
            "id": "string",
            "shortDescription": "message",
            "help": "message",
            "defaultConfiguration": "configuration",
            "properties": "any",
        },
    ),
    "configuration": (set(), {"level": "level"}),
    "message": ({"text"}, {"text": "string", "markdown": "string"}),
    "bases": ({"PROJECTROOT"}, {"PROJECTROOT": "artifact"}),
    "artifact": ({"uri"}, {"uri": "uri", "uriBaseId": "string"}),
    "invocation": (
        {"executionSuccessful"},
        {"executionSuccessful": "any", "toolExecutionNotifications": "notification[]"},
    ),
    "notification": ({"message"}, {"level": "level", "message": "message", "locations": "location[]"}),
    "result": (
        {"message"},
        {
            "ruleId": "string",
            "ruleIndex": "offset",
            "level": "level",
            "message": "message",
            "locations": "location[]",
            "partialFingerprints": "any",
        },
    ),
    "location": (set(), {"physicalLocation": "physical"}),
    "physical": ({"artifactLocation"}, {"artifactLocation": "artifact", "region": "region"}),
    "region": (
        set(),
        {
            "startLine": "line",
            "startColumn": "line",
            "endLine": "line",
            "endColumn": "line",
            "charOffset": "offset",
            "charLength": "offset",
            "snippet": "message",
        },
    ),
}
"""The part of SARIF 2.1.0 (OASIS standard, section 3) that is written: required and allowed properties."""


def conforms(value: Any, kind: str) -> None:
    """Check a value against the table."""
    if kind.endswith("[]"):
        assert isinstance(value, list)
        for item in value:
            conforms(item, kind.removesuffix("[]"))
    elif kind in OBJECTS:
        required, allowed = OBJECTS[kind]
        assert required <= value.keys() <= allowed.keys()
        for name, inner in value.items():
            conforms(inner, allowed[name])
    elif kind == "line":
        assert isinstance(value, int)
        assert value >= 1
    elif kind == "offset":
        assert isinstance(value, int)
        assert value >= 0
    elif kind == "level":
        assert value in ("none", "note", "warning", "error")
    elif kind == "uri":
        assert isinstance(value, str)
        assert not set(value) & set(' "<>\\^`{|}')
    elif kind == "string":
        assert isinstance(value, str)
        assert value


def test_sarif_has_the_properties_of_the_standard_and_no_others(run: Run, project: Path) -> None:
    (project / "src/a {b}|c.py").write_text("eval(1)")
    (project / "src/blob.py").write_bytes(b"\0")
    log = json.loads(run("--sarif").stdout)
    conforms(log, "log")
    assert len(log["runs"][0]["results"]) == 4


def test_a_rule_that_only_observes_is_told_as_such_and_is_no_interrupt(run: Run, project: Path) -> None:
    file = project / ".omp/rules/no-eval.md"
    file.write_text(file.read_text().replace("---\n", "---\nobserve: true\n", 1))
    arguments = ("--rule", "no-eval", "--fail-on", "interrupting")
    result = run(*arguments)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].endswith(": no-eval: eval( (would interrupt; observed only)")
    found = json.loads(run(*arguments, "--json").stdout)["matches"]
    assert {(match["interrupts"], match["effect"]) for match in found} == {(False, "would interrupt")}
    (sarif,) = json.loads(run(*arguments, "--sarif").stdout)["runs"]
    assert {result["level"] for result in sarif["results"]} == {"note"}
