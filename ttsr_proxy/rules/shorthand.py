"""The short forms of the frontmatter: comma lists, file globs as conditions, regex literals."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ttsr_proxy.rules.repairs import WHITESPACE

_OPENING, _CLOSING = "([{", ")]}"
_REGEX_SYNTAX = re.compile(r"[\\^$+|()]")
_GLOB_SYNTAX = re.compile(r"[?*\[\]{}]")
_EXTENSION_GLOB = re.compile(r"\*\.[^\s/]+")
_REGEX_LITERAL = re.compile(
    r"/(?P<pattern>(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)/(?P<flags>[dgimsuvy]+)"
)

SCOPED_TOOLS = ("edit", "write")
"""The tools that a file glob in `condition` is about."""


def split_list(text: str) -> list[str]:
    """The parts of a comma list, trimmed, empty ones dropped.

    A comma inside quotes, braces, brackets or parentheses does not separate.
    """
    parts: list[str] = []
    depth = dict.fromkeys(_OPENING, 0)
    quote = ""
    start = 0
    for index, char in enumerate(text):
        if quote:
            if char == quote and text[index - 1] != "\\":
                quote = ""
        elif char in "\"'":
            quote = char
        elif char in _OPENING:
            depth[char] += 1
        elif char in _CLOSING:
            opening = _OPENING[_CLOSING.index(char)]
            depth[opening] = max(0, depth[opening] - 1)
        elif char == "," and not any(depth.values()):
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return [part for part in (part.strip(WHITESPACE) for part in parts) if part]


def is_file_glob(condition: str) -> bool:
    """Whether a condition is meant as a file glob: glob syntax, no regex syntax, and a path or `*.ext`."""
    if _REGEX_SYNTAX.search(condition) or not _GLOB_SYNTAX.search(condition):
        return False
    return "/" in condition or _EXTENSION_GLOB.fullmatch(condition) is not None


def file_globs(condition: str) -> list[str]:
    """The file globs that a condition is the shorthand for; none if it is a regular expression."""
    if not is_file_glob(condition):
        return []
    parts = split_list(condition)
    return parts if all(is_file_glob(part) for part in parts) else [condition]


def tool_scopes(globs: Iterable[str]) -> list[str]:
    """The scope entries that limit a rule to edits and writes of these files."""
    return [f"tool:{tool}({glob})" for glob in globs for tool in SCOPED_TOOLS]


def from_regex_literal(condition: str) -> str | None:
    """The condition that a JavaScript regex literal with flags (`/any/i`) stands for, else None.

    `/x/` without flags is left alone: it is a plausible condition about paths.
    """
    match = _REGEX_LITERAL.fullmatch(condition)
    if match is None:
        return None
    flags = "".join(flag for flag in "ims" if flag in match["flags"])
    return f"(?{flags}){match['pattern']}" if flags else match["pattern"]


def unique(values: Iterable[str]) -> list[str]:
    """The values in order, each once."""
    return list(dict.fromkeys(values))
