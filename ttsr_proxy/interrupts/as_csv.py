"""The log as comma-separated values (RFC 4180), for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Final

from ttsr_proxy.interrupts.as_json import iso_time
from ttsr_proxy.interrupts.record import InterruptRecord

COLUMNS: Final = tuple(field.name for field in fields(InterruptRecord))
"""The fields of a record in their order: the first line of the file."""

_FORMULA: Final = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""What makes a cell a formula, in their full-width forms too (OWASP, CSV Injection)."""

_CONTROLS: Final = ("\t", "\r", "\n")
"""What some programs drop from the beginning of a cell before they look at the rest."""


def lines(records: Iterable[InterruptRecord]) -> str:
    """One line a record, each with its CRLF; the first line of a file is `header`.

    A text that a spreadsheet would take for a formula gets an apostrophe before it, which spreadsheets do
    not show. Lists are in one cell, an entry a line.
    """
    return _written([_cell(name, getattr(record, name)) for name in COLUMNS] for record in records)


def header() -> str:
    """The line with the columns' names."""
    return _written((COLUMNS,))


def _written(rows: Iterable[Iterable[str]]) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\r\n").writerows(rows)
    return out.getvalue()


def _cell(name: str, value: Any) -> str:
    match value:
        case str():
            return _inert(value)
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case tuple():
            return _inert("\n".join(value))
        case float() if name == "time":
            return iso_time(value)
        case _:
            return str(value)


def _inert(text: str) -> str:
    # Most texts begin with a letter, and a log has many.
    if not text or text[0].isalpha():
        return text
    formula = text.startswith(_CONTROLS) or text.lstrip().startswith(_FORMULA)
    return f"'{text}" if formula else text
