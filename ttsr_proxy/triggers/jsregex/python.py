"""Conditions that are Python's regular expressions and not JavaScript's.

A condition counts as Python only if it uses a construct that exists in Python alone *and* Python's own `re`
compiles it; a plain mistake stays a mistake. Named groups and comments are a matter of spelling: they are
respelled and the rest is read as JavaScript. Anything else (atomic groups, possessive quantifiers,
conditionals, verbose mode) is given to the engine as it stands, with Python's meaning throughout.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Final

from ttsr_proxy.triggers.jsregex.measure import copies

_TOKEN: Final = re.compile(
    r"""
      (?P<escape>  \\. )
    | (?P<class>   \[ \^? \]? (?: \\. | [^\\\]] )* \] )
    | (?P<comment> \(\?\# [^)]* \) )
    | (?P<named>   \(\?P< (?P<name> \w+ ) > )
    | (?P<backref> \(\?P= (?P<referred> \w+ ) \) )
    | (?P<other>   \(\?> | \(\?\( )
    | (?P<flags>   \(\? (?: [aiLmsux]*[aLux][aiLmsux]* (?:-[imsx]+)? [:)] | [imsx]*-[imsx]*x[imsx]* : ) )
    | (?P<count>   \{ (?: \d+ (?:,\d*)? | ,\d+ ) \} )
    | (?P<char>    . )
    """,
    re.VERBOSE | re.DOTALL,
)
_POSSESSIVE: Final = frozenset("*+?")
# JavaScript reads these as plain letters, and whoever writes Python's groups means Python's anchors.
_ANCHORS: Final = frozenset({r"\A", r"\Z"})
_VERBOSE: Final = re.compile(r"\(\?[aiLmsu]*x[aiLmsux]*[:)]")
_VERBOSE_COMMENT: Final = re.compile(r"(?<!\\)#[^\n]*")


def is_python(pattern: str) -> bool:
    """Whether a condition that is not JavaScript is meant as, and is, Python."""
    if not any(_is_python_only(kind, text, before) for kind, text, before in _tokens(pattern)):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def respelled(pattern: str) -> str | None:
    """The condition in JavaScript's spelling, if spelling is all that sets it apart."""
    parts: list[str] = []
    for kind, text, before in _tokens(pattern):
        match kind:
            case "named":
                parts.append(text.replace("(?P<", "(?<", 1))
            case "backref":
                parts.append(f"\\k<{text[4:-1]}>")
            case "comment":
                continue
            case "class" if text.startswith(("[]", "[^]")):
                return None
            case "escape" if text in _ANCHORS:
                return None
            case "count" if text.startswith("{,"):
                return None
            case _ if _is_python_only(kind, text, before):
                return None
            case _:
                parts.append(text)
    return "".join(parts)


def for_engine(pattern: str) -> str:
    """The condition for the `regex` package, whose own extensions mean something else to Python.

    An unusual `{...}` would be fuzzy matching, and `[[:alpha:]]` a POSIX class.
    """
    if _VERBOSE.search(pattern):
        # Comments may hold unbalanced brackets.
        pattern = _VERBOSE_COMMENT.sub("", pattern)
    parts: list[str] = []
    for kind, text, _ in _tokens(pattern):
        if kind == "class":
            parts.append("[" + re.sub(r"(\\.)|\[", lambda m: m[1] or r"\[", text[1:], flags=re.DOTALL))
        else:
            parts.append(r"\{" if kind == "char" and text == "{" else text)
    return "".join(parts)


def size(pattern: str) -> int:
    """The parts of a balanced pattern when loops are written out, as `measure.size` counts them."""
    open_groups = [0]
    last = 0
    for kind, text, before in _tokens(pattern):
        if kind == "named" or (kind in ("char", "other", "flags") and text[0] == "(" and text[-1] != ")"):
            open_groups.append(0)
        elif kind == "char" and text == ")" and len(open_groups) > 1:
            last = 1 + open_groups.pop()
            open_groups[-1] += last
        elif kind == "count" or (kind == "char" and text == "+" and not before):
            open_groups[-1] += last * (_copies(text) - 1)
        else:
            last = 1
            open_groups[-1] += last
    return sum(open_groups)


def _copies(quantifier: str) -> int:
    if quantifier == "+":
        return copies(1, None)
    low, comma, high = quantifier[1:-1].partition(",")
    return copies(int(low or 0), int(high) if high else None if comma else int(low))


def _tokens(pattern: str) -> Iterator[tuple[str, str, str]]:
    """The kind and text of each token, and the kind of quantifier directly before it, if one is."""
    before = ""
    for match in _TOKEN.finditer(pattern):
        kind = match.lastgroup or ""
        kind = {"name": "named", "referred": "backref"}.get(kind, kind)
        text = match[0]
        yield kind, text, before
        quantifier = not before and (kind == "count" or (kind == "char" and text in _POSSESSIVE))
        before = text if quantifier else ""


def _is_python_only(kind: str, text: str, before: str) -> bool:
    return kind in ("comment", "named", "backref", "other", "flags") or bool(
        kind == "char" and text == "+" and before
    )
