"""What a sed script would add to a file: replacements and the texts of `a`, `i` and `c`, never patterns."""

from __future__ import annotations

import re
from typing import Final

_ADDRESS: Final = re.compile(
    r"[\s;{}!]*+(?:\d+(?:~\d+)?|\$|/(?:\\.|[^/\\\n])*+/[IM]*+|\\(?P<mark>[^\\\n])(?:\\.|(?!(?P=mark))[^\\\n])*+(?P=mark)[IM]*+)?"
    r"(?:\s*+,\s*+(?:[+~]?\d+|\$|/(?:\\.|[^/\\\n])*+/[IM]*+))?[\s!]*+",
    re.DOTALL,
)
_LINE: Final = re.compile(r"(?:\\.|[^\\\n])*+", re.DOTALL)
_TO_NEXT: Final = re.compile(r"[^;\n]*+")
_SPACE: Final = re.compile(r"[ \t]*+\\?\n?[ \t]*+")
_GROUP: Final = re.compile(r"\\(.)", re.DOTALL)


def added_by_sed(script: str) -> tuple[str, ...]:
    """The texts that the script adds, one for each of its commands that adds any; linear, never raises."""
    texts: list[str] = []
    at = 0
    while at < len(script):
        address = _ADDRESS.match(script, at)
        at = address.end() if address else at
        command = script[at : at + 1]
        at += 1
        if command in ("s", "y") and at < len(script):
            at = _substitution(script, at, texts if command == "s" else [])
        elif command and command in "aic":
            space = _SPACE.match(script, at)
            line = _LINE.match(script, space.end() if space else at)
            if line:
                texts.append(_GROUP.sub(r"\1", line.group()))
                at = line.end()
        elif command == "#":
            at = _end_of_line(script, at)
        else:
            rest = _TO_NEXT.match(script, at)
            at = rest.end() if rest and command not in "{}" else at
    return tuple(texts)


def _substitution(script: str, at: int, texts: list[str]) -> int:
    """`s/pattern/replacement/flags`; `at` is at the first delimiter."""
    delimiter = script[at]
    parts: list[str] = []
    piece: list[str] = []
    at += 1
    while at < len(script) and len(parts) < 2:
        character = script[at]
        if character == "\\" and at + 1 < len(script):
            following = script[at + 1]
            piece.append(_escaped(following, delimiter) if parts else "")
            at += 2
        elif character == delimiter:
            parts.append("".join(piece))
            piece.clear()
            at += 1
        else:
            piece.append(character if parts else "")
            at += 1
    if len(parts) == 1 and piece:
        # Not closed: an error for sed, but text that was meant to be added.
        parts.append("".join(piece))
    if len(parts) == 2:
        texts.append(parts[1])
    flags = _TO_NEXT.match(script, at)
    return flags.end() if flags else at


def _escaped(character: str, delimiter: str) -> str:
    if character == delimiter or not character.isalnum():
        return character
    return {"n": "\n", "t": "\t"}.get(character, "\\" + character)


def _end_of_line(script: str, at: int) -> int:
    end = script.find("\n", at)
    return len(script) if end < 0 else end
