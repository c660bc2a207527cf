"""Where in the violating output the match stands."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ttsr_proxy.interrupts.record import InterruptRecord


@dataclass(frozen=True, slots=True)
class Marked:
    """A text in three pieces, of which the middle one is marked."""

    before: str
    marked: str
    after: str


def mark_violation(record: InterruptRecord) -> Marked:
    """The violating output with the match marked.

    A rule looks at what a tool call would write, the output is the call's arguments: there the match is
    looked for as it stands in JSON too. Where it is not found nothing is marked.
    """
    for context, matched in (
        (record.before, record.matched),
        (_escaped(record.before), _escaped(record.matched)),
        ("", record.matched),
        ("", _escaped(record.matched)),
    ):
        at = record.violation.find(context + matched) if matched else -1
        if at >= 0:
            start, end = at + len(context), at + len(context) + len(matched)
            return Marked(record.violation[:start], matched, record.violation[end:])
    return Marked(record.violation, "", "")


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
