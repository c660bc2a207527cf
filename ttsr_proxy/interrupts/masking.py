"""Secrets are masked before the log keeps a text: keys and passwords that a model wrote or a client sent.

Formats are in `secret_formats`. What looks like nothing in particular is not found: a password
in prose is kept.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.interrupts.secret_formats import SECRET_FORMATS

MARK: Final = "[masked]"

_KEPT: Final = 6
"""Characters of a secret that are kept at most, to tell which one it was; never more than a quarter of it."""

_TELLING: Final = 8
"""A known secret of this length is masked wherever it stands."""

_EDGE: Final = 4
"""So much of a known secret, cut off at the edge of a text, is masked."""

_MASKED: Final = re.compile(rf".{{0,{_KEPT}}}(?:{re.escape(MARK)})+", re.DOTALL)

_Span = tuple[int, int]


def mask(text: str) -> str:
    """The text with its secrets replaced by their first few characters and `[masked]`."""
    return _replace(text, _secrets(text))


def mask_record(record: InterruptRecord) -> InterruptRecord:
    """The record as a store may keep it; masking what is masked changes nothing.

    A secret may reach from one text into the next (`before`, `matched`, `after`), or be cut off at the edge
    of the context and stand whole in `violation`.
    """
    (before, matched, after), (violation, correction, injected, detail, *paths) = mask_together(
        (record.before, record.matched, record.after),
        (record.violation, record.correction, record.injected, record.detail, *record.paths),
    )
    return dataclasses.replace(
        record,
        before=before,
        matched=matched,
        after=after,
        violation=violation,
        correction=correction,
        injected=injected,
        detail=detail,
        paths=tuple(paths),
    )


def mask_together(adjoining: Sequence[str], others: Sequence[str]) -> tuple[list[str], list[str]]:
    """Mask pieces that adjoin in some larger text, and other texts that may hold the same secrets.

    What is a secret in one of them is masked in all, also where it is cut off at the edge of the pieces.
    """
    context = "".join(adjoining)
    texts = (context, *others)
    found = [_secrets(text) for text in texts]
    known = {text[start:end] for text, spans in zip(texts, found, strict=True) for start, end in spans}
    telling = sorted(secret for secret in known if len(secret) >= _TELLING)
    spans = _merge([*found[0], *_occurrences(context, telling), *_edges(context, telling)])
    pieces: list[str] = []
    at = 0
    for piece in adjoining:
        pieces.append(_replace(context, spans, at, at + len(piece)))
        at += len(piece)
    return pieces, [
        _replace(text, _merge([*spans, *_occurrences(text, telling)]))
        for text, spans in zip(others, found[1:], strict=True)
    ]


def _secrets(text: str) -> list[_Span]:
    """Where something has a secret's format, in order and apart from each other."""
    lowered = text.lower()
    found: list[_Span] = []
    for secret in SECRET_FORMATS:
        if any(hint in lowered for hint in secret.hints):
            group = "secret" if "secret" in secret.pattern.groupindex else 0
            found.extend(match.span(group) for match in secret.pattern.finditer(text))
    return _merge(span for span in found if not _MASKED.fullmatch(text, *span))


def _occurrences(text: str, known: Iterable[str]) -> Iterator[_Span]:
    for secret in known:
        start = text.find(secret)
        while start >= 0:
            yield start, start + len(secret)
            start = text.find(secret, start + len(secret))


def _edges(text: str, known: Iterable[str]) -> list[_Span]:
    """Pieces of known secrets that the edges of the text cut off."""
    found: list[_Span] = []
    for secret in known:
        for size in range(min(len(secret), len(text)), _EDGE - 1, -1):
            if text.startswith(secret[-size:]):
                found.append((0, size))
                break
        for size in range(min(len(secret), len(text)), _EDGE - 1, -1):
            if text.endswith(secret[:size]):
                found.append((len(text) - size, len(text)))
                break
    return found


def _merge(spans: Iterable[_Span]) -> list[_Span]:
    merged: list[_Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _replace(text: str, spans: Sequence[_Span], start: int = 0, end: int | None = None) -> str:
    """The part of the text from `start` to `end`, with the secrets in it replaced."""
    end = len(text) if end is None else end
    parts: list[str] = []
    for secret_start, secret_end in spans:
        if secret_end <= start or secret_start >= end:
            continue
        if secret_start >= start:
            kept = min(_KEPT, (secret_end - secret_start) // 4)
            parts.append(text[start : min(end, secret_start + kept)])
        parts.append(MARK)
        start = min(end, secret_end)
    parts.append(text[start:end])
    return "".join(parts)
