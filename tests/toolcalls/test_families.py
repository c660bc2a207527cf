from __future__ import annotations

import pytest

from ttsr_proxy.toolcalls import FamilyTable, ToolFamilyError, View, views_of_call
from ttsr_proxy.toolcalls.built_in import UNKNOWN

FAMILIES = FamilyTable.default()

PATCH = (
    "*** Begin Patch\n*** Update File: src/a.ts\n@@\n ctx: any\n-old: any\n+const a = 1\n"
    "*** Add File: README.md\n+note: any\n*** End Patch"
)
PATCHED = [View(("src/a.ts",), "const a = 1", "edit"), View(("README.md",), "note: any", "edit")]

KEYS = "tools, kind, path, text, patch, searchReplace, command"
BLOCKS = "<<<<<<< SEARCH\no\n=======\nn\n>>>>>>> REPLACE\n\n<<<<<<< SEARCH\no\n=======\n>>>>>>> REPLACE\n"

CALLS = [
    # Claude Code
    ("Write", {"file_path": "/w/p/src/a.ts", "content": "x\n"}, [View(("src/a.ts",), "x\n", "write")]),
    (
        "Edit",
        {"file_path": "/w/p/a.ts", "old_string": "o", "new_string": "n", "replace_all": False},
        [View(("a.ts",), "n", "edit")],
    ),
    (
        "MultiEdit",
        {
            "file_path": "a.ts",
            "edits": [{"old_string": "o", "new_string": "n"}, {"old_string": "p", "new_string": ""}],
        },
        [View(("a.ts",), "n", "edit"), View(("a.ts",), "", "edit")],
    ),
    (
        "NotebookEdit",
        {"notebook_path": "n.ipynb", "cell_id": "1", "new_source": "x = 1", "cell_type": "code"},
        [View(("n.ipynb",), "x = 1", "edit")],
    ),
    ("Bash", {"command": "git push -f", "description": "push"}, [View((), "git push -f", "bash")]),
    ("Read", {"file_path": "/w/p/.env", "limit": 5}, [View((".env",), "/w/p/.env", "read")]),
    ("Grep", {"pattern": "x", "path": "src"}, [View(("src",), "x", "grep"), View(("src",), "src", "grep")]),
    ("Glob", {"pattern": "**/*.ts"}, [View((), "**/*.ts", "glob")]),
    ("LS", {"path": "/tmp"}, [View(("/tmp",), "/tmp", "ls")]),
    # opencode
    ("write", {"filePath": "a.ts", "content": "x"}, [View(("a.ts",), "x", "write")]),
    ("edit", {"filePath": "a.ts", "oldString": "o", "newString": "n"}, [View(("a.ts",), "n", "edit")]),
    ("bash", {"command": "ls", "timeout": 1, "workdir": "/x"}, [View((), "ls", "bash")]),
    ("read", {"filePath": "a.ts"}, [View(("a.ts",), "a.ts", "read")]),
    ("apply_patch", {"patchText": PATCH}, PATCHED),
    # omp, with and without its prefix
    (
        "write",
        {"i": "say hello", "path": "q.cpp", "content": "// MARK\n"},
        [View(("q.cpp",), "// MARK\n", "write")],
    ),
    ("_write", {"i": "say hello", "path": "q.cpp", "content": "x"}, [View(("q.cpp",), "x", "write")]),
    (
        "_edit",
        {
            "i": "fix",
            "input": "[src/a.ts#12AB]\nPUT 3.=3:\n+const a = 1\n[README.md#00FF]\nPUT >$:\n+note: any",
        },
        PATCHED,
    ),
    ("edit", {"path": "a.ts", "old_string": "o", "new_string": "n"}, [View(("a.ts",), "n", "edit")]),
    ("edit", {"input": PATCH}, PATCHED),
    ("edit", {"path": "a.ts", "input": "PUT 3.=3:\n+x"}, [View(("a.ts",), "x", "edit")]),
    ("_bash", {"i": "list", "command": "ls"}, [View((), "ls", "bash")]),
    (
        "_read",
        {"i": "look", "path": "rule://x"},
        [View(("rule://x",), "look", "read"), View(("rule://x",), "rule://x", "read")],
    ),
    ("eval", {"i": "compute", "language": "py", "code": "1+1"}, [View((), "1+1", "eval")]),
    # Anthropic's own tools
    (
        "str_replace_based_edit_tool",
        {"command": "create", "path": "a.py", "file_text": "x"},
        [View(("a.py",), "x", "write")],
    ),
    (
        "str_replace_based_edit_tool",
        {"command": "str_replace", "path": "a.py", "old_str": "o", "new_str": "n"},
        [View(("a.py",), "n", "edit")],
    ),
    (
        "str_replace_editor",
        {"command": "insert", "path": "a.py", "insert_line": 3, "insert_text": "n"},
        [View(("a.py",), "n", "edit")],
    ),
    (
        "str_replace_editor",
        {"command": "insert", "path": "a.py", "new_str": "n"},
        [View(("a.py",), "n", "edit")],
    ),
    ("str_replace_based_edit_tool", {"command": "view", "path": "a.py"}, [View(("a.py",), "view", "read")]),
    ("bash", {"restart": True}, [View((), "", "bash")]),
    # MCP file systems, as they are called and as clients prefix them
    ("write_file", {"path": "a.ts", "content": "x"}, [View(("a.ts",), "x", "write")]),
    ("mcp__filesystem__write_file", {"path": "a.ts", "content": "x"}, [View(("a.ts",), "x", "write")]),
    (
        "mcp__fs__edit_file",
        {
            "path": "a.ts",
            "edits": [{"oldText": "o", "newText": "n"}, {"oldText": "p", "newText": "m"}],
            "dryRun": False,
        },
        [View(("a.ts",), "n", "edit"), View(("a.ts",), "m", "edit")],
    ),
    ("create_directory", {"path": "src/new"}, [View(("src/new",), "src/new", "mkdir")]),
    ("mcp__fs__read_text_file", {"path": "a.ts", "head": 3}, [View(("a.ts",), "a.ts", "read")]),
    (
        "read_multiple_files",
        {"paths": ["a.ts", "b.md"]},
        [View(("a.ts", "b.md"), "a.ts", "read"), View(("a.ts", "b.md"), "b.md", "read")],
    ),
    ("list_directory", {"path": "src"}, [View(("src",), "src", "ls")]),
    (
        "move_file",
        {"source": "a.ts", "destination": "b.md"},
        [View(("a.ts", "b.md"), "a.ts", "move"), View(("a.ts", "b.md"), "b.md", "move")],
    ),
    # Shells and editors of other agents
    ("exec_command", {"cmd": "ls", "workdir": "/x"}, [View((), "ls", "bash")]),
    ("shell", {"command": ["git", "push", "-f"]}, [View((), "git push -f", "bash")]),
    ("replace", {"file_path": "a.ts", "old_string": "o", "new_string": "n"}, [View(("a.ts",), "n", "edit")]),
    (
        "multi_replace_string_in_file",
        {"replacements": [{"filePath": "a.ts", "newString": "1"}, {"newString": "2", "filePath": "b.ts"}]},
        [View(("a.ts",), "1", "edit"), View(("b.ts",), "2", "edit")],
    ),
    (
        "apply_diff",
        {"path": "a.ts", "diff": BLOCKS},
        [View(("a.ts",), "n", "edit"), View(("a.ts",), "", "edit")],
    ),
    (
        "exec",
        {"code": "tools.apply_patch(`+x`)"},
        [View((), "tools.apply_patch(`+x`)", "eval"), View((), "x", "edit")],
    ),
    (
        "bash",
        {"command": "echo x > a.ts"},
        [View((), "echo x > a.ts", "bash"), View(("a.ts",), "x\n", "write")],
    ),
    # No family
    (
        "deploy",
        {"target": "prod", "config_path": "c.yml", "extraPaths": ["d.yml"], "n": {"note": "a\nb"}},
        [
            View(
                ("c.yml", "d.yml"),
                '{"target":"prod","config_path":"c.yml","extraPaths":["d.yml"],"n":{"note":"a\\nb"}}',
                None,
            ),
            View(("c.yml", "d.yml"), "prod", None),
            View(("c.yml", "d.yml"), "a\nb", None),
        ],
    ),
    ("deploy", {}, [View((), "{}", None)]),
]


