"""`ttsr-proxy replay`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from transcripts import ClaudeCode, Codex, as_bytes, result, says, write_transcript, writes

from ttsr_proxy.cli import main
from ttsr_proxy.cli.replay import judging

Run = Callable[..., Result]

RULES = {
    "no-eval": "---\ncondition: '\\beval\\('\nscope: tool:write(*.py), tool:edit(*.py)\n---\nParse it.\n",
    "kind": "---\ncondition: obviously\nscope: text\ninterruptMode: never\n---\nBe kind.\n",
    "later": "---\nenabled: false\ncondition: TODO\n---\nDo it now.\n",
    "prompt": "---\nalwaysApply: true\n---\nBe brief.\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    rules = root / ".omp" / "rules"
    rules.mkdir(parents=True)
    for name, text in RULES.items():
        (rules / f"{name}.md").write_text(text)
    claude = ClaudeCode(cwd=str(root))
    claude.user()
    claude.assistant("msg_1", says("obviously"), writes(f"{root}/src/a.py", "x = eval(y)  # TODO"))
    claude.user(result())
    claude.assistant("msg_2", writes("src/b.py", "eval(z)"))
    write_transcript(tmp_path / "history/claude/-project/s.jsonl", claude.lines)
    codex = Codex(cwd=str(root))
    codex.user()
    codex.patches("src/c.py", "eval(y)")
    write_transcript(tmp_path / "history/codex/01/rollout-1.jsonl", codex.lines)
    return root


@pytest.fixture
def run(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TTSR_BUILTIN_RULES", "false")
    monkeypatch.chdir(project)

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["replay", *arguments])

    return invoke


def matches(result: Result) -> list[tuple[Any, ...]]:
    assert result.exit_code in (0, 1), result.stderr
    found = json.loads(result.stdout)["matches"]
    return [(os.path.basename(m["file"]), m["line"], m["rule"], m["action"], m["paths"]) for m in found]


def test_every_match_is_told_with_its_place_and_what_would_have_been_done(run: Run) -> None:
    told = run("../history")
    assert told.stdout.splitlines()[:4] == [
        "../history/claude/-project/s.jsonl:3: kind: deferred in turn 0, text: obviously",
        "../history/claude/-project/s.jsonl:4: no-eval: interrupted in turn 0, Write src/a.py: eval(",
        "../history/claude/-project/s.jsonl:6: no-eval: suppressed in turn 1, Write src/b.py: eval(",
        "../history/codex/01/rollout-1.jsonl:6: no-eval: interrupted in turn 0, apply_patch src/c.py: eval(",
    ]
    assert "4 matches of 2 rules (2 files, 2 conversations, 3 answers, " in told.stderr
    assert told.exit_code == 1


def test_totals_are_a_table_by_rule(run: Run) -> None:
    rows = [line.split() for line in run("--totals", "../history").stdout.splitlines()]
    assert rows == [
        ["rule", "matches", "actions", "conversations", "files"],
        ["no-eval", "3", "2", "interrupted,", "1", "suppressed", "2", "2"],
        ["kind", "1", "1", "deferred", "1", "1"],
    ]


def test_json_has_matches_totals_and_what_was_gone_through(run: Run, tmp_path: Path) -> None:
    (tmp_path / "history/other.jsonl").write_text('{"a": 1}\n')
    with (tmp_path / "history/claude/-project/s.jsonl").open("a") as file:
        file.write("{cut off")
    told = json.loads(run("--json", "../history").stdout)
    first = told["matches"][1]
    assert {key: first[key] for key in ("turn", "agent", "client", "tool", "matched", "before", "after")} == {
        "turn": 0,
        "agent": "main",
        "client": "claude-code",
        "tool": "Write",
        "matched": "eval(",
        "before": "x = ",
        "after": "y)  # TODO",
    }
    assert "identity" not in first
    assert told["rules"]["no-eval"] == {
        "matches": 3,
        "actions": {"interrupted": 2, "suppressed": 1},
        "conversations": 2,
        "files": 2,
    }
    assert (told["files"], told["conversations"], told["responses"], told["blocks"]) == (2, 2, 3, 4)
    assert told["lost"] == [
        {"file": "../history/claude/-project/s.jsonl", "line": 7, "reason": "is no JSON object"}
    ]
    assert [skipped["file"] for skipped in told["skipped"]] == ["../history/other.jsonl"]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["../history"], 1),
        (["../history", "--fail-on", "nothing"], 0),
        (["../history", "--fail-on", "interrupting"], 1),
        (["../history", "--fail-on", "interrupting", "--rule", "kind"], 0),
        (["../history", "--action", "blocked"], 0),
        (["../history", "--action", "suppressed", "--action", "blocked"], 1),
        ([".omp"], 0),
        (["nowhere"], 2),
        ([], 2),
        (["../history", "--rule", "no-evil"], 2),
    ],
)
def test_the_exit_status_is_for_scripts(run: Run, arguments: list[str], status: int) -> None:
    assert run(*arguments).exit_code == status


def test_a_rule_that_is_off_takes_part_if_it_is_named(run: Run) -> None:
    told = run("--json", "--rule", "later", "../history")
    assert matches(told) == [("s.jsonl", 4, "later", "interrupted", ["src/a.py"])]
    assert "later is not in use (disabled in its file (enabled: false)); it takes part" in told.stderr


def test_a_named_rule_that_cannot_watch_is_an_error(run: Run) -> None:
    told = run("--rule", "prompt", "../history")
    assert told.exit_code == 2
    assert "rule 'prompt' cannot be replayed: " in told.stderr


def test_a_rule_alone_is_not_behind_the_interrupts_of_others(run: Run, project: Path) -> None:
    (project / ".omp/rules/kind.md").write_text(RULES["kind"].replace("never", "always"))
    assert [match[2:4] for match in matches(run("--json", "../history/claude"))][:2] == [
        ("kind", "interrupted"),
        ("no-eval", "observed"),
    ]
    assert [match[2:4] for match in matches(run("--json", "../history/claude", "--rule", "no-eval"))] == [
        ("no-eval", "interrupted"),
        ("no-eval", "suppressed"),
    ]


def test_what_a_resumed_session_copied_is_told_once(run: Run, tmp_path: Path) -> None:
    original = tmp_path / "history/claude/-project/s.jsonl"
    more = ClaudeCode()
    more.assistant("msg_3", says("obviously"))
    (original.parent / "t.jsonl").write_bytes(original.read_bytes() + b"".join(as_bytes(more.lines)))
    told = run("--json", "../history/claude")
    assert [match[:3] for match in matches(told)] == [
        ("s.jsonl", 3, "kind"),
        ("s.jsonl", 4, "no-eval"),
        ("s.jsonl", 6, "no-eval"),
        ("t.jsonl", 8, "kind"),
    ]
    assert json.loads(told.stdout)["copies"] == 3
    assert "left out: 3 matches in copies of output" in told.stderr


def test_lines_that_are_lost_are_told_with_their_place(run: Run, tmp_path: Path) -> None:
    with (tmp_path / "history/claude/-project/s.jsonl").open("a") as file:
        file.write("\n".join(["{cut off"] * 25))
    told = run("../history/claude")
    assert "line left out: ../history/claude/-project/s.jsonl:7: is no JSON object\n" in told.stderr
    assert "and 5 more lines left out" in told.stderr


def test_what_a_model_wrote_cannot_steer_the_terminal(run: Run, tmp_path: Path) -> None:
    session = ClaudeCode()
    session.assistant("msg_1", writes("a\x1b[2J.py", "\x1b]0;x\x07\u202eeval("))
    write_transcript(tmp_path / "steering/a\x1b[2Jb.jsonl", session.lines)
    told = run("../steering")
    assert not {"\x1b", "\x07", "\u202e"} & set(told.stdout + told.stderr)
    assert "a\\x1b[2Jb.jsonl:2: no-eval: interrupted in turn 0, Write a\\x1b[2J.py: eval(" in told.stdout


def test_worker_processes_give_the_same_answer(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = run("--json", "../history").stdout
    monkeypatch.setattr(judging, "FEW_BYTES", 0)
    assert run("--json", "--jobs", "2", "../history").stdout == alone


def test_a_file_that_cannot_be_read_is_skipped(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open

    def refused(path: Path, *arguments: Any) -> Any:
        if path.name == "s.jsonl":
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments)

    monkeypatch.setattr(Path, "open", refused)
    told = run("--json", "../history")
    assert [match[0] for match in matches(told)] == ["rollout-1.jsonl"]
    assert "skipped, cannot be read: Permission denied: ../history/claude/-project/s.jsonl" in told.stderr
