"""The tools that are known out of the box; `docs/tool-families.md` lists these rows for users.

To teach the proxy a tool, add its name, its path argument or its text argument to a row, or add a row.
"""

from __future__ import annotations

from ttsr_proxy.toolcalls.arguments import ArgumentPattern
from ttsr_proxy.toolcalls.family import EVERY_STRING, Family, TextArgument
from ttsr_proxy.toolcalls.syntax import Form


def _arguments(*texts: str) -> tuple[ArgumentPattern, ...]:
    return tuple(map(ArgumentPattern, texts))


def _text(
    argument: str,
    *,
    form: Form = "text",
    kind: str | None = None,
    join: str | None = None,
) -> TextArgument:
    return TextArgument(None if argument == EVERY_STRING else ArgumentPattern(argument), form, kind, join)


def _texts(*arguments: str) -> tuple[TextArgument, ...]:
    return tuple(map(_text, arguments))


UNKNOWN = Family(
    name="unknown",
    tools=(),
    kind=None,
    paths=_arguments("*path", "*paths[]"),
    texts=_texts(EVERY_STRING),
    all_paths=True,
    raw=True,
)
"""Tools that no row names: the reference's scan of the top-level arguments for paths, and all strings."""

REPLACED = frozenset(
    {"old_string", "oldstring", "old_str", "oldstr", "old_text", "oldtext", "search", "targetcontent"}
)
"""Arguments, in lower case, that quote what an edit takes away: never a view of a known tool."""

_FILE = _arguments(
    "file_path", "filePath", "path", "target_file", "TargetFile", "relative_path", "pathInProject"
)
"""The spellings of the one path that a tool writes to."""

BUILT_IN = (
    Family(
        "write",
        (
            "write",
            "write_file",
            "*_write_file",
            "write_to_file",
            "create",
            "create_file",
            "create_new_file",
            "create_text_file",
            "*_create_text_file",
            "fsWrite",
            "fs_write",
            "fsAppend",
        ),
        "write",
        _FILE,
        _texts("content", "contents", "file_text", "fileText", "text", "CodeContent"),
    ),
    Family(
        "edit",
        (
            "edit",
            "multiedit",
            "multi_edit",
            "edit_file",
            "*_edit_file",
            "edit_existing_file",
            "single_find_and_replace",
            "replace",
            "replace_string_in_file",
            "multi_replace_string_in_file",
            "insert_edit_into_file",
            "search_replace",
            "strReplace",
            "str_replace",
            "insert_content",
            "replace_file_content",
            "multi_replace_file_content",
            "replace_text_in_file",
            "replace_symbol_body",
            "*_replace_symbol_body",
            "insert_after_symbol",
            "*_insert_after_symbol",
            "insert_before_symbol",
            "*_insert_before_symbol",
        ),
        "edit",
        (*_FILE, *_arguments("replacements[].filePath")),
        (
            *_texts("new_string", "newString", "newText", "new_text", "new_str", "newStr", "replacement"),
            *_texts("edits[].new_string", "edits[].newString", "edits[].newText", "edits[].new_text"),
            *_texts("edits[].new_str", "replacements[].newString", "code", "code_edit", "changes", "content"),
            *_texts("ReplacementContent", "ReplacementChunks[].ReplacementContent"),
            _text("body"),
            _text("input", form="patch"),
        ),
    ),
    Family(
        "search-replace",
        ("replace_in_file", "apply_diff", "search_and_replace", "search_and_replace_in_file"),
        "edit",
        _FILE,
        (
            _text("diff", form="search-replace"),
            _text("diffs[]", form="search-replace"),
            *_texts("operations[].replace", "edits[].new_text", "replace"),
        ),
    ),
    Family(
        "apply-patch",
        ("apply_patch", "functions.apply_patch", "ApplyPatch"),
        "edit",
        _arguments("operation.path"),
        (
            _text("patchText", form="patch"),
            _text("input", form="patch"),
            _text("patch", form="patch"),
            _text("operation.diff", form="patch"),
        ),
    ),
    Family(
        "notebook-edit",
        ("NotebookEdit", "edit_notebook", "EditNotebook", "edit_notebook_file"),
        "edit",
        _arguments("notebook_path", "target_notebook", "filePath"),
        _texts("new_source", "new_string", "newCode", "newCode[]"),
    ),
    Family(
        "text-editor",
        (
            "str_replace_based_edit_tool",
            "str_replace_editor",
            "str_replace_editor_*",
            "file_editor",
            "text_editor",
            "*_text_editor",
        ),
        "edit",
        _arguments("path"),
        (*_texts("new_str", "insert_text"), _text("file_text", kind="write"), _text("diff", form="patch")),
        plain_kind="read",
    ),
    Family(
        "bash",
        (
            "bash",
            "shell",
            "*_shell",
            "shell_command",
            "exec_command",
            "functions.exec_command",
            "execute_bash",
            "executeBash",
            "execute",
            "execute_command",
            "execute_shell_command",
            "*_execute_shell_command",
            "run_command",
            "run_in_terminal",
            "run_shell_command",
            "run_terminal_cmd",
            "run_terminal_command",
            "terminal",
        ),
        "bash",
        (),
        (
            _text("command", form="shell"),
            _text("cmd", form="shell"),
            _text("CommandLine", form="shell"),
            _text("command[]", form="shell", join=" "),
            _text("action.command[]", form="shell", join=" "),
            _text("action.commands[]", form="shell"),
        ),
    ),
    Family(
        "exec",
        ("exec", "functions.exec"),
        "eval",
        (),
        (_text("code", form="javascript"), _text("command", form="shell", kind="bash")),
    ),
    Family("eval", ("eval", "execute_ipython_cell"), "eval", (), _texts("code")),
    Family(
        "read",
        (
            "read",
            "view",
            "view_file",
            "read_file",
            "*_read_file",
            "read_text_file",
            "*_read_text_file",
            "read_media_file",
        ),
        "read",
        _arguments("file_path", "filePath", "path", "target_file", "absolute_path"),
        _texts(EVERY_STRING, "file_path", "filePath", "path", "target_file", "absolute_path"),
    ),
    Family(
        "read-many",
        ("read_multiple_files", "*_read_multiple_files"),
        "read",
        _arguments("paths[]"),
        _texts(EVERY_STRING, "paths[]"),
        all_paths=True,
    ),
    Family(
        "ls",
        (
            "ls",
            "list",
            "list_dir",
            "list_files",
            "list_directory",
            "*_list_directory",
            "list_directory_with_sizes",
            "directory_tree",
        ),
        "ls",
        _arguments("path"),
        _texts(EVERY_STRING, "path"),
    ),
    Family("grep", ("grep", "grep_search"), "grep", _arguments("path"), _texts(EVERY_STRING, "path")),
    Family(
        "glob",
        ("glob", "search_files", "*_search_files"),
        "glob",
        _arguments("path"),
        _texts(EVERY_STRING, "path"),
    ),
    Family(
        "create-directory",
        ("create_directory", "*_create_directory"),
        "mkdir",
        _arguments("path", "dirPath"),
        _texts(EVERY_STRING, "path", "dirPath"),
    ),
    Family(
        "move-file",
        ("move_file", "*_move_file"),
        "move",
        _arguments("source", "destination"),
        _texts(EVERY_STRING, "source", "destination"),
        all_paths=True,
    ),
)
