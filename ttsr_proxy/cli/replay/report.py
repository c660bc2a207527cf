"""What a replay says at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import click
import msgspec
from rich.table import Table
from rich.text import Text

from ttsr_proxy.cli.options import FailOn
from ttsr_proxy.cli.progress import tell_by_reason
from ttsr_proxy.cli.replay.judging import Replayed
from ttsr_proxy.cli.terminal import cell, console, counted, printable
from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.replay.findings import INTERRUPTING, Finding
from ttsr_proxy.replay.replayer import Totals

_MATCHED_CHARACTERS = 80
_LOST_LINES = 20
"""Lost lines that are told one by one."""


@dataclass(slots=True)
class RuleTotals:
    """How often one rule matched, and in how many conversations."""

    actions: Counter[str] = field(default_factory=Counter)
    conversations: set[tuple[str, ...]] = field(default_factory=set)
    files: set[str] = field(default_factory=set)

    @property
    def matches(self) -> int:
        return self.actions.total()


@dataclass(slots=True)
class Report:
    """Takes the files in their order. `actions` names the actions that are told; without any, all are."""

    rules: Sequence[str]
    actions: Collection[str]
    files: int = 0
    found: list[tuple[str, Finding]] = field(default_factory=list)
    lost: list[tuple[str, int, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    totals: Totals = field(default_factory=Totals)
    by_rule: dict[str, RuleTotals] = field(default_factory=dict)
    copies: int = 0
    """Matches that were left out because another file has the same output."""
    _first_in: dict[tuple[str, ...], str] = field(default_factory=dict)

    def take(self, replayed: Replayed) -> None:
        """Add what one file gave."""
        path = replayed.path
        if replayed.totals is None:
            self.skipped.append((path, replayed.skipped or ""))
            return
        self.files += 1
        self.totals.add(replayed.totals)
        self.lost += ((path, lost.line, lost.reason) for lost in replayed.lost)
        for finding in replayed.findings:
            if finding.identity is not None and self._first_in.setdefault(finding.identity, path) != path:
                self.copies += 1
            elif not self.actions or finding.action in self.actions:
                self._add(path, finding)

    def _add(self, path: str, finding: Finding) -> None:
        self.found.append((path, finding))
        totals = self.by_rule.setdefault(finding.rule, RuleTotals())
        totals.actions[finding.action] += 1
        totals.conversations.add((finding.client, finding.conversation or path, finding.agent))
        totals.files.add(path)

    def failing(self, fail_on: FailOn) -> bool:
        """Whether there is a match of this kind."""
        match fail_on:
            case "any":
                return bool(self.found)
            case "interrupting":
                return any(finding.action in INTERRUPTING for _, finding in self.found)
            case "nothing":
                return False

    def as_json(self) -> JsonObject:
        """Everything; each match with the names of the interrupt log."""
        return {
            "matches": [_match_to_dict(path, finding) for path, finding in self.found],
            "rules": {name: _totals_to_dict(self.by_rule.get(name, RuleTotals())) for name in self.rules},
            "files": self.files,
            "conversations": self.totals.conversations,
            "responses": self.totals.responses,
            "blocks": self.totals.blocks,
            "copies": self.copies,
            "lost": [{"file": path, "line": line, "reason": reason} for path, line, reason in self.lost],
            "skipped": [{"file": path, "reason": reason} for path, reason in self.skipped],
            "not_inspected": self.totals.not_inspected,
        }

    def print_matches(self) -> None:
        """One line for each match."""
        out = console()
        for path, finding in self.found:
            out.print(_line(path, finding), soft_wrap=True)

    def print_totals(self) -> None:
        """A table of the rules that matched, the most frequent first."""
        if not self.by_rule:
            return
        table = Table("rule", "matches", "actions", "conversations", "files", box=None, pad_edge=False)
        rows = sorted(self.by_rule.items(), key=lambda entry: (-entry[1].matches, entry[0]))
        for name, totals in rows:
            table.add_row(
                cell(name, "bold"),
                cell(f"{totals.matches:,}"),
                cell(", ".join(f"{count:,} {action}" for action, count in totals.actions.most_common())),
                cell(f"{len(totals.conversations):,}"),
                cell(f"{len(totals.files):,}"),
            )
        console().print(table)

    def tell(self, seconds: float) -> None:
        """What was gone through and what was not, on standard error."""
        found = f"{counted(len(self.found), 'match', 'matches')} of {counted(len(self.by_rule), 'rule')}"
        read = f"{counted(self.files, 'file')}, {counted(self.totals.conversations, 'conversation')}"
        click.echo(f"{found} ({read}, {counted(self.totals.responses, 'answer')}, {seconds:.1f} s)", err=True)
        if self.copies:
            click.echo(f"left out: {counted(self.copies, 'match', 'matches')} in copies of output", err=True)
        for path, line, reason in self.lost[:_LOST_LINES]:
            click.echo(f"line left out: {printable(path)}:{line}: {printable(reason)}", err=True)
        if len(self.lost) > _LOST_LINES:
            click.echo(f"and {len(self.lost) - _LOST_LINES:,} more lines left out", err=True)
        tell_by_reason("skipped", self.skipped)
        for reason, count in self.totals.not_inspected.items():
            click.echo(f"not inspected in {counted(count, 'block')}: {printable(reason)}", err=True)


def _line(path: str, finding: Finding) -> Text:
    interrupts = finding.action in INTERRUPTING
    where = " ".join((finding.tool or finding.source, *finding.paths))
    return Text.assemble(
        cell(f"{path}:{finding.line}: "),
        cell(finding.rule, "bold red" if interrupts else "bold yellow"),
        cell(f": {finding.action} in turn {finding.turn}, {where}: ", "" if interrupts else "dim"),
        cell(finding.matched, limit=_MATCHED_CHARACTERS),
    )


def _match_to_dict(path: str, finding: Finding) -> JsonObject:
    fields: JsonObject = msgspec.to_builtins(finding)
    del fields["identity"]
    return {"file": path, **fields, "paths": list(finding.paths)}


def _totals_to_dict(totals: RuleTotals) -> JsonObject:
    return {
        "matches": totals.matches,
        "actions": dict(totals.actions),
        "conversations": len(totals.conversations),
        "files": len(totals.files),
    }
