"""Which tools do what: the table that maps a tool's name and arguments to a kind, a path and added text.

To teach the proxy a tool, add a row to `_BUILT_IN` (or, for one installation, to `toolFamilies` in the
configuration); `docs/tool-families.md` lists the rows for users.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ttsr_proxy.toolcalls.arguments import ArgumentPattern, wildcard

EVERY_STRING = "*"
"""As a text argument: every string of the arguments that is not a path."""


class ToolFamilyError(ValueError):
    """A `toolFamilies` row of the configuration that cannot be used; the message names its key."""


@dataclass(frozen=True, slots=True)
class TextArgument:
    """An argument whose text the call adds."""

    pattern: ArgumentPattern | None
    """None for every string that is not a path."""
    form: Literal["text", "patch"] = "text"
    kind: str | None = None
    """The kind of its views where it is not the family's."""
    join: str | None = None
    """Makes all matching elements of a list one view, with this between them."""


@dataclass(frozen=True, slots=True)
class Family:
    """Tools of one shape.

    `tools` are names, compared without case and with or without one leading `_` (omp's spelling); `*` stands
    for any characters. The first path argument that is complete is the path of all texts in the same object
    and below; when none comes, the first argument that the scan for unknown tools finds.
    """

    name: str
    tools: tuple[str, ...]
    kind: str | None
    paths: tuple[ArgumentPattern, ...]
    texts: tuple[TextArgument, ...]
    all_paths: bool = False
    """Every path argument counts, so texts wait for the end of the call."""
    raw: bool = False
    """The argument JSON itself is a view too."""
    plain_kind: str | None = None
    """The kind of calls that add no text, where it is not `kind`."""

    @property
    def kinds(self) -> frozenset[str | None]:
        """Every kind that a view of such a call can have."""
        return frozenset(
            {self.kind, self.plain_kind or self.kind, *(text.kind or self.kind for text in self.texts)}
        )

    @property
    def freeform(self) -> Literal["text", "patch"]:
        """What the input is when the tool takes text instead of JSON arguments."""
        return "patch" if any(text.form == "patch" for text in self.texts) else "text"


