"""The log as comma-separated values."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttsr_proxy.interrupts import as_csv
from ttsr_proxy.interrupts.record import InterruptRecord

MakeRecord = Callable[..., InterruptRecord]


def read(*records: InterruptRecord) -> list[dict[str, str]]:
    """The file's rows, as an independent reader sees them."""
    text = as_csv.header() + as_csv.lines(records)
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def test_every_field_of_a_record_is_a_column(make_record: MakeRecord) -> None:
    (row,) = read(make_record())
    assert set(row) == {field.name for field in dataclasses.fields(InterruptRecord)}


def test_fields_are_written_as_the_api_gives_them(make_record: MakeRecord) -> None:
    record = make_record(time=1_700_000_000.0, paths=("a.py", "b.py"), late=True, seconds_added=1.5)
    (row,) = read(record)
    assert row["time"] == "2023-11-14T22:13:20.000Z"
    assert row["paths"] == "a.py\nb.py"
    assert (row["late"], row["false_positive"]) == ("true", "false")
    assert (row["tool"], row["seconds_added"]) == ("", "1.5")


def test_every_line_ends_as_rfc_4180_says(make_record: MakeRecord) -> None:
    text = as_csv.header() + as_csv.lines([make_record(), make_record()])
    assert text.count("\r\n") == text.count("\n") == 3
    assert text.endswith("\r\n")


@given(text=st.text(st.characters(exclude_categories=())))
def test_any_text_comes_back_but_for_the_apostrophe(make_record: MakeRecord, text: str) -> None:
    (row,) = read(make_record(violation=text, after="next"))
    assert row["violation"] in (text, f"'{text}")
    assert row["after"] == "next"


@pytest.mark.parametrize(
    "text",
    [
        "=HYPERLINK(1)", "+1", "-2+3", "@SUM(1)", "\t=1", "\r=1", "\n=1", "  =1", "＝1", "＋1", "－1", "＠A",
    ],
)  # fmt: skip
def test_what_a_spreadsheet_would_take_for_a_formula_is_made_text(make_record: MakeRecord, text: str) -> None:
    (row,) = read(make_record(matched=text, paths=(text,)))
    assert (row["matched"], row["paths"]) == (f"'{text}", f"'{text}")


@pytest.mark.parametrize("text", ["eval(x)", "a = 1", "'quoted'", '"a","b"', "a\r\n=b"])
def test_other_text_stays_as_it_is(make_record: MakeRecord, text: str) -> None:
    (row,) = read(make_record(matched=text))
    assert row["matched"] == text
