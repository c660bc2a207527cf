"""Writes frontmatter that the rulebook's own reader gives back unchanged.

That reader keeps a backslash in double quotes that YAML has another meaning for (a `\\b` is meant for a
regular expression), so text goes into single quotes, where nothing is escaped, whenever it can.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_NOT_PLAIN = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))
# All but controls, line ends, lone surrogates, byte order marks and what is no character.
_ONE_LINE = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]*")


def write_frontmatter(values: Mapping[str, object], body: str) -> str:
    """A Markdown file with these keys (those that are None left out) and this body."""
    lines = [f"{key}: {_value(value)}" for key, value in values.items() if value is not None]
    return "\n".join(("---", *lines, "---", body)).rstrip("\n") + "\n"


def _value(value: object) -> str:
    match value:
        case str():
            return _text(value)
        case bool() | int() | float() | None:
            return json.dumps(value)
        case list() | tuple():
            return "[" + ", ".join(_value(item) for item in value) + "]"
        case Mapping():
            return "{" + ", ".join(f"{_text(str(key))}: {_value(item)}" for key, item in value.items()) + "}"
    raise TypeError(f"frontmatter cannot hold {type(value).__name__}")


def _text(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _NOT_PLAIN:
        return text
    if _ONE_LINE.fullmatch(text):
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char not in '"\\' and _ONE_LINE.fullmatch(char):
        return char
    return f"\\u{ord(char):04x}"
