"""File globs with the semantics of Bun.Glob, and the paths that they are matched against.

wcmatch disagrees with Bun.Glob in corners that a flag cannot reach (`*` matching nothing, `{a}` and `{}`,
`**` through `.` segments, a double `!!`), so a glob is translated to a regular expression here.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from functools import lru_cache

import regex

_CONTROL = {"a": "a", "b": "\b", "n": "\n", "r": "\r", "t": "\t"}
"""Letters that a backslash turns into something else than themselves."""

_MAX_LENGTH = 1_024
_MAX_DEPTH = 32
_MAX_TRANSLATED = 65_536
_TIMEOUT = 0.05
"""Seconds for one path: many stars are slow on a path made for them. Such a path does not match."""
_DRIVE = re.compile(r"[A-Za-z]:/")
_RANGE = re.compile(r"(?:(-?\d{1,6})\.\.(-?\d{1,6})|([A-Za-z])\.\.([A-Za-z]))\Z")
_MAX_RANGE = 1_000


class GlobError(ValueError):
    """A glob that is too long or too deeply nested to be used."""


@dataclass(frozen=True, slots=True)
class Glob:
    """One compiled glob. Matching is case-sensitive and sees dotfiles; `*` does not cross `/`."""

    text: str
    pattern: regex.Pattern[str]
    negated: bool
    absolute: bool
    """Whether it names files by their absolute path, so that it reaches outside the project."""

    def matches(self, path: str) -> bool:
        """Whether the glob matches the whole of `path`, which uses `/` between segments."""
        try:
            found = self.pattern.match(path, timeout=_TIMEOUT) is not None
        except TimeoutError:
            return False
        return found is not self.negated


@lru_cache(maxsize=4_096)
def compile_glob(text: str) -> Glob:
    """Compile one glob. Every text is a glob; raises GlobError only beyond the limits on size."""
    if len(text) > _MAX_LENGTH:
        raise GlobError(f"glob is longer than {_MAX_LENGTH} characters")
    body, negated = text, False
    # `!(a|b)` is an extended pattern, not a negation.
    while body.startswith("!") and not body.startswith("!("):
        body, negated = body[1:], not negated
    pattern = regex.compile(_Translator(body).translate() + r"\Z", regex.DOTALL | regex.V0)
    return Glob(text, pattern, negated, absolute=body.startswith("/") or _DRIVE.match(body) is not None)


class _Translator:
    """Turns one glob, without leading `!`, into the source of a regular expression."""

    def __init__(self, glob: str) -> None:
        self._glob = glob
        self._written = 0

    def translate(self) -> str:
        return self._sequence(0, len(self._glob), segment_start=True, follow="", depth=0)

    def _sequence(self, start: int, end: int, segment_start: bool, follow: str, depth: int) -> str:
        """Translate glob[start:end], which is followed by the character `follow` ("" at the end of the glob).

        `segment_start`: whether the sequence begins right after a `/` or at the start of the path.
        """
        if depth > _MAX_DEPTH:
            raise GlobError(f"glob is nested deeper than {_MAX_DEPTH} levels")
        glob, out, at = self._glob, [], start
        while at < end:
            char = glob[at]
            following = at + 1
            piece: str | None = None
            if char in "@+?!*" and self._opens_group(at + 1, end):
                piece, following = self._extended(char, at + 1, end, segment_start, follow, depth)
            elif char == "*":
                following = self._run_of_stars(at, end)
                piece, following = self._stars(at, following, end, segment_start, follow)
            elif char == "?":
                piece = "[^/]"
            elif char == "\\" and at + 1 < end:
                piece, following = re.escape(_CONTROL.get(glob[at + 1], glob[at + 1])), at + 2
            elif char == "[":
                piece, following = self._class(at, end)
            elif char == "{":
                piece, following = self._braces(at, end, segment_start, follow, depth)
            if piece is None:
                piece, following = re.escape(char), at + 1
            out.append(piece)
            self._written += len(piece)
            if self._written > _MAX_TRANSLATED:
                raise GlobError(f"glob needs more than {_MAX_TRANSLATED} characters as a regular expression")
            segment_start = glob[following - 1] == "/" if following > at else segment_start
            at = following
        return "".join(out)

    def _run_of_stars(self, at: int, end: int) -> int:
        while at < end and self._glob[at] == "*":
            at += 1
        # The last star of `**(a|b)` belongs to the group.
        return at - 1 if self._opens_group(at, end) else at

    def _stars(self, at: int, after: int, end: int, segment_start: bool, follow: str) -> tuple[str, int]:
        glob = self._glob
        next_char = glob[after] if after < end else follow
        if after - at != 2 or not segment_start or next_char not in ("", "/"):
            return "[^/]*", after
        if next_char == "":
            return ".*", after
        if after == end:
            return "(?:[^/]*/)*[^/]*", after
        after += 1
        # What stands after `**/` is a segment of at least one character.
        return r"(?:[^/]*/)*(?!\Z)" if after < end else "(?:[^/]*/)+", after

    def _class(self, at: int, end: int) -> tuple[str | None, int]:
        glob, index = self._glob, at + 1
        negated = index < end and glob[index] in "!^"
        if negated:
            index += 1
        items: list[str] = []
        first = True
        while index < end and (first or glob[index] != "]"):
            low, index = self._class_char(index, end)
            first = False
            if index + 1 < end and glob[index] == "-" and glob[index + 1] != "]":
                high, index = self._class_char(index + 1, end)
                if low <= high:
                    items.append(f"{re.escape(low)}-{re.escape(high)}")
            else:
                items.append(re.escape(low))
        if index >= end:
            return None, at
        if not items:
            return ("." if negated else "(?!)"), index + 1
        return f"[{'^' if negated else ''}{''.join(items)}]", index + 1

    def _class_char(self, index: int, end: int) -> tuple[str, int]:
        char = self._glob[index]
        if char == "\\" and index + 1 < end:
            char = self._glob[index + 1]
            return _CONTROL.get(char, char), index + 2
        return char, index + 1

    def _opens_group(self, at: int, end: int) -> bool:
        return at < end and self._glob[at] == "(" and self._split(at, end, "(", ")", "|") is not None

    def _braces(
        self, at: int, end: int, segment_start: bool, follow: str, depth: int
    ) -> tuple[str | None, int]:
        split = self._split(at, end, "{", "}", ",")
        if split is None:
            return None, at
        parts, after = split
        if len(parts) == 1 and (expanded := _expand_range(self._glob[slice(*parts[0])])) is not None:
            return expanded, after
        return self._alternatives(parts, after, end, segment_start, follow, depth), after

    def _extended(
        self, kind: str, at: int, end: int, segment_start: bool, follow: str, depth: int
    ) -> tuple[str | None, int]:
        split = self._split(at, end, "(", ")", "|")
        if split is None:
            return None, at
        parts, after = split
        group = self._alternatives(parts, after, end, segment_start, follow, depth)
        if kind != "!":
            return group + {"@": "", "+": "+", "?": "?", "*": "*"}[kind], after
        rest = self._sequence(after, end, segment_start=False, follow=follow, depth=depth + 1)
        return rf"(?!{group}{rest}\Z)[^/]*", after

    def _alternatives(
        self, parts: list[tuple[int, int]], after: int, end: int, segment_start: bool, follow: str, depth: int
    ) -> str:
        next_char = self._glob[after] if after < end else follow
        alternatives = [
            self._sequence(start, stop, segment_start, next_char, depth + 1) for start, stop in parts
        ]
        return f"(?:{'|'.join(alternatives)})"

    def _split(
        self, at: int, end: int, opening: str, closing: str, separator: str
    ) -> tuple[list[tuple[int, int]], int] | None:
        """The parts of the group that opens at `at` and where the glob goes on; None if it never closes."""
        glob, index, nesting, start = self._glob, at + 1, 0, at + 1
        parts: list[tuple[int, int]] = []
        while index < end:
            char = glob[index]
            if char == "\\":
                index += 2
                continue
            if char == "[":
                index = self._class(index, end)[1] if self._class(index, end)[0] is not None else index + 1
                continue
            if char == opening:
                nesting += 1
            elif char == closing and nesting:
                nesting -= 1
            elif char == closing:
                return [*parts, (start, index)], index + 1
            elif char == separator and not nesting:
                parts.append((start, index))
                start = index + 1
            index += 1
        return None


def _expand_range(text: str) -> str | None:
    """`{1..3}` and `{a..c}`: the alternatives of a brace range, None when the text is none."""
    match = _RANGE.match(text)
    if match is None:
        return None
    if match[1] is not None:
        low, high = sorted((int(match[1]), int(match[2])))
        if high - low > _MAX_RANGE:
            raise GlobError(f"brace range {{{text}}} has more than {_MAX_RANGE} values")
        return f"(?:{'|'.join(str(value) for value in range(low, high + 1))})"
    low, high = sorted((ord(match[3]), ord(match[4])))
    return f"(?:{'|'.join(re.escape(chr(value)) for value in range(low, high + 1))})"


@dataclass(frozen=True, slots=True)
class PathNames:
    """The names under which one path of a tool call is offered to globs."""

    names: tuple[str, ...]
    outside: bool
    """Whether the path is known to be outside the project, where only absolute globs reach."""

    def match(self, glob: Glob) -> bool:
        """Whether one of the names matches. A negated glob needs one name that its body does not match."""
        if self.outside and not glob.absolute:
            return False
        return any(glob.matches(name) for name in self.names)


def path_names(path: str, project_root: str | None) -> PathNames:
    """The names of a path: relative to the project root when known, as written, and its base name."""
    written = path.replace("\\", "/")
    if project_root is None:
        return PathNames(_with_basename([written]), outside=False)
    root = posixpath.normpath(project_root.replace("\\", "/"))
    absolute = posixpath.normpath(written if _is_absolute(written) else posixpath.join(root, written))
    prefix = root.rstrip("/") + "/"
    if absolute != root and not absolute.startswith(prefix):
        return PathNames((absolute,), outside=True)
    relative = absolute[len(prefix) :]
    return PathNames(_with_basename([relative, written, absolute]), outside=False)


def _with_basename(names: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*names, names[0].rpartition("/")[2]]))


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or _DRIVE.match(path) is not None
