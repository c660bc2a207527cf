"""Matches that interrupt nothing: noticed when they happen, logged when it is known what became of them.

The first match of a rule in an answer that is reminded of claims the rule: its reminder waits for the request
that echoes the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from ttsr_proxy.interception.actions import Log, UpdateLog
from ttsr_proxy.interception.attempt import Attempt, Noticed
from ttsr_proxy.interception.draft import Draft
from ttsr_proxy.interception.journal import Journal, log
from ttsr_proxy.interception.reminders import Violation, reminder
from ttsr_proxy.interception.setup import Setup
from ttsr_proxy.sessions.record import PendingReminder


class Findings:
    """`reminders` wait for the next request of the conversation."""

    def __init__(self, setup: Setup, journal: Journal) -> None:
        self._setup = setup
        self._journal = journal
        self.reminders: list[PendingReminder] = []
        self._choices: dict[str, int] = {}
        """For the log record of each reminder, which of several answers it is about."""
        self._given_up: list[tuple[Noticed, Attempt]] = []
        """Matches of given-up attempts that are still to be logged."""
        self._claimed: set[tuple[int, str]] = set()
        self._broken: set[str] = set()

    def broken(self, rules: Iterable[str]) -> None:
        """These rules were broken in this response, whatever follows from it."""
        self._broken.update(rules)

    def notice(self, noticed: Noticed, attempt: Attempt) -> None:
        """A match that interrupts nothing."""
        if any(_is_same(one, noticed) for one in attempt.noticed):
            return
        claims = {_claim(one) for one in attempt.noticed if one.decision == "remind"}
        if noticed.decision == "remind" and _claim(noticed) in self._claimed | claims:
            noticed = replace(noticed, decision="suppressed", detail="already noticed in this answer")
        attempt.noticed.append(noticed)

    def give_up(self, attempt: Attempt, kept: Callable[[Noticed], bool], why: str) -> None:
        """The attempt comes to nothing: what was noticed in `kept` output stands, the rest was only seen."""
        noticed, attempt.noticed = attempt.noticed, []
        for one in noticed:
            if not kept(one):
                one = replace(one, decision="observed", detail=why)
            self._given_up.append((one, attempt))

    def log(self, attempt: Attempt | None) -> list[Log]:
        """Log all that was noticed; the reminders among them now wait for the next request."""
        noticed, self._given_up = self._given_up, []
        if attempt is not None:
            noticed += [(one, attempt) for one in attempt.noticed]
            attempt.noticed = []
        records = []
        for one, where in noticed:
            action, outcome = one.logged
            injected = self._reminder(one) if one.decision == "remind" else ""
            record = self._journal.entry(
                one.found,
                one.block,
                where,
                one.at,
                action=action,
                outcome=outcome,
                detail=one.detail,
                injected=injected,
            )
            records.append(record)
            if one.decision == "remind":
                self._claimed.add(_claim(one))
                self._choices[record.id] = one.block.start.choice
                self.reminders.append(PendingReminder(record.rule, injected, record.id))
        return log(records)

    def reminders_of(self, choice: int) -> list[PendingReminder]:
        """What waits for the echo of one of several answers."""
        return [one for one in self.reminders if self._choices.get(one.interrupt, 0) == choice]

    def outcomes(self, draft: Draft) -> list[UpdateLog]:
        """What came of the reminders that this request carried for earlier responses."""
        if draft.form != "reminded":
            return []
        return [
            UpdateLog(one.interrupt, {"outcome": "violated again" if one.rule in self._broken else "clean"})
            for one in draft.deferred
            # Of a judged rule it is the judge who tells.
            if one.rule not in self._setup.judged.registered
        ]

    def _reminder(self, one: Noticed) -> str:
        rule, context = one.found.match.rule, one.found.context
        return reminder(
            Violation(
                rule=rule,
                rule_path=self._setup.rule_path(rule),
                fate="handed over" if one.block.kind == "tool" else "delivered",
                source=context.source,
                tool=context.tool,
                paths=context.paths,
            )
        )


def _claim(noticed: Noticed) -> tuple[int, str]:
    return noticed.block.start.choice, noticed.found.match.rule.name


def _is_same(one: Noticed, other: Noticed) -> bool:
    """Whether it is one finding: a file in a patch in a script is read three times, as each of them."""
    return (
        one.block is other.block
        and one.found.view != other.found.view
        and one.found.match.rule is other.found.match.rule
        and _matched(one) == _matched(other)
    )


def _matched(noticed: Noticed) -> str:
    match = noticed.found.match
    return noticed.found.text[match.start : match.end]
