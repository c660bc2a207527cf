"""Structural conditions: ast-grep patterns over the complete text of one file that a tool call would write.

`search` is a pure function of its arguments, and `AstCheck` carries them, so that a worker process can run
it: ast-grep never releases the interpreter lock.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

from ast_grep_py import Rule, SgNode, SgRoot

MAX_PATTERN = 10_000
"""Characters of one pattern."""

MAX_NESTING = 500
"""Open brackets within each other. ast-grep overflows its stack, and ends the process, far beyond this."""

MAX_SOURCE = 256 * 1024
"""Characters of one text. Parsing time grows with it; a longer text is reported as not inspected."""

LANGUAGES: dict[str, str] = {
    extension: language
    for language, extensions in {
        "bash": "sh bash bats zsh ksh command ebuild eclass",
        "c": "c h",
        "cpp": "cc cpp cxx c++ hh hpp hxx h++ cu ino",
        "csharp": "cs",
        "css": "css",
        "elixir": "ex exs",
        "go": "go",
        "haskell": "hs",
        "hcl": "hcl tf tfvars",
        "html": "html htm xhtml",
        "java": "java",
        "javascript": "js jsx cjs mjs",
        "json": "json",
        "kotlin": "kt kts ktm",
        "lua": "lua",
        "markdown": "md markdown",
        "nix": "nix",
        "php": "php",
        "python": "py pyi py3 bzl",
        "ruby": "rb rbw gemspec",
        "rust": "rs",
        "scala": "scala sc sbt",
        "solidity": "sol",
        "swift": "swift",
        "tsx": "tsx",
        "typescript": "ts mts cts",
        "yaml": "yaml yml",
    }.items()
    for extension in extensions.split()
}
"""ast-grep's language for each file extension, in lower case."""

_WORD = re.compile(r"(?<![\w$])[^\W\d]\w{2,}")
_METAVARIABLE = re.compile(r"\$(?:\$\$)?[A-Z_][A-Z0-9_]*\Z|\$\$\$\Z")
_SURROGATES = re.compile("[\ud800-\udfff]")
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


class AstPatternError(ValueError):
    """A pattern that ast-grep must not be given."""


@dataclass(frozen=True, slots=True)
class AstHit:
    """Where a pattern matches first. Offsets count characters of the text."""

    pattern: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class AstCheck:
    """One search, ready to be sent to a worker process."""

    language: str
    text: str
    patterns: tuple[str, ...]

    def run(self) -> tuple[AstHit, ...]:
        """Search in this thread; see `search`."""
        return search(self.language, self.text, self.patterns)


def language_of(paths: Iterable[str]) -> str | None:
    """The language of the first path that has a file extension; None when ast-grep does not know it."""
    for path in paths:
        extension = posixpath.splitext(path.replace("\\", "/"))[1]
        if len(extension) > 1:
            return LANGUAGES.get(extension[1:].lower())
    return None


def check_pattern(pattern: str) -> str:
    """The pattern without surrounding white space; raises AstPatternError when it is empty or beyond limits.

    Whether a pattern means anything depends on the language of the file, see `usable`.
    """
    trimmed = pattern.strip()
    if not trimmed:
        raise AstPatternError("the pattern is empty")
    if len(trimmed) > MAX_PATTERN:
        raise AstPatternError(f"the pattern is longer than {MAX_PATTERN} characters")
    depth = deepest = 0
    for char in trimmed:
        if char in _OPENING:
            depth += 1
            deepest = max(deepest, depth)
        elif char in _CLOSING:
            depth -= 1
    if deepest > MAX_NESTING:
        raise AstPatternError(f"the pattern nests brackets deeper than {MAX_NESTING} levels")
    return trimmed


@lru_cache(maxsize=8_192)
def usable(language: str, pattern: str) -> bool:
    """Whether ast-grep can read the pattern as a piece of code in this language."""
    if _METAVARIABLE.match(pattern):
        return True
    try:
        with _contained_panics():
            SgRoot("", language).root().find(pattern=_encodable(pattern))
    except AstPatternError:
        return False
    return True


@lru_cache(maxsize=8_192)
def required_word(pattern: str) -> str | None:
    """A word that every text with a match must contain, None when the pattern has none."""
    words: list[str] = _WORD.findall(pattern)
    return max(words, key=len, default=None)


def may_match(pattern: str, text: str) -> bool:
    """Whether the text has the word that the pattern needs; cheap, never wrongly False."""
    word = required_word(pattern)
    return word is None or word in text


def search(language: str, text: str, patterns: Sequence[str]) -> tuple[AstHit, ...]:
    """The first match of each pattern that matches, in the order of the patterns.

    Patterns must have passed `check_pattern`. One that is not code in this language never matches, and
    neither does one on which ast-grep fails. Lone surrogates are searched as U+FFFD.
    """
    wanted = [pattern for pattern in dict.fromkeys(patterns) if usable(language, pattern)]
    if not wanted:
        return ()
    try:
        with _contained_panics():
            root = SgRoot(_encodable(text), language).root()
    except AstPatternError:
        return ()
    # One pass for all patterns, since most texts match none of them.
    plain = [pattern for pattern in wanted if not _METAVARIABLE.match(pattern)]
    if len(plain) == len(wanted) > 1 and not _finds_any(root, plain):
        return ()
    return tuple(hit for pattern in wanted if (hit := _first(root, pattern)) is not None)


def every_hit(language: str, text: str, patterns: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
    """All matches of each pattern that has one, as start and end in characters; otherwise as `search`."""
    hits: dict[str, list[tuple[int, int]]] = {}
    wanted = [pattern for pattern in dict.fromkeys(patterns) if usable(language, pattern)]
    if not wanted:
        return hits
    try:
        with _contained_panics():
            root = SgRoot(_encodable(text), language).root()
    except AstPatternError:
        return hits
    for pattern in wanted:
        try:
            with _contained_panics():
                whole = _METAVARIABLE.match(pattern)
                found = [root] if whole else root.find_all(pattern=_encodable(pattern))
        except AstPatternError:
            continue
        spans = [node.range() for node in found]
        if spans:
            hits[pattern] = [(span.start.index, span.end.index) for span in spans]
    return hits


def _finds_any(root: SgNode, patterns: Sequence[str]) -> bool:
    rules: list[Rule] = [{"pattern": _encodable(pattern)} for pattern in patterns]
    try:
        with _contained_panics():
            return root.find(any=rules) is not None
    except AstPatternError:
        return True


def _first(root: SgNode, pattern: str) -> AstHit | None:
    try:
        with _contained_panics():
            # ast-grep refuses a pattern that is one metavariable as a rule; its meaning is "any node".
            found = root if _METAVARIABLE.match(pattern) else root.find(pattern=_encodable(pattern))
    except AstPatternError:
        return None
    if found is None:
        return None
    span = found.range()
    return AstHit(pattern, span.start.index, span.end.index)


@contextmanager
def _contained_panics() -> Iterator[None]:
    """Turn what ast-grep raises into AstPatternError. Its panics are BaseExceptions of no importable type."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise AstPatternError(str(error).partition("\n")[0]) from error


def _encodable(text: str) -> str:
    """The text with lone surrogates replaced one for one, which ast-grep cannot encode."""
    return _SURROGATES.sub("\ufffd", text)
