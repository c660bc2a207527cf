"""Which tools do what: the table that maps a tool's name and arguments to a kind, a path and added text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ttsr_proxy.toolcalls.arguments import ArgumentPattern, wildcard
from ttsr_proxy.toolcalls.built_in import BUILT_IN, UNKNOWN
from ttsr_proxy.toolcalls.family import EVERY_STRING, Family, TextArgument
from ttsr_proxy.toolcalls.syntax import Form


class ToolFamilyError(ValueError):
    """A `toolFamilies` row of the configuration that cannot be used; the message names its key."""


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
        return cls(BUILT_IN)

    def with_custom(self, rows: Sequence[Mapping[str, object]]) -> FamilyTable:
        """This table with rows of the configuration before its own.

        A row has `tools` and `kind`, and may have `path` and, by how they are read, `text`, `patch`,
        `searchReplace` and `command` (lists of argument patterns; without any of these four, every string
        counts). Raises ToolFamilyError, which names the row, the key and what is allowed.
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


_FORMS: dict[str, Form] = {
    "text": "text",
    "patch": "patch",
    "searchReplace": "search-replace",
    "command": "shell",
}
"""Keys of a row that hold text arguments, and how such a text is read."""

_KEYS = ("tools", "kind", "path", *_FORMS)


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
    texts = tuple(
        TextArgument(None if text == EVERY_STRING else _pattern(text, f"{where}.{key}"), form)
        for key, form in _FORMS.items()
        for text in _strings(row, key, where)
    )
    return Family(
        name=where,
        tools=tuple(tools),
        kind=kind.strip().lower(),
        paths=tuple(_pattern(text, f"{where}.path") for text in _strings(row, "path", where)),
        texts=texts if any(key in row for key in _FORMS) else (TextArgument(None),),
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
