"""`rules list` over a tree with every provider, every oddity of files, and thousands of rules."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ttsr_proxy.cli import main

MANY = 5_000
TRIGGER = "---\ncondition: frobnicate{}\n---\nUse the other one.\n"

Listed = dict[str, Any]


def write(path: Path, text: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Listed:
    home, project, mounted, package = (tmp_path / name for name in ("home", "repo", "mounted", "package"))
    (project / ".git").mkdir(parents=True)
    for number in range(MANY):
        write(mounted / f"part{number % 7}" / f"many-{number:04}.md", TRIGGER.format(number))
    for number, folder in enumerate(
        (
            project / ".omp/rules",
            home / ".omp/agent/rules",
            package / "rules",
            project / ".agent/rules",
            project / ".agents/rules",
            home / ".agents/rules",
            home / ".cursor/rules",
            project / ".cursor/rules",
            project / ".windsurf/rules",
            project / ".clinerules",
        )
    ):
        write(folder / f"own-{number}.md", TRIGGER.format(f"own{number}"))
        write(folder / "everywhere.md", TRIGGER.format("everywhere"))
    write(home / ".omp/agent/RULES.md", "Be brief.\n")
    write(home / ".codeium/windsurf/memories/global_rules.md", "---\ntrigger: always_on\n---\nBe kind.\n")
    odd = project / ".omp/rules"
    write(odd / "bom.md", b"\xef\xbb\xbf" + TRIGGER.format("bom").encode())
    write(odd / "crlf.md", TRIGGER.format("crlf").replace("\n", "\r\n"))
    write(odd / "latin.md", TRIGGER.format("latin").encode() + b"caf\xe9\n")
    write(odd / "utf16.md", TRIGGER.format("utf16").encode("utf-16"))
    write(odd / "broken-yaml.md", "---\nglobs: *.ts\ncondition: 'frob\nalwaysApply: true\n---\nx\n")
    write(odd / "broken-regex.md", "---\ncondition: '('\n---\nx\n")
    write(odd / "no-frontmatter.md", "Only text.\n")
    write(odd / "empty.md", "")
    write(odd / "off.md", "---\nenabled: false\ncondition: x1y\n---\nx\n")
    write(odd / "notes.txt", "no rule")
    write(odd / "huge.md", "x" * 1_100_000)
    (odd / "link.md").symlink_to(odd / "own-0.md")
    (odd / "dangling.md").symlink_to(odd / "gone.md")
    os.mkfifo(odd / "pipe.md")
    (mounted / "loop").symlink_to(mounted)
    (mounted / "part0" / "out").symlink_to(home)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TTSR_BUILTIN_RULES", "false")
    arguments = ["--project", str(project), "--rules", str(mounted), "--extension", str(package)]
    result = CliRunner().invoke(main, ["rules", "list", "--json", *arguments])
    assert result.exit_code == 0, result.stderr
    listed: Listed = json.loads(result.stdout)
    return listed


def test_every_rule_is_listed_with_the_right_state_and_nothing_is_lost(told: Listed) -> None:
    rules = told["rules"]
    by_provider = Counter(rule["provider"] for rule in rules if rule["provider"] != "builtin-defaults")
    assert by_provider == {
        "native": 4 + 1 + 10,  # two directories with two rules each, RULES, and the odd ones that can be read
        "mounted": MANY,
        "omp-plugins": 2,
        "agents": 6,
        "cursor": 4,
        "windsurf": 3,
        "cline": 2,
    }
    active = {rule["name"]: rule for rule in rules if rule["state"] == "active"}
    assert len(active) == MANY + 10 + 1 + 1 + 1 + 4 + 1

    everywhere = [rule for rule in rules if rule["name"] == "everywhere"]
    assert [rule["state"] for rule in everywhere] == ["active"] + ["inactive"] * 9
    assert all(rule["reason"].startswith("shadowed by") for rule in everywhere[1:])

    same_file = {rule["name"]: rule["reason"] for rule in rules if rule["name"] in ("link", "own-0")}
    assert same_file["link"] is None
    assert same_file["own-0"].startswith("same file as ")
    assert {active[name]["bucket"] for name in ("RULES", "global_rules")} == {"always-apply"}

    def warned(name: str, text: str) -> bool:
        return any(text in warning for rule in rules if rule["name"] == name for warning in rule["warnings"])

    assert warned("bom", "byte order mark")
    assert warned("crlf", "CRLF")
    assert warned("latin", "U+FFFD")
    assert warned("utf16", "UTF-16")
    assert warned("broken-yaml", "not valid YAML")
    reasons = {rule["name"]: rule["reason"] for rule in rules if rule["provider"] == "native"}
    assert "does not compile" in reasons["broken-regex"]
    assert reasons["no-frontmatter"] == reasons["empty"] == "no description, alwaysApply or condition"
    assert reasons["off"] == "disabled in its file (enabled: false)"

    problems = {Path(problem["path"]).name: problem["message"] for problem in told["problems"]}
    assert problems.keys() == {"huge.md", "dangling.md", "pipe.md", "out"}
    assert "larger than" in problems["huge.md"]
    assert "leads out of" in problems["out"]
