"""Findings about the file: what reading it repaired, ignored or could not use.

Reading says it in words (`Rule.warnings`); the table says how serious each is and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ttsr_proxy.triggers.lint.finding import Finding, Level, Subject

_WARNING = re.compile(r"(?:line (?P<line>\d+): )?(?:`(?P<key>[\w-]+)`: )?(?P<what>.*)", re.DOTALL)


class _Kind(NamedTuple):
    saying: str
    """A regular expression for the warnings of this kind."""
    level: Level
    code: str
    advice: str


_KINDS = (
    _Kind(r"not a key of rule files", "error", "unknown-key", "Correct the key's name, or remove it."),
    _Kind(r"by a YAML comment", "error", "cut-by-comment", "Put the whole value in single quotes."),
    _Kind(
        r"in double quotes was read as it stands", "error", "double-quoted-escape",
        r"Use single quotes: other tools read \b in double quotes as a backspace character.",
    ),
    _Kind(r"brackets make a list", "error", "brackets-as-list", "Put the condition in single quotes."),
    _Kind(r"bytes.*are allowed; the body is used", "error", "reminder-too-long", "Shorten the reminder."),
    _Kind(r"reminder|empty; the body", "warning", "empty-reminder", "Write a reminder, or remove the key."),
    _Kind(r"never closed", "error", "frontmatter-not-closed", "Add a line `---` after the last key."),
    _Kind(
        r"must be at the start|second frontmatter", "error", "frontmatter-misplaced",
        "Keep one frontmatter block, on the first line of the file.",
    ),
    _Kind(
        r"must be one of|must be true|must be a whole|not text", "error", "wrong-value",
        "Write a value that is allowed; the key counts as absent until then.",
    ),
    _Kind(r"given twice|ignored, since", "error", "key-given-twice", "Keep one of them."),
    _Kind(
        r"not valid YAML|not a `key: value` line|no `key: value` lines", "warning", "broken-yaml",
        "Quote the value; other tools drop the whole frontmatter.",
    ),
    _Kind(r"not UTF-8|NUL|UTF-16|UTF-32|byte order mark|CR or CRLF", "warning", "encoding",
          "Save the file as plain UTF-8 with LF line ends."),
    _Kind(r"", "warning", "repaired", "Write it as it was read; other tools may not repair it."),
)  # fmt: skip


def check_reading(subject: Subject) -> Iterator[Finding]:
    """What was said when the file was read."""
    for warning in subject.rule.warnings:
        match = _WARNING.fullmatch(warning)
        if match is None:
            continue
        kind = next(kind for kind in _KINDS if re.search(kind.saying, match["what"]))
        line, key, what = match["line"], match["key"], match["what"]
        path = subject.rule.path or subject.rule.name
        yield Finding(kind.level, kind.code, path, int(line) if line else None, key, what, kind.advice)
