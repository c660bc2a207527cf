"""Deltas that come together are looked at together, unless one of them needs a look of its own."""

from __future__ import annotations

import pytest

from ttsr_proxy.interception.blocks import Reach, WatchedBlock
from ttsr_proxy.protocols.events import BlockKind, BlockStarted
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.toolcalls.families import FamilyTable
from ttsr_proxy.triggers.ruleset import RuleSet

RULES = RuleSet([Rule("no-bad-word", condition=["BADWORD"], scope=["text", "tool"])])
NAMES = frozenset(RULES.registered)


def block(kind: BlockKind, *, watched: bool = True) -> WatchedBlock:
    start = BlockStarted(b"", 0, kind, "Bash" if kind == "tool" else None, None, {})
    reach = Reach(NAMES, NAMES) if watched else Reach(frozenset(), frozenset())
    return WatchedBlock(start, reach, RULES, FamilyTable.default(), None)


@pytest.mark.parametrize("watched", [True, False])
def test_prose_without_anything_of_interest_is_taken_in_at_once(watched: bool) -> None:
    prose = block("text", watched=watched)
    assert prose.skim("Nothing to see here.")
    assert (prose.text, prose.received, prose.first_visible) == ("Nothing to see here.", 20, 0)
    assert not watched or prose.safe_until == 20


def test_prose_that_a_rule_may_match_is_left_to_be_fed() -> None:
    prose = block("text")
    assert not prose.skim("one BADWORD here")
    assert prose.received == 0
    assert [found.match.start for found in prose.feed("one BADWORD here")] == [4]


def test_what_was_skimmed_counts_for_a_match_that_begins_in_it() -> None:
    prose = block("text")
    assert prose.skim("a BADW")
    assert prose.safe_until == 2
    assert [found.match.start for found in prose.feed("ORD")] == [2]


def test_calls_that_are_watched_or_may_read_a_rule_are_read_delta_by_delta() -> None:
    assert not block("tool").skim('{"command": ')
    read = block("tool", watched=False)
    read.undecided = True
    assert not read.skim('{"command": ')
    read.undecided = False
    assert read.skim('{"command": ')