@dataclass(frozen=True, slots=True)
class FamilyTable:
    """An ordered table of tool families; the first row that names a tool decides."""

    families: tuple[Family, ...]
    _names: tuple[tuple[re.Pattern[str], Family], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = tuple((wildcard(tool), family) for family in self.families for tool in family.tools)
        object.__setattr__(self, "_names", names)

    @classmethod
    def default(cls) -> FamilyTable:
        """The families known out of the box."""
        return cls(_BUILT_IN)

    def with_custom(self, rows: Sequence[Mapping[str, object]]) -> FamilyTable:
        """This table with rows of the configuration before its own.

        A row has `tools` and `kind`, and may have `path` and `text` (lists of argument patterns; without
        `text`, every string counts). Raises ToolFamilyError, which names the row, the key and what is
        allowed.
        """
        custom = tuple(_custom_family(number, row) for number, row in enumerate(rows))
        return FamilyTable(custom + self.families)

    def family_of(self, tool: str) -> Family:
        """The family of a tool; `UNKNOWN` when no row names it."""
        spellings = (tool, tool[1:]) if tool.startswith("_") else (tool,)
        for spelling in spellings:
            for name, family in self._names:
                if name.fullmatch(spelling):
                    return family
        return UNKNOWN


def _arguments(*texts: str) -> tuple[ArgumentPattern, ...]:
    return tuple(map(ArgumentPattern, texts))


def _text(
    argument: str,
    *,
    form: Literal["text", "patch"] = "text",
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

REPLACED = frozenset({"old_string", "oldstring", "old_str", "oldstr", "old_text", "oldtext"})
"""Arguments, in lower case, that quote what an edit takes away: never a view of a known tool."""

_FILE = _arguments("file_path", "filePath", "path")

_BUILT_IN = (
    Family(
        "write",
        ("write", "create_file", "write_to_file", "write_file", "*_write_file"),
        "write",
        _FILE,
        _texts("content"),
    ),
    Family(
        "edit",
        (
            "edit",
            "multiedit",
            "multi_edit",
            "edit_file",
            "*_edit_file",
            "replace",
            "replace_string_in_file",
            "multi_replace_string_in_file",
        ),
        "edit",
        (*_FILE, *_arguments("replacements[].filePath")),
        (
            *_texts("new_string", "newString", "newText"),
            *_texts("edits[].new_string", "edits[].newString", "edits[].newText", "replacements[].newString"),
            _text("input", form="patch"),
        ),
    ),
    Family(
        "apply-patch",
        ("apply_patch",),
        "edit",
        (),
        (_text("patchText", form="patch"), _text("input", form="patch"), _text("patch", form="patch")),
    ),
    Family("notebook-edit", ("NotebookEdit",), "edit", _arguments("notebook_path"), _texts("new_source")),
    Family(
        "text-editor",
        ("str_replace_based_edit_tool", "str_replace_editor", "str_replace_editor_*"),
        "edit",
        _arguments("path"),
        (*_texts("new_str", "insert_text"), _text("file_text", kind="write")),
        plain_kind="read",
    ),
    Family(
        "bash",
        (
            "bash",
            "shell",
            "local_shell",
            "exec_command",
            "run_shell_command",
            "run_in_terminal",
            "execute_command",
            "terminal",
        ),
        "bash",
        (),
        (*_texts("command", "cmd"), _text("command[]", join=" ")),
    ),
    Family("eval", ("eval",), "eval", (), _texts("code")),
    Family(
        "read",
        ("read", "read_file", "read_text_file", "read_media_file", "*_read_text_file", "*_read_file"),
        "read",
        _arguments("file_path", "filePath", "path", "absolute_path"),
        _texts(EVERY_STRING, "file_path", "filePath", "path", "absolute_path"),
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
        ("ls", "list", "list_directory", "list_directory_with_sizes", "directory_tree", "*_list_directory"),
        "ls",
        _arguments("path"),
        _texts(EVERY_STRING, "path"),
    ),
    Family("grep", ("grep",), "grep", _arguments("path"), _texts(EVERY_STRING, "path")),
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
        _arguments("path"),
        _texts(EVERY_STRING, "path"),
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

_KEYS = ("tools", "kind", "path", "text")


def _custom_family(number: int, row: Mapping[str, object]) -> Family:
    where = f"toolFamilies[{number}]"
    if not isinstance(row, Mapping):
        raise ToolFamilyError(f"{where}: expected a mapping with {', '.join(_KEYS)}, got {row!r}")
    for key in row:
        if key not in _KEYS:
            raise ToolFamilyError(f"{where}.{key}: unknown key; allowed are {', '.join(_KEYS)}")
    tools = _strings(row, "tools", where)
    if not tools:
        raise ToolFamilyError(f"{where}.tools: expected at least one tool name")
    kind = row.get("kind")
    if not isinstance(kind, str) or not kind.strip():
        raise ToolFamilyError(f"{where}.kind: expected a name such as 'edit' or 'write', got {kind!r}")
    texts = _strings(row, "text", where) if "text" in row else [EVERY_STRING]
    return Family(
        name=where,
        tools=tuple(tools),
        kind=kind.strip().lower(),
        paths=tuple(_pattern(text, f"{where}.path") for text in _strings(row, "path", where)),
        texts=tuple(
            TextArgument(None if text == EVERY_STRING else _pattern(text, f"{where}.text")) for text in texts
        ),
    )


def _strings(row: Mapping[str, object], key: str, where: str) -> list[str]:
    value = row.get(key, [])
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, Sequence):
        raise ToolFamilyError(f"{where}.{key}: expected a list of strings, got {value!r}")
    strings = [item for item in items if isinstance(item, str) and item.strip()]
    if len(strings) != len(items):
        raise ToolFamilyError(f"{where}.{key}: expected a list of strings that are not empty, got {value!r}")
    return strings


def _pattern(text: str, where: str) -> ArgumentPattern:
    try:
        return ArgumentPattern(text)
    except ValueError as error:
        raise ToolFamilyError(f"{where}: {error}") from None