@pytest.mark.parametrize(
    ("tool", "arguments", "views"), CALLS, ids=[f"{n}-{call[0]}" for n, call in enumerate(CALLS)]
)
def test_a_call_has_the_views_of_its_family(tool, arguments, views):
    assert list(views_of_call(tool, arguments, FAMILIES, project_root="/w/p")) == views
    assert {view.kind for view in views} <= FAMILIES.family_of(tool).kinds


@pytest.mark.parametrize("family", FAMILIES.families, ids=lambda family: family.name)
def test_every_family_has_a_recorded_call(family):
    assert any(FAMILIES.family_of(tool) is family for tool, _, _ in CALLS)


@pytest.mark.parametrize(
    "tool", ["", "writer", "overwrite_files", "__write", "mcp__x__unknown", "[*", "\x00", "task"]
)
def test_other_tools_have_no_family(tool):
    assert FAMILIES.family_of(tool) is UNKNOWN


def test_a_configured_family_comes_before_the_built_in_ones():
    table = FAMILIES.with_custom(
        [
            {
                "tools": ["Put*", "write"],
                "kind": "Write",
                "path": ["where", "files[].name"],
                "text": "files[].body",
            }
        ]
    )

    assert views_of_call(
        "put_all", {"files": [{"body": "x", "name": "a"}, {"name": "b", "body": "y"}]}, table
    ) == (
        View(("a",), "x", "write"),
        View(("b",), "y", "write"),
    )
    assert views_of_call("_write", {"where": "a", "files": [{"body": "x"}]}, table) == (
        View(("a",), "x", "write"),
    )
    assert table.family_of("edit") is FAMILIES.family_of("edit")


