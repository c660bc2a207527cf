"""Explicit commands in an instruction: a verb at the start of a line and one rule's id or title.

Only an instruction is read for commands. A source that says "archive all rules" is a text like any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ttsr_proxy.library.model import LibraryRule

Verb: TypeAlias = Literal["PAUSE", "RESTORE", "ARCHIVE", "UPDATE", "REPLACE"]

_PAUSE = r"pause|disable|deactivate|suspend|pausiere|deaktiviere|暂停|停用"
_RESTORE = r"restore|resume|re-?enable|reactivate|unpause|reaktiviere|恢复|启用"
_ARCHIVE = r"archive|delete|remove|discard|recycle|archiviere|lösche|归档|删除"
_RULE = r"(?:(?:the\s+)?(?P<word>rule|regel)\s+|规则\s*)?"

_LINES: tuple[tuple[Verb, re.Pattern[str]], ...] = (
    (
        "ARCHIVE",
        re.compile(rf"(?i)move\s+{_RULE}(?P<target>.+?)\s+(?:in)?to\s+the\s+(?:recycle\s+bin|trash|bin)\.?"),
    ),
    (
        "UPDATE",
        re.compile(rf"(?i)(?:update|change|ändere)\s+{_RULE}(?P<target>[^:：]+?)\s*[:：]\s*(?P<text>.+)"),
    ),
    (
        "REPLACE",
        re.compile(
            rf"(?i)(?:replace|ersetze)\s+{_RULE}(?P<target>.+?)\s+(?:with|by|durch)\s*[:：]\s*(?P<text>.+)"
        ),
    ),
    ("PAUSE", re.compile(rf"(?i)(?:{_PAUSE})\s*{_RULE}(?P<target>.+)")),
    ("RESTORE", re.compile(rf"(?i)(?:{_RESTORE})\s*{_RULE}(?P<target>.+)")),
    ("ARCHIVE", re.compile(rf"(?i)(?:{_ARCHIVE})\s*{_RULE}(?P<target>.+)")),
)
_MARKER = re.compile(r"^\s*(?:[-*+]\s+|\d+[.)]\s+)?(?:please\s+|bitte\s+|请)?", re.IGNORECASE)
_ID_SHAPED = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")
_QUOTES = "`'\"“”„‚‘’"


@dataclass(frozen=True, slots=True)
class Command:
    """A command. `target` is a rule's id, or what was written when no rule is called that."""

    verb: Verb
    target: str
    known: bool
    text: str = ""
    """The new text, for UPDATE and REPLACE."""


def read_command(line: str, rules: Mapping[str, LibraryRule], archived: frozenset[str]) -> Command | None:
    """The command in a line, None if it is no command.

    Without the word "rule" a line that names no known id or title is a command only if its target looks like
    an id; "Remove debug output before you commit" is a constraint.
    """
    text = _MARKER.sub("", line, count=1).strip()
    for verb, pattern in _LINES:
        match = pattern.fullmatch(text)
        if match is None:
            continue
        written = match["target"].strip().rstrip(".!。").strip(_QUOTES).strip()
        new_text = match.groupdict().get("text") or ""
        target = _resolve(written, rules, archived)
        if target is not None:
            return Command(verb, target, True, new_text)
        if match["word"] or _ID_SHAPED.fullmatch(written):
            return Command(verb, written, False, new_text)
    return None


def _resolve(written: str, rules: Mapping[str, LibraryRule], archived: frozenset[str]) -> str | None:
    if written in rules or written in archived:
        return written
    titled = [name for name, rule in rules.items() if rule.title.casefold() == written.casefold()]
    return titled[0] if len(titled) == 1 else None
