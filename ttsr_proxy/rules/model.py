"""The canonical rule (reference, "Canonical rule shape")."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Self

from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.modes import ContextMode, InterruptMode, OnExhausted, RepeatMode
from ttsr_proxy.rules.frontmatter import read_document
from ttsr_proxy.rules.normalise import rule_fields
from ttsr_proxy.rules.repairs import decode

CATCH_ALL = ".*"
"""The condition that a file glob in `condition` stands for."""

_EXTENSION = re.compile(r"\.(?:md|mdc)$")
_LISTS = ("globs", "condition", "ast_condition", "scope", "agents")

_KEYS = {
    "globs": "globs",
    "always_apply": "alwaysApply",
    "description": "description",
    "condition": "condition",
    "ast_condition": "astCondition",
    "scope": "scope",
    "interrupt_mode": "interruptMode",
    "agents": "agents",
    "question": "question",
    "reminder": "reminder",
    "repeat_mode": "repeatMode",
    "repeat_gap": "repeatGap",
    "context_mode": "contextMode",
    "max_interrupts": "maxInterrupts",
    "on_exhausted": "onExhausted",
    "observe": "observe",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, whatever file format it came from. Its identity is `name`.

    List fields take any sequence of strings and are kept verbatim as tuples; `None` means that the author
    did not give the key. Shorthands and comma splitting happen in `from_markdown` only.
    """

    name: str
    path: str = ""
    content: str = ""
    globs: Sequence[str] | None = None
    always_apply: bool | None = None
    description: str | None = None
    condition: Sequence[str] | None = None
    ast_condition: Sequence[str] | None = None
    scope: Sequence[str] | None = None
    interrupt_mode: InterruptMode | None = None
    enabled: bool = True
    agents: Sequence[str] | None = None
    question: str | None = None
    reminder: str | None = None
    """Short text injected instead of the body; at most 1,024 bytes of UTF-8."""
    repeat_mode: RepeatMode | None = None
    repeat_gap: int | None = None
    context_mode: ContextMode | None = None
    max_interrupts: int | None = None
    on_exhausted: OnExhausted | None = None
    observe: bool | None = None
    """True: matches are only logged."""
    warnings: tuple[str, ...] = ()
    globs_key: str = "globs"
    """The frontmatter key that `globs` came from (`paths`, `applyTo`, ...)."""
    disabled_by: str | None = None
    """What in the rule's own file switches it off, in the author's words; goes with `enabled=False`."""

    def __post_init__(self) -> None:
        for field in _LISTS:
            value = getattr(self, field)
            if isinstance(value, str):
                raise TypeError(f"Rule.{field} takes a sequence of strings, not one string: {value!r}")
            if value is not None:
                object.__setattr__(self, field, tuple(value))

    @classmethod
    def from_markdown(cls, path: str | os.PathLike[str], text: str | bytes) -> Self:
        """Read a rule file. Never raises on content: what was repaired or ignored is in `warnings`.

        `path` is a file name or a path; the rule's name is the file name without `.md` or `.mdc`.
        """
        path = os.fspath(path)
        decoded, problems = decode(text)
        document = read_document(decoded)
        fields = rule_fields(document)
        fields["warnings"] = (*problems, *document.warnings, *fields.get("warnings", ()))
        return cls(name=rule_name(path), path=path, content=document.body, **fields)

    @property
    def reminder_text(self) -> str:
        """What a reminder injects: the short `reminder` if there is one, else the whole content."""
        return self.content if self.reminder is None else self.reminder

    def interrupt_budget(self, default: int) -> int:
        """How often this rule may interrupt one response.

        A rule that watches whole files by a glob in `condition` matches again on every attempt, so that it
        gets one interrupt unless its author says otherwise.
        """
        if self.max_interrupts is not None:
            return self.max_interrupts
        return min(default, 1) if CATCH_ALL in (self.condition or ()) else default

    def to_dict(self) -> JsonObject:
        """The rule as JSON with the reference's camelCase keys; absent ones left out.

        `path` is left out when it says no more than the file name does.
        """
        result: JsonObject = {"name": self.name}
        if PurePath(self.path).name != self.path:
            result["path"] = self.path
        result["content"] = self.content
        for field, key in _KEYS.items():
            value = getattr(self, field)
            if value is not None:
                result[key] = list(value) if field in _LISTS else value
        return result


def rule_name(path: str) -> str:
    """The name that a rule file gives its rule: the file name without `.md` or `.mdc`."""
    return _EXTENSION.sub("", re.split(r"[/\\]", path)[-1])
