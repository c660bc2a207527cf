"""One record of the interrupt log, whole, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from ttsr_proxy.cli.terminal import cell, printable
from ttsr_proxy.interrupts.marking import Marked, mark_violation
from ttsr_proxy.interrupts.record import InterruptRecord

ACTION_STYLES = {"interrupted": "yellow", "truncated": "yellow", "exhausted": "red", "blocked": "red"}
OUTCOME_STYLES = {"clean": "green", "violated again": "red", "failed": "red", "undelivered": "red"}

_MARK = "bold white on red"
_PLAIN_MARKS = ("⟦", "⟧")
"""Around the match where nothing can be coloured."""


def print_record(out: Console, record: InterruptRecord) -> None:
    """All that the log knows of one match; what a model wrote cannot steer the terminal."""
    action = f"{record.action} (late)" if record.late else record.action
    out.print(
        Text("  ").join(
            (
                cell(record.rule, "bold"),
                cell(action, ACTION_STYLES.get(record.action, "")),
                cell(record.outcome, OUTCOME_STYLES.get(record.outcome, "dim")),
                *((cell("false positive", "dim"),) if record.false_positive else ()),
            )
        ),
        soft_wrap=True,
    )
    facts = list(_facts(record))
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        out.print(Text.assemble(cell(name.ljust(width), "dim"), "  ", cell(value)), soft_wrap=True)
    _print_part(out, "match", Marked(record.before, record.matched, record.after))
    _print_part(out, "violating output", mark_violation(record))
    _print_part(out, "reminder", Marked(record.injected, "", ""), nothing="The model was not given one.")
    pending = "Not known yet." if record.outcome == "pending" else "There is none."
    _print_part(out, "corrected output", Marked(record.correction, "", ""), nothing=pending)


def _facts(record: InterruptRecord) -> Iterator[tuple[str, str]]:
    moment = datetime.fromtimestamp(record.time).astimezone()
    yield "time", moment.isoformat(sep=" ", timespec="milliseconds")
    if record.detail:
        yield "detail", record.detail
    yield "where", " ".join(filter(None, (record.source, record.tool, *record.paths)))
    yield "pattern" if record.trigger == "ast" else "condition", record.pattern
    yield "rule file", record.rule_path
    yield "model", f"{record.model} ({record.protocol})"
    agent = f" / {record.agent}" if record.agent not in ("", "main") else ""
    yield "client", f"{record.client}{agent}"
    yield "project", record.project
    yield "conversation", record.conversation
    yield "turn", f"{record.turn}, attempt {record.attempt}"
    yield "held", f"{record.held_chars:,} characters"
    yield "added", f"{record.seconds_added:.2f} s"
    estimated = " (estimated)" if record.tokens_estimated and record.tokens_wasted else ""
    yield "wasted", f"{record.tokens_wasted:,} tokens{estimated}"
    if record.upstream_requests:
        yield "upstream", ", ".join(record.upstream_requests)
    yield "request", record.request
    yield "record", record.id


def _print_part(out: Console, title: str, text: Marked, *, nothing: str = "Nothing.") -> None:
    out.print()
    out.print(Rule(title, align="left", style="dim"))
    if not (text.before or text.marked or text.after):
        out.print(Text(nothing, style="dim"))
        return
    coloured = out.is_terminal and not out.no_color
    opening, closing = ("", "") if coloured or not text.marked else _PLAIN_MARKS
    out.print(
        Text.assemble(
            _lines(text.before), opening, (_lines(text.marked), _MARK), closing, _lines(text.after)
        ),
        soft_wrap=True,
    )


def _lines(text: str) -> str:
    """Several lines; a carriage return before a line's end is no more than that."""
    return printable(text.replace("\r\n", "\n"), keep="\n\t")
