"""Ids made from words."""

from __future__ import annotations

import re

MAX_SLUG = 64

_WORDS = re.compile(r"[a-z0-9]+")
# Not among them: what negates. A rule against something is not to be named after it.
_FILLERS = frozenset(
    _WORDS.findall(
        """a an the and or of to in on for with by at as is are be been must shall should may
        always every each any all it its this that these those do does from into than then when if use only"""
    )
)


def slug_of(*texts: str, default: str, words: int = 6) -> str:
    """A short id from the words of the first text that has Latin letters or digits, else the default."""
    for text in texts:
        found = _WORDS.findall(text.lower())
        telling = [word for word in found if word not in _FILLERS]
        slug = "-".join((telling or found)[:words])[:MAX_SLUG].strip("-")
        if slug:
            return slug
    return default
