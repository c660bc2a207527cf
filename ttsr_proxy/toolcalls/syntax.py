"""Source text that a tool call runs, parsed: shell commands and scripts.

ast-grep brings tree-sitter's grammars. A parse blocks the interpreter, so its size and shape are bounded
here: the grammars take quadratic time for long pipelines and deeply nested brackets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ast_grep_py import SgNode, SgRoot

Form: TypeAlias = Literal["text", "patch", "search-replace", "shell", "javascript"]
"""How a text says what it adds: as it stands, or in a notation that has to be read first."""

MAX_SOURCE = 256 * 1024
"""Characters of one source text; nothing is looked for in a longer one."""

MAX_NESTING = 200
"""Brackets within each other."""

MAX_PIPES = 1000
"""Pipe signs in one source text, wherever they stand."""

MAX_PAYLOADS = 1000
"""Payloads of one source text."""

MAX_PATHS = 100
"""Paths of one payload."""

_BRACKET = re.compile(r"[(\[{]|[)\]}]")


@dataclass(frozen=True, slots=True)
class Payload:
    """What a command or a script would add to a file, or run: a view of `kind` once `form` is read."""

    kind: str
    form: Form
    paths: tuple[str, ...]
    """Empty where the form itself names the files, and for commands."""
    text: str


class Payloads:
    """The payloads of one source text, up to a size: few words can write one text into many files."""

    __slots__ = ("_room", "found")

    def __init__(self) -> None:
        self.found: list[Payload] = []
        self._room = 4 * MAX_SOURCE

    def add(self, kind: str, form: Form, paths: tuple[str, ...], text: str) -> None:
        """One more, where there is room for it."""
        self._room -= len(text)
        if self._room >= 0 and len(self.found) < MAX_PAYLOADS:
            self.found.append(Payload(kind, form, paths[:MAX_PATHS], text))


def parse(source: str, language: Literal["bash", "javascript"]) -> SgNode | None:
    """The root of the syntax tree; None for what is beyond the bounds. Wrong syntax has a tree, too."""
    if len(source) > MAX_SOURCE or source.count("|") > MAX_PIPES or _nesting(source) > MAX_NESTING:
        return None
    try:
        return SgRoot(source, language).root()
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException:  # ast-grep's panics are of no importable type: no tree, as for what is too long.
        return None


def _nesting(source: str) -> int:
    depth = deepest = 0
    for bracket in _BRACKET.finditer(source):
        if bracket.group() in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif depth:
            depth -= 1
    return deepest
