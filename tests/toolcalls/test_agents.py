"""One rule and every agent's way to write the same line into the same file."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttsr_proxy.rules.model import Rule
from ttsr_proxy.toolcalls import FamilyTable, ToolCallReader, views_of_call
from ttsr_proxy.triggers.match import StreamContext
from ttsr_proxy.triggers.ruleset import RuleSet

FAMILIES = FamilyTable.default()
ROOT = "/w/p"
BAD = 'const x = eval("1 + 1");'
"""What the rule forbids; nothing else in the calls below does."""
OLD = 'const old = eval("gone");'

UPDATE = f"*** Begin Patch\n*** Update File: src/a.ts\n@@\n {OLD}\n-{OLD}\n+{BAD}\n*** End Patch\n"
ADD = f"*** Begin Patch\n*** Add File: src/a.ts\n+{BAD}\n*** Add File: README.md\n+note\n*** End Patch"
UNIFIED = f"--- a/src/a.ts\n+++ b/src/a.ts\n@@ -1,2 +1,2 @@\n {OLD}\n-{OLD}\n+{BAD}\n"
BLOCK = f"<<<<<<< SEARCH\n{OLD}\n=======\n{BAD}\n>>>>>>> REPLACE\n"
DASHED = f"------- SEARCH\n{OLD}\n=======\n{BAD}\n+++++++ REPLACE"
HEREDOC = f"cat > src/a.ts <<'EOF'\n{BAD}\nEOF\n"
PATCH_COMMAND = f"apply_patch <<'EOF'\n{UPDATE}EOF\n"
LITERAL = json.dumps(UPDATE)

CALLS: list[tuple[str, str, dict[str, object] | str]] = [
    ("claude-code-write", "Write", {"file_path": "/w/p/src/a.ts", "content": f"{BAD}\n"}),
    (
        "claude-code-edit",
        "Edit",
        {"file_path": "/w/p/src/a.ts", "old_string": OLD, "new_string": BAD, "replace_all": False},
    ),
    (
        "claude-code-multiedit",
        "MultiEdit",
        {"file_path": "/w/p/src/a.ts", "edits": [{"old_string": OLD, "new_string": BAD}]},
    ),
    ("claude-code-bash", "Bash", {"command": HEREDOC, "description": "write the file"}),
    ("codex-function", "apply_patch", {"input": UPDATE}),
    ("codex-freeform", "apply_patch", UPDATE),
    ("codex-freeform-add", "apply_patch", ADD),
    ("codex-shell-heredoc", "shell", {"command": ["bash", "-lc", PATCH_COMMAND], "workdir": "/w/p"}),
    ("codex-shell-argument", "shell", {"command": ["apply_patch", UPDATE]}),
    ("codex-shell-command", "shell_command", {"command": PATCH_COMMAND}),
    ("codex-exec-command", "exec_command", {"cmd": PATCH_COMMAND, "workdir": "/w/p"}),
    ("codex-exec-command-tee", "exec_command", {"cmd": f"tee src/a.ts <<'EOF' >/dev/null\n{BAD}\nEOF"}),
    ("codex-local-shell", "local_shell", {"action": {"type": "exec", "command": ["bash", "-c", HEREDOC]}}),
    ("openai-shell", "shell", {"action": {"commands": ["cd src", HEREDOC]}}),
    (
        "openai-apply-patch",
        "apply_patch",
        {"operation": {"type": "update_file", "path": "src/a.ts", "diff": f"@@\n {OLD}\n-{OLD}\n+{BAD}\n"}},
    ),
    ("codex-exec-patch", "exec", f"const r = await tools.apply_patch({LITERAL});\ntext(r);"),
    ("codex-exec-constant", "exec", f"const patch = {LITERAL};\nawait tools.apply_patch(patch);"),
    ("codex-exec-template", "exec", f"await tools.apply_patch(`{UPDATE}`);"),
    (
        "codex-exec-lines",
        "exec",
        f'await tools.apply_patch([{",".join(map(json.dumps, UPDATE.split(chr(10))))}].join("\\n"))',
    ),
    ("codex-exec-command-script", "exec", f"await tools.exec_command({{cmd: {json.dumps(HEREDOC)}}})"),
    ("opencode-write", "write", {"filePath": "src/a.ts", "content": BAD}),
    ("opencode-edit", "edit", {"filePath": "src/a.ts", "oldString": OLD, "newString": BAD}),
    ("opencode-apply-patch", "apply_patch", {"patchText": UPDATE}),
    ("omp-write", "_write", {"i": "write it", "path": "src/a.ts", "content": BAD}),
    ("omp-edit", "_edit", {"i": "fix", "input": f"[src/a.ts#12AB]\nPUT 3.=3:\n+{BAD}\n[b.md#1]\n+x"}),
    ("omp-bash", "_bash", {"i": "write it", "command": HEREDOC}),
    ("cline-write", "write_to_file", {"path": "src/a.ts", "content": BAD}),
    ("cline-replace", "replace_in_file", {"path": "src/a.ts", "diff": DASHED, "task_progress": "- [x] a"}),
    ("cline-command", "execute_command", {"command": HEREDOC, "requires_approval": False}),
    (
        "roo-apply-diff",
        "apply_diff",
        {"path": "src/a.ts", "diff": BLOCK.replace("CH\n", "CH\n:start_line:3\n-------\n")},
    ),
    ("roo-operations", "apply_diff", {"path": "src/a.ts", "operations": [{"search": OLD, "replace": BAD}]}),
    ("roo-insert", "insert_content", {"path": "src/a.ts", "line": 3, "content": BAD}),
    ("roo-search-replace", "search_replace", {"file_path": "src/a.ts", "old_string": OLD, "new_string": BAD}),
    (
        "roo-search-and-replace",
        "search_and_replace",
        {"path": "src/a.ts", "edits": [{"old_text": OLD, "new_text": BAD}]},
    ),
    ("gemini-write", "write_file", {"file_path": "/w/p/src/a.ts", "content": BAD}),
    (
        "gemini-replace",
        "replace",
        {"file_path": "/w/p/src/a.ts", "instruction": "fix", "old_string": OLD, "new_string": BAD},
    ),
    ("gemini-shell", "run_shell_command", {"command": HEREDOC, "description": "write"}),
    ("copilot-create", "create_file", {"filePath": "/w/p/src/a.ts", "content": BAD}),
    (
        "copilot-replace",
        "replace_string_in_file",
        {"filePath": "/w/p/src/a.ts", "oldString": OLD, "newString": BAD, "explanation": "x"},
    ),
    (
        "copilot-multi-replace",
        "multi_replace_string_in_file",
        {
            "replacements": [
                {"filePath": "b.md", "newString": "x"},
                {"newString": BAD, "filePath": "src/a.ts"},
            ]
        },
    ),
    ("copilot-insert", "insert_edit_into_file", {"explanation": "x", "filePath": "src/a.ts", "code": BAD}),
    ("copilot-apply-patch", "apply_patch", {"explanation": "x", "input": UPDATE}),
    ("copilot-terminal", "run_in_terminal", {"command": HEREDOC, "isBackground": False}),
    ("copilot-cli-create", "create", {"path": "/w/p/src/a.ts", "file_text": BAD}),
    ("copilot-cli-edit", "edit", {"path": "/w/p/src/a.ts", "old_str": OLD, "new_str": BAD}),
    ("zed-write", "write_file", {"path": "src/a.ts", "content": BAD}),
    ("zed-edit", "edit_file", {"path": "src/a.ts", "edits": [{"old_text": OLD, "new_text": BAD}]}),
    ("zed-terminal", "terminal", {"command": HEREDOC, "cd": "p"}),
    (
        "openhands-editor",
        "str_replace_editor",
        {"command": "create", "path": "/w/p/src/a.ts", "file_text": BAD},
    ),
    (
        "openhands-file-editor",
        "file_editor",
        {"command": "str_replace", "path": "src/a.ts", "old_str": OLD, "new_str": BAD},
    ),
    ("openhands-edit-file", "edit_file", {"path": "src/a.ts", "content": BAD, "start": 1, "end": -1}),
    ("openhands-bash", "execute_bash", {"command": HEREDOC, "is_input": "false"}),
    ("continue-create", "create_new_file", {"filepath": "src/a.ts", "contents": BAD}),
    ("continue-edit", "edit_existing_file", {"filepath": "src/a.ts", "changes": BAD}),
    (
        "continue-replace",
        "single_find_and_replace",
        {"filepath": "src/a.ts", "old_string": OLD, "new_string": BAD},
    ),
    ("continue-blocks", "search_and_replace_in_file", {"filepath": "src/a.ts", "diffs": [DASHED]}),
    ("continue-command", "run_terminal_command", {"command": HEREDOC}),
    ("cursor-edit", "edit_file", {"target_file": "src/a.ts", "instructions": "x", "code_edit": BAD}),
    ("cursor-write", "write", {"file_path": "src/a.ts", "contents": BAD}),
    ("cursor-replace", "StrReplace", {"path": "src/a.ts", "old_string": OLD, "new_string": BAD}),
    ("cursor-patch", "ApplyPatch", UPDATE),
    ("cursor-command", "run_terminal_cmd", {"command": HEREDOC, "is_background": False}),
    (
        "anthropic-create",
        "str_replace_based_edit_tool",
        {"command": "create", "path": "src/a.ts", "file_text": BAD},
    ),
    (
        "anthropic-insert",
        "str_replace_based_edit_tool",
        {"command": "insert", "path": "src/a.ts", "insert_line": 1, "insert_text": BAD},
    ),
    ("anthropic-bash", "bash", {"command": HEREDOC}),
    ("mcp-write", "mcp__filesystem__write_file", {"path": "/w/p/src/a.ts", "content": BAD}),
    (
        "mcp-edit",
        "mcp__filesystem__edit_file",
        {"path": "src/a.ts", "edits": [{"oldText": OLD, "newText": BAD}]},
    ),
    ("windsurf-write", "write_to_file", {"TargetFile": "/w/p/src/a.ts", "CodeContent": BAD}),
    (
        "windsurf-replace",
        "replace_file_content",
        {
            "TargetFile": "/w/p/src/a.ts",
            "ReplacementChunks": [{"TargetContent": OLD, "ReplacementContent": BAD}],
        },
    ),
    ("goose-editor", "developer__text_editor", {"command": "write", "path": "src/a.ts", "file_text": BAD}),
    ("goose-editor-diff", "text_editor", {"command": "str_replace", "path": "src/a.ts", "diff": UNIFIED}),
    ("goose-shell", "developer__shell", {"command": HEREDOC}),
    ("kiro-write", "fsWrite", {"path": "src/a.ts", "text": BAD}),
    ("kiro-replace", "strReplace", {"path": "src/a.ts", "oldStr": OLD, "newStr": BAD}),
    ("serena-body", "replace_symbol_body", {"name_path": "f", "relative_path": "src/a.ts", "body": BAD}),
    ("git-apply", "bash", {"command": f"git apply <<'EOF'\n{UNIFIED}EOF"}),
    ("sed", "bash", {"command": f"sed -i 's|eval|f|; s|.*|{BAD}|' src/a.ts"}),
    ("echo", "bash", {"command": f"mkdir -p src && cd src && echo '{BAD}' >> a.ts"}),
]
RULE = Rule(
    name="no-eval",
    path="no-eval.md",
    content="No eval.",
    condition=(r"\beval\(",),
    scope=("tool:edit(src/*.ts)", "tool:write(src/*.ts)"),
)
RULES = RuleSet([RULE])


def matched(tool: str, fragments: list[str], *, freeform: bool) -> set[tuple[tuple[str, ...], str]]:
    """Where the rule matches in a streamed call, with the text of the view."""
    reader = ToolCallReader(tool, FAMILIES, project_root=ROOT, freeform=freeform)
    for fragment in fragments:
        reader.feed(fragment)
    reader.finish()
    views = reader.views()
    assert {view.kind for view in views} <= reader.kinds
    return {
        (view.paths, view.text)
        for view in views
        if RULES.check(view.text, StreamContext("tool", tool, view.paths, view.kind))
    }


@pytest.mark.parametrize(("tool", "call"), [call[1:] for call in CALLS], ids=[call[0] for call in CALLS])
def test_one_rule_reaches_every_agents_way_to_write_a_file(cut, tool, call):
    freeform = isinstance(call, str)
    text = call if isinstance(call, str) else json.dumps(call)

    ((paths, added),) = matched(tool, [text], freeform=freeform)

    assert paths == ("src/a.ts",)
    assert BAD in added
    assert OLD not in added
    assert matched(tool, list(text), freeform=freeform) == {(paths, added)}


@pytest.mark.parametrize(("tool", "call"), [call[1:] for call in CALLS], ids=[call[0] for call in CALLS])
def test_what_a_call_takes_away_or_quotes_as_context_never_matches(tool, call):
    text = call if isinstance(call, str) else json.dumps(call)
    harmless = text.replace(BAD, "const x = 2;").replace(json.dumps(BAD)[1:-1], "const x = 2;")
    harmless = harmless.replace(json.dumps(json.dumps(BAD)[1:-1])[1:-1], "const x = 2;")
    assert harmless != text

    assert matched(tool, [harmless], freeform=isinstance(call, str)) == set()


@settings(max_examples=60, deadline=None)
@given(call=st.sampled_from(CALLS), cuts=st.lists(st.integers(0, 700), max_size=12))
def test_views_are_the_same_at_any_split(cut, call, cuts):
    _, tool, payload = call
    freeform = isinstance(payload, str)
    text = payload if isinstance(payload, str) else json.dumps(payload)
    reader = ToolCallReader(tool, FAMILIES, project_root=ROOT, freeform=freeform)
    for fragment in cut(text, cuts):
        reader.feed(fragment)
    reader.finish()

    assert reader.views() == views_of_call(tool, text, FAMILIES, project_root=ROOT, freeform=freeform)
