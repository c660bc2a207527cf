"""Which calls read a rule, by every agent's tools, however their arguments arrive."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttsr_proxy.toolcalls import FamilyTable
from ttsr_proxy.toolcalls.rule_reads import MOST_CHARS, can_read_rules, may_read_rule, rule_read

FAMILIES = FamilyTable.default()

READS: list[tuple[str, str, dict[str, Any] | str]] = [
    ("claude-code", "Read", {"file_path": "rule://db"}),
    ("claude-code, part of it", "Read", {"offset": 1, "limit": 20, "file_path": "rule://db"}),
    ("claude-code, shell", "Bash", {"command": "cat rule://db", "description": "Read the rule"}),
    ("codex", "exec_command", {"cmd": "cat rule://db", "workdir": "/w"}),
    ("codex, older", "shell", {"command": ["bash", "-lc", "cat rule://db"], "timeout_ms": 100}),
    ("codex, older, no shell", "shell", {"command": ["cat", "rule://db"]}),
    ("codex, shell_command", "shell_command", {"command": " cat  rule://db\n"}),
    ("codex, script", "exec", 'text(await tools.exec_command({"cmd": "cat rule://db"}));\n'),
    (
        "codex, script of two lines",
        "exec",
        """const r = await tools.exec_command({
  cmd: "cat 'rule://db'", workdir: "/w/p", yield_time_ms: 1000,
});
text(r.output);
""",
    ),
    ("codex, shortest script", "exec", "await tools.exec_command({cmd:`cat rule://db`})"),
    ("opencode", "read", {"filePath": "rule://db"}),
    ("opencode, shell", "bash", {"command": "cat 'rule://db'", "description": "x"}),
    ("gemini-cli", "read_file", {"absolute_path": "rule://db"}),
    ("gemini-cli, shell", "run_shell_command", {"command": 'cat -- "rule://db"'}),
    ("cursor", "read_file", {"target_file": "rule://db", "explanation": "x"}),
    ("windsurf", "run_command", {"CommandLine": "cat rule://db", "Blocking": True}),
    ("roo-code", "read_file", {"path": "rule://db"}),
    ("anthropic's editor", "str_replace_based_edit_tool", {"command": "view", "path": "rule://db"}),
    ("the editor, path first", "str_replace_editor", {"path": "rule://db", "command": "view"}),
    ("mcp", "mcp__files__read_file", {"path": "rule://db"}),
    ("mcp, a list of one", "mcp__files__read_multiple_files", {"paths": ["rule://db"]}),
]

OTHERS: list[tuple[str, str, dict[str, Any] | str]] = [
    ("a script that does more", "exec", 'text(await tools.exec_command({"cmd": "cat rule://db"})); more();'),
    ("a script of another command", "exec", 'text(await tools.exec_command({"cmd": "cat rule://a b.py"}));'),
    (
        "a script that shows something else",
        "exec",
        'await tools.exec_command({cmd: "cat rule://db"}); text(x)',
    ),
    ("a script with a value put in", "exec", "await tools.exec_command({cmd: `cat rule://${x}`})"),
    ("a file", "Read", {"file_path": "src/a.py"}),
    ("a file whose name begins so", "Read", {"file_path": "rule.md"}),
    ("another scheme", "Read", {"file_path": "rules://db"}),
    ("another case", "Read", {"file_path": "RULE://db"}),
    ("several files", "mcp__files__read_multiple_files", {"paths": ["rule://db", "a.py"]}),
    ("a file and a rule", "Read", {"file_path": "a.py", "url": "rule://db"}),
    ("a write", "Write", {"file_path": "rule://db", "content": "x"}),
    ("an edit", "str_replace_based_edit_tool", {"command": "create", "path": "rule://db", "file_text": "x"}),
    ("cat and more", "Bash", {"command": "cat rule://db | head"}),
    ("cat of two", "Bash", {"command": "cat rule://db rule://brief"}),
    ("a substitution", "Bash", {"command": 'cat "rule://$(whoami)"'}),
    ("a redirection", "Bash", {"command": "cat rule://db > a"}),
    ("a command after it", "Bash", {"command": "cat rule://db; ls"}),
    ("another command", "Bash", {"command": "less rule://db"}),
    ("echo", "exec_command", {"cmd": "echo cat rule://db"}),
    ("an argument too many", "shell", {"command": ["bash", "-lc", "cat rule://db", "x"]}),
    ("no path at all", "Read", {"limit": 3}),
    ("a path that is none", "Read", {"file_path": 3}),
    ("something long before it", "Read", {"note": "x" * MOST_CHARS, "file_path": "rule://db"}),
]


def kinds(tool: str) -> frozenset[str | None]:
    return FAMILIES.family_of(tool).kinds


def written(arguments: dict[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def is_read(tool: str, text: str, cuts: list[int]) -> str | None:
    """The rule that a call reads whose arguments come in pieces, judged as an exchange does."""
    if not can_read_rules(kinds(tool)):
        return None
    if not all(may_read_rule(kinds(tool), text[:cut]) for cut in [0, *sorted(cuts), len(text)]):
        return None
    return rule_read(kinds(tool), text)


@pytest.mark.parametrize(("tool", "arguments"), [read[1:] for read in READS], ids=[r[0] for r in READS])
def test_every_agents_way_to_read_a_rule_is_known(tool: str, arguments: dict[str, Any] | str) -> None:
    text = written(arguments)
    assert is_read(tool, text, list(range(len(text)))) == "db"
    assert is_read(f"_{tool}", text, []) == "db"


@pytest.mark.parametrize(("tool", "arguments"), [call[1:] for call in OTHERS], ids=[c[0] for c in OTHERS])
def test_other_calls_are_none(tool: str, arguments: dict[str, Any] | str) -> None:
    text = written(arguments)
    assert is_read(tool, text, []) is None
    assert is_read(tool, text, list(range(len(text)))) is None


@pytest.mark.parametrize("tool", ["Write", "Edit", "Grep", "Glob", "WebFetch", "apply_patch", "unknown_tool"])
def test_tools_that_read_no_files_are_not_held_for_it(tool: str) -> None:
    assert not can_read_rules(kinds(tool))


def test_a_file_is_known_to_be_none_with_its_first_letters() -> None:
    assert may_read_rule(kinds("Read"), '{"file_path": "r')
    assert not may_read_rule(kinds("Read"), '{"file_path": "s')
    assert not may_read_rule(kinds("Bash"), '{"command": "l')
    assert not may_read_rule(kinds("exec"), "const a = f")


@pytest.mark.parametrize("name", ["db", "a b", "Ä✓", "x/y", "db.md", ""])
def test_a_name_is_taken_as_it_stands(name: str) -> None:
    escaped = json.dumps({"file_path": f"rule://{name}"}).replace("r", "\\u0072", 1).replace("/", "\\/")
    for text in (json.dumps({"file_path": f"rule://{name}"}), escaped):
        assert is_read("Read", text, list(range(len(text)))) == name
    quoted = json.dumps({"command": f"cat 'rule://{name}'"})
    assert is_read("Bash", quoted, []) == (name or None)


PATHS = st.sampled_from(["rule://db", "rule:/", "rule", "", "a.py", "rule://Ä b", "rule://a\\b\n"])
COMMANDS = st.sampled_from(
    ["cat rule://db", "cat 'rule://a b'", "cat rule://db ", "cat", "ls", "cat rule://a;b"]
)
VALUES = st.one_of(
    PATHS, COMMANDS, st.integers(), st.none(), st.lists(st.one_of(PATHS, COMMANDS), max_size=4)
)
KEYS = st.sampled_from(["file_path", "path", "paths", "url", "command", "cmd", "limit", "note"])


@given(
    st.sampled_from(["Read", "Bash", "str_replace_based_edit_tool", "mcp__files__read_multiple_files"]),
    st.dictionaries(KEYS, VALUES, max_size=4),
    st.booleans(),
    st.lists(st.integers(0, 200), max_size=8),
)
def test_how_the_arguments_are_cut_changes_nothing(
    tool: str, arguments: dict[str, Any], ascii_only: bool, cuts: list[int]
) -> None:
    text = json.dumps(arguments, ensure_ascii=ascii_only)
    assert is_read(tool, text, cuts) == is_read(tool, text, [])
