"""Totals of the log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.interrupts.sqlite import SqliteInterruptStore
from ttsr_proxy.interrupts.store import InterruptFilter
from ttsr_proxy.interrupts.summary import Summary, summarise

MakeRecord = Callable[..., InterruptRecord]


def test_records_are_counted_by_action_outcome_and_rule(make_record: MakeRecord) -> None:
    summary = Summary()
    summary.add(
        [
            make_record(time=5.0, outcome="clean", tokens_wasted=300, seconds_added=1.5),
            make_record(
                time=7.0, action="suppressed", outcome="pending", tokens_estimated=False, paths=("b.py",)
            ),
            make_record(time=6.0, rule="no-any", tokens_wasted=20, tokens_estimated=False, seconds_added=0.5),
        ]
    )
    assert (summary.count, summary.since, summary.until) == (3, 5.0, 7.0)
    assert summary.actions == {"interrupted": 2, "suppressed": 1}
    assert summary.outcomes == {"clean": 1, "pending": 2}
    assert (summary.tokens_wasted, summary.tokens_estimated) == (320, True)
    assert summary.seconds_added == pytest.approx(2.0)
    assert summary.rules["no-eval"].count == 2
    assert summary.rules["no-any"].tokens_wasted == 20


def test_a_rule_that_never_interrupts_shows_how_often_and_where_it_matched_last(
    make_record: MakeRecord,
) -> None:
    summary = Summary()
    seen = {"action": "reminded", "source": "tool"}
    summary.add([make_record(time=9.0, paths=("new.py",), **seen), make_record(time=3.0, paths=("old.py",))])
    rule = summary.rules["no-eval"]
    assert (rule.count, rule.last_time, rule.last_source, rule.last_paths) == (2, 9.0, "tool", ("new.py",))


def test_exact_counts_are_not_called_estimates(make_record: MakeRecord) -> None:
    summary = Summary()
    summary.add([make_record(tokens_wasted=5, tokens_estimated=False), make_record(tokens_wasted=0)])
    assert not summary.tokens_estimated


def test_as_json_says_since_when_it_counts_and_names_the_busiest_rule_first(make_record: MakeRecord) -> None:
    summary = Summary()
    summary.add([make_record(time=1.0, rule="rare"), make_record(time=0.0), make_record(time=0.0)])
    shown = summary.to_json()
    assert (shown["since"], shown["until"]) == ("1970-01-01T00:00:00.000Z", "1970-01-01T00:00:01.000Z")
    assert list(shown["rules"]) == ["no-eval", "rare"]
    assert shown["rules"]["rare"]["last_time"] == "1970-01-01T00:00:01.000Z"
    assert Summary().to_json()["since"] is None


async def test_a_summary_covers_all_pages_of_what_the_filter_selects(
    tmp_path: Path, make_record: MakeRecord
) -> None:
    store = SqliteInterruptStore(tmp_path / "state.db")
    await store.add([make_record(id=f"i{n}", rule=f"r{n % 2}") for n in range(2_400)])
    summary = await summarise(store, InterruptFilter(rule="r1"))
    await store.close()
    assert summary.count == 1_200
    assert list(summary.rules) == ["r1"]
