"""Source text that a tool call runs, parsed: shell commands and scripts.

ast-grep brings tree-sitter's grammars. A parse blocks the interpreter, so its size and shape are bounded
here: the grammars take quadratic time for some constructs, such as long pipelines and deeply nested brackets.
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

MAX_SIGNS = 3000
"""Signs of one source text that mean something to its language: brackets, operators, for a shell line ends.

Text in here-documents and literals does not count; a literal is one sign."""

MAX_PAYLOADS = 1000
"""Payloads of one source text."""

MAX_PATHS = 100
"""Paths of one payload."""

HEREDOC = re.compile(r"<<-?[ \t]*[\"'\\]?([A-Za-z_][A-Za-z0-9_]*)")
"""The start of a here-document, with the word that ends it."""

_SIGN = re.compile(r"[^\w\s./,:%+-]|\n")
_SCRIPT_SIGN = re.compile(r"[^\w\s]")
_QUOTED = re.compile(r"'[^']*'")
_LITERAL = re.compile(
    r""" "(?:[^"\\\n]|\\.)*+" | '(?:[^'\\\n]|\\.)*+' | `(?:[^`\\]|\\.)*+` """, re.VERBOSE | re.DOTALL
)
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
    if len(source) > MAX_SOURCE or _nesting(source) > MAX_NESTING:
        return None
    if (_command_signs if language == "bash" else _script_signs)(source) > MAX_SIGNS:
        return None
    try:
        return SgRoot(source, language).root()
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException:  # ast-grep's panics are of no importable type: no tree, as for what is too long.
        return None


def _command_signs(command: str) -> int:
    code: list[str] = []
    until = ""
    for line in command.split("\n"):
        if until:
            until = "" if line.strip() == until else until
            continue
        code.append(line)
        starts = HEREDOC.findall(line)
        until = starts[-1] if starts else ""
    return len(_SIGN.findall(_QUOTED.sub("'", "\n".join(code))))


def _script_signs(script: str) -> int:
    return len(_SCRIPT_SIGN.findall(_LITERAL.sub("$", script))) + script.count("${")


def _nesting(source: str) -> int:
    depth = deepest = 0
    for bracket in _BRACKET.finditer(source):
        if bracket.group() in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif depth:
            depth -= 1
    return deepest
