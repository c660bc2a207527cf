"""The log as the API shows it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ttsr_proxy import jsontext
from ttsr_proxy.interrupts import as_json
from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.interrupts.store import Page

NAMES = {
    "id",
    "time",
    "project",
    "conversation",
    "turn",
    "attempt",
    "client",
    "model",
    "protocol",
    "rule",
    "rule_path",
    "trigger",
    "pattern",
    "source",
    "tool",
    "paths",
    "matched",
    "action",
    "outcome",
    "tokens_wasted",
    "tokens_estimated",
    "seconds_added",
}


def test_an_item_has_every_promised_field(make_record: Callable[..., InterruptRecord]) -> None:
    item = as_json.item(make_record(time=1_772_366_400.25, paths=("a.py",), tool="Write"))
    assert set(item) >= NAMES
    assert item["time"] == "2026-03-01T12:00:00.250Z"
    assert item["paths"] == ["a.py"]
    assert jsontext.decode(jsontext.encode(item)) == item


def test_a_page_has_its_items_and_the_next_cursor(make_record: Callable[..., InterruptRecord]) -> None:
    page = as_json.page(Page((make_record(id="b"), make_record(id="a")), "next"))
    assert [item["id"] for item in page["items"]] == ["b", "a"]
    assert page["next"] == "next"
    assert as_json.page(Page((), None)) == {"items": [], "next": None}


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "1970-01-01T00:00:00.000Z"), (1.9996, "1970-01-01T00:00:01.999Z")]
)
def test_times_are_utc_with_milliseconds(seconds: float, text: str) -> None:
    assert as_json.iso_time(seconds) == text
