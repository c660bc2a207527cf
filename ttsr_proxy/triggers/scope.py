"""Which streams a rule watches: the tokens of its `scope`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ttsr_proxy.triggers.globs import Glob, GlobError, PathNames, compile_glob
from ttsr_proxy.triggers.match import Source

_TOKEN = re.compile(
    r"(?:(?P<any>tool)(?::(?P<tool>[a-z0-9_-]+))?|(?P<bare>[a-z0-9_-]+))(?:\((?P<glob>[^)]+)\))?\Z",
    re.IGNORECASE | re.ASCII,
)
_ANY_TOOL = ("tool", "toolcall")


@dataclass(frozen=True, slots=True)
class ToolScope:
    """One tool token: a tool's own name or its kind in lower case, and a path glob; None means any."""

    tool: str | None
    glob: Glob | None

    def reaches(self, tool: str | None, kind: str | None) -> bool:
        """Whether the token speaks of this tool, whatever its paths. Names are in lower case."""
        return self.tool is None or self.tool == tool or (kind is not None and self.tool == kind)


@dataclass(frozen=True, slots=True)
class Scope:
    """The streams that a rule watches."""

    text: bool
    thinking: bool
    any_tool: bool
    tools: tuple[ToolScope, ...] = ()

    @property
    def reachable(self) -> bool:
        """Whether any stream is left; a rule without one can never match."""
        return self.text or self.thinking or self.any_tool or bool(self.tools)

    def reaches(self, source: Source, tool: str | None, kind: str | None) -> bool:
        """Whether a block of this source and tool can be in scope, for some paths."""
        if source != "tool":
            return self.text if source == "text" else self.thinking
        return self.any_tool or any(token.reaches(fold(tool), fold(kind)) for token in self.tools)

    def matches(self, source: Source, tool: str | None, kind: str | None, paths: Sequence[PathNames]) -> bool:
        """Whether a block is in scope. A token with a glob needs one path that the glob matches."""
        if source != "tool" or self.any_tool:
            return self.reaches(source, tool, kind)
        own, family = fold(tool), fold(kind)
        return any(
            token.reaches(own, family)
            and (token.glob is None or any(path.match(token.glob) for path in paths))
            for token in self.tools
        )


DEFAULT_SCOPE = Scope(text=True, thinking=False, any_tool=True)
"""What a rule without `scope` watches: text and every tool call, not thinking."""


def fold(name: str | None) -> str | None:
    """The form in which tool names are compared."""
    return None if name is None else name.strip().lower()


def parse_scope(tokens: Sequence[str] | None) -> tuple[Scope, tuple[str, ...]]:
    """Read scope tokens: the scope, and a warning for each token that is not understood and left out.

    Tokens: `text`, `thinking`, `tool` (also `toolcall`), `tool:NAME`, `NAME`, each tool token optionally with
    a path glob in parentheses. No tokens at all mean `DEFAULT_SCOPE`.
    """
    if not tokens:
        return DEFAULT_SCOPE, ()
    text = thinking = any_tool = False
    tools: list[ToolScope] = []
    warnings: list[str] = []
    for written in tokens:
        token = written.strip()
        folded = token.lower()
        if folded == "text":
            text = True
        elif folded == "thinking":
            thinking = True
        elif folded in _ANY_TOOL:
            any_tool = True
        elif token:
            parsed = _parse_tool(token)
            if isinstance(parsed, str):
                warnings.append(f"scope token {written!r} is ignored: {parsed}")
            elif parsed.tool is None and parsed.glob is None:
                any_tool = True
            else:
                tools.append(parsed)
    return Scope(text, thinking, any_tool, tuple(tools)), tuple(warnings)


def _parse_tool(token: str) -> ToolScope | str:
    match = _TOKEN.match(token)
    if match is None:
        return "expected text, thinking, tool, tool:NAME, NAME or one of the last three with (GLOB)"
    name = match["tool"] or match["bare"]
    glob = (match["glob"] or "").strip()
    try:
        return ToolScope(name.lower() if name else None, compile_glob(glob) if glob else None)
    except GlobError as error:
        return str(error)