def test_a_configured_family_without_text_sees_every_string_but_its_paths():
    table = FAMILIES.with_custom([{"tools": "deploy", "kind": "deploy", "path": "target"}])

    assert views_of_call("deploy", {"a": "x", "b": ["y"], "target": "t"}, table) == (
        View(("t",), "x", "deploy"),
        View(("t",), "y", "deploy"),
    )


def test_texts_of_a_configured_family_are_read_as_it_says():
    table = FAMILIES.with_custom(
        [
            {
                "tools": "revise",
                "kind": "edit",
                "path": "name",
                "patch": "diff",
                "searchReplace": ["blocks[]"],
            },
            {"tools": "launch", "kind": "bash", "command": "line"},
        ]
    )

    assert views_of_call("revise", {"diff": PATCH}, table) == tuple(PATCHED)
    assert views_of_call("revise", {"name": "a.ts", "blocks": [BLOCKS]}, table) == (
        View(("a.ts",), "n", "edit"),
        View(("a.ts",), "", "edit"),
    )
    assert views_of_call("launch", {"line": "echo x > a.ts"}, table) == (
        View((), "echo x > a.ts", "bash"),
        View(("a.ts",), "x\n", "write"),
    )
    assert table.family_of("launch").kinds == {"bash", "edit", "write"}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            "x",
            rf"toolFamilies\[1\]: expected a mapping with {KEYS}, got 'x'",
        ),
        (
            {"tool": "x"},
            rf"toolFamilies\[1\]\.tool: unknown key; allowed are {KEYS}",
        ),
        ({"kind": "edit"}, r"toolFamilies\[1\]\.tools: expected at least one tool name"),
        ({"tools": [], "kind": "edit"}, r"toolFamilies\[1\]\.tools: expected at least one"),
        ({"tools": [3], "kind": "edit"}, r"toolFamilies\[1\]\.tools: expected a list of strings"),
        ({"tools": 3, "kind": "edit"}, r"toolFamilies\[1\]\.tools: expected a list of strings"),
        (
            {"tools": ["x"], "kind": "k", "command": [3]},
            r"toolFamilies\[1\]\.command: expected a list of strings",
        ),
        ({"tools": ["x"]}, r"toolFamilies\[1\]\.kind: expected a name such as 'edit' or 'write', got None"),
        ({"tools": ["x"], "kind": 3}, r"toolFamilies\[1\]\.kind: .*got 3"),
        (
            {"tools": ["x"], "kind": "k", "path": ["a..b"]},
            r"toolFamilies\[1\]\.path: expected an argument .*'a\.\.b'",
        ),
        (
            {"tools": ["x"], "kind": "k", "text": {"a": 1}},
            r"toolFamilies\[1\]\.text: expected a list of strings",
        ),
        (
            {"tools": ["x"], "kind": "k", "text": [""]},
            r"toolFamilies\[1\]\.text: expected a list .*not empty",
        ),
    ],
)
def test_a_wrong_row_is_an_error_that_names_its_key(row, message):
    with pytest.raises(ToolFamilyError, match=message):
        FAMILIES.with_custom([{"tools": ["a"], "kind": "edit"}, row])
