"""What a page's URL asks for."""

from __future__ import annotations

import pytest

from ttsr_proxy.web.dashboard.query import Query


def test_empty_fields_of_the_form_are_no_filters() -> None:
    query = Query.read({"rule": "", "path": " src/ ", "within": "1h", "cursor": ""})
    assert query.values == {"path": "src/", "within": "1h"}
    where = query.filter(now=10_000.0)
    assert (where.rule, where.path, where.since, where.until) == (None, "src/", 6400.0, None)


def test_a_changed_url_keeps_the_other_filters() -> None:
    query = Query.read({"rule": "a&b", "cursor": "x"})
    assert query.url(cursor=None, action="interrupted") == "?rule=a%26b&action=interrupted"
    assert query.url(rule="", cursor="") == "?"


def test_the_feed_has_the_filters_and_starts_behind_the_first_record() -> None:
    query = Query.read({"rule": "no eval", "within": "1h"})
    assert query.feed("00ff") == "/ttsr/api/interrupts?rule=no+eval&cursor=00ff"


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"colour": "red"}, "unknown parameter 'colour'"),
        ({"within": "2y"}, "within must be one of 1h, 24h, 7d, 30d"),
        ({"since": "-1"}, "since must be whole seconds"),
        ({"rule": "x" * 1001}, "longer than 1000"),
    ],
)
def test_a_wrong_parameter_is_said(given: dict[str, str], part: str) -> None:
    with pytest.raises(ValueError, match=part):
        Query.read(given)
