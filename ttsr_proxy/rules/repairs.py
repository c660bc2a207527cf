"""Repairs of rule files as they are found in the world: encodings, line ends, quotes.

Every repair is reported, since a file that only this program can read is a trap for its author.
"""

from __future__ import annotations

import codecs
import re

WHITESPACE = (
    "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What JavaScript's `trim()` removes: the reference trims with it."""

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8", "a UTF-8 byte order mark"),
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32 encoding"),
    (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32 encoding"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16 encoding"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16 encoding"),
)

_CURLY_OPEN, _CURLY_CLOSE = "“”„‟‘’‚‛«»", "“”‟‘’‛«»"
_QUOTED = re.compile(rf"""(?s)(["'{_CURLY_OPEN}])(.*)(["'{_CURLY_CLOSE}])""")
_COMMENT = re.compile(
    # Code is kept: `<!-- -->` there is an example. An unclosed comment ends the search (and its cost).
    r"(?ms)(?P<code>^ {0,3}(?P<fence>`{3,}|~{3,}).*?(?:^ {0,3}(?P=fence)|\Z)|`[^`\n]+`)"
    r"|<!--(?:.*?-->|(?P<unclosed>.*))"
)


def decode(text: str | bytes) -> tuple[str, list[str]]:
    """A rule file's text with `\\n` line ends and no byte order mark, and what was repaired."""
    problems: list[str] = []
    if isinstance(text, bytes):
        text = _decode_bytes(text, problems)
    elif text.startswith("\ufeff"):
        text = text[1:]
        problems.append("the file starts with a byte order mark; it was skipped")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        problems.append("the file has CR or CRLF line ends; they were read as LF")
    if "\0" in text:
        problems.append(
            "the file contains NUL characters: UTF-16 without a byte order mark? Save it as UTF-8"
        )
    return text, problems


def _decode_bytes(data: bytes, problems: list[str]) -> str:
    encoding = "utf-8"
    for mark, marked_encoding, name in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            problems.append(f"the file has {name}; save it as plain UTF-8")
            data, encoding = data[len(mark) :], marked_encoding
            break
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problems.append(f"line {line}: not {encoding.upper()} text; unreadable bytes became U+FFFD")
        return data.decode(encoding, errors="replace")


def strip_comments(text: str) -> str:
    """Markdown without its HTML comments, as the reference does; code blocks and code spans are kept."""
    if "<!--" not in text:
        return text
    return _COMMENT.sub(
        lambda match: match["code"] or (f"<!--{match['unclosed']}" if match["unclosed"] else ""), text
    )


def unquote(token: str) -> tuple[str, bool]:
    """The token without one pair of quotes around it, straight or curly, and whether one was curly."""
    match = _QUOTED.fullmatch(token)
    if match is None:
        return token, False
    opening, inner, closing = match.groups()
    curly = opening not in "\"'" or closing not in "\"'"
    if not curly and opening != closing:
        return token, False
    return inner.strip(WHITESPACE), curly
