"""What the linter says: one thing about one place in one rule file, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ttsr_proxy.config import TtsrSettings
from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.triggers.compiled import CompiledRule

Level: TypeAlias = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """An error makes the rule, or a part of it, not do what its author wrote; a warning may be meant so."""

    level: Level
    code: str
    """A stable name of the kind of finding."""
    path: str
    line: int | None
    """In the rule file, from 1; None where the file as a whole is meant."""
    key: str | None
    """The frontmatter key."""
    what: str
    advice: str

    def to_dict(self) -> JsonObject:
        """The finding as JSON."""
        return {
            "level": self.level,
            "code": self.code,
            "path": self.path,
            "line": self.line,
            "key": self.key,
            "what": self.what,
            "advice": self.advice,
        }


@dataclass(frozen=True, slots=True)
class Subject:
    """One rule under the linter: as it was read and, if it watches the stream, compiled."""

    rule: Rule
    compiled: CompiledRule | None
    """None when it has no condition, or none that can be used."""
    lines: Mapping[str, int]
    """On which line of the file each key stands."""
    ttsr: TtsrSettings = field(default_factory=TtsrSettings)
    tools: frozenset[str] = frozenset()
    """Names and kinds of the tools that are known, in lower case; `*` in a name stands for any characters."""

    def finding(self, level: Level, code: str, key: str | None, what: str, advice: str) -> Finding:
        """A finding about a key of this rule, or about the whole file."""
        line = self.lines.get(key) if key else None
        return Finding(level, code, self.rule.path or self.rule.name, line, key, what, advice)

    @property
    def condition_key(self) -> str:
        """The key under which this file has its condition."""
        return next(
            (key for key in ("condition", "ttsr_trigger", "ttsrTrigger") if key in self.lines), "condition"
        )

    @property
    def watches_prose(self) -> bool:
        """Whether what the model says or thinks can match."""
        compiled = self.compiled
        return compiled is not None and any(
            compiled.reaches(source, None, None) for source in ("text", "thinking")
        )
