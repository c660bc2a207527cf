"""Splits a rule file into its metadata and its body (reference, "Frontmatter parsing behavior").

Beyond the reference, blank lines and HTML comments before the opening `---` are skipped, and a horizontal
rule is not taken for frontmatter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ttsr_proxy.rules.metadata import Metadata, camel_case, is_known_key, parse_metadata
from ttsr_proxy.rules.repairs import WHITESPACE, strip_comments

_BEFORE = re.compile(r"(?s)(?:\s|<!--.*?-->)*")
_OPENING = re.compile(r"---(?!-)")
_COMMENT_LINE = re.compile(r"(?m)^[ \t]*<!--.*-->[ \t]*$")
_KEY_LINE = re.compile(r"[ \t]*\n[\w-]+:(?:\s|$)")
_KEY = re.compile(r"(?m)^([\w-]+):")
_LATER_BLOCK = re.compile(r"(?m)^---[ \t]*\n((?:(?!---).*\n)*)---[ \t]*$")


@dataclass(frozen=True, slots=True)
class Document:
    """A rule file, taken apart. `lines` says on which line of the file a key stands."""

    metadata: Mapping[str, object]
    lines: Mapping[str, int]
    body: str
    warnings: tuple[str, ...] = ()


def read_document(text: str) -> Document:
    """Take a rule file's text (LF line ends) apart; never raises.

    Without frontmatter the whole text is the body.
    """
    before = _BEFORE.match(text)
    start = before.end() if before and _OPENING.match(text, before.end()) else 0
    if not _OPENING.match(text, start):
        return _body_only(text, _overlooked(text))
    end = text.find("\n---", start + 3)
    if end < 0:
        missing = "the frontmatter is never closed by a `---` line; the whole file is body"
        return _body_only(text, [missing] if _KEY_LINE.match(text, start + 3) else [])
    block = text[start + 4 : end]
    metadata = parse_metadata(_COMMENT_LINE.sub("", block), first_line=text.count("\n", 0, start + 4) + 1)
    if not _is_frontmatter(block, metadata, skipped=start > 0):
        return _body_only(text, [])
    warnings = list(metadata.warnings)
    if start:
        warnings.insert(0, "blank lines or comments before the frontmatter were skipped")
    rest = text[end + 4 :]
    warnings += _second_block(rest, text.count("\n", 0, end + 4) + 1)
    return Document(metadata.values, metadata.lines, strip_comments(rest).strip(WHITESPACE), tuple(warnings))


def _body_only(text: str, warnings: list[str]) -> Document:
    return Document({}, {}, strip_comments(text), tuple(warnings))


def _is_frontmatter(block: str, metadata: Metadata, *, skipped: bool) -> bool:
    """Whether a block between `---` lines is metadata, not prose between two horizontal rules.

    The reference takes every block at the very start of a file; only one that opens with a blank line and
    has no key of ours is prose here. After skipped lines a block must have a key.
    """
    if skipped:
        return bool(metadata.values)
    return not block.startswith("\n") or any(map(is_known_key, metadata.values))


def _second_block(rest: str, line: int) -> list[str]:
    match = _LATER_BLOCK.match(rest.lstrip("\n"))
    if match is None or not _has_known_key(match[1]):
        return []
    line += len(rest) - len(rest.lstrip("\n"))
    return [f"line {line}: a second frontmatter block; the first one counts, this one stays in the body"]


def _overlooked(text: str) -> list[str]:
    """A warning for a frontmatter block that stands after other text, where it has no effect."""
    for match in _LATER_BLOCK.finditer(text):
        if _has_known_key(match[1]):
            line = text.count("\n", 0, match.start()) + 1
            return [
                f"line {line}: frontmatter must be at the start of the file; this block is part of the body"
            ]
    return []


def _has_known_key(block: str) -> bool:
    return any(is_known_key(camel_case(key)) for key in _KEY.findall(block))
