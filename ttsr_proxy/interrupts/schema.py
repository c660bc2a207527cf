"""The tables of the interrupt log in SQLite."""

from __future__ import annotations

from typing import Final

from ttsr_proxy.sqlite import Schema

SCHEMA: Final = Schema(
    "interrupts",
    (
        """
        CREATE TABLE interrupts(
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            time REAL NOT NULL,
            rule TEXT NOT NULL,
            project TEXT NOT NULL,
            conversation TEXT NOT NULL,
            model TEXT NOT NULL,
            client TEXT NOT NULL,
            source TEXT NOT NULL,
            action TEXT NOT NULL,
            outcome TEXT NOT NULL,
            paths TEXT NOT NULL
        );
        CREATE INDEX interrupts_by_time ON interrupts(time, seq);
        CREATE INDEX interrupts_by_rule ON interrupts(rule, time, seq);
        CREATE INDEX interrupts_by_conversation ON interrupts(conversation, time, seq);
        CREATE INDEX interrupts_by_action ON interrupts(action, time, seq);
        CREATE INDEX interrupts_by_outcome ON interrupts(outcome, time, seq);
        CREATE TABLE interrupt_bodies(
            seq INTEGER PRIMARY KEY REFERENCES interrupts(seq) ON DELETE CASCADE,
            body TEXT NOT NULL
        );
        """,
        """
        ALTER TABLE interrupts ADD COLUMN tokens_wasted INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE interrupts ADD COLUMN seconds_added REAL NOT NULL DEFAULT 0;
        ALTER TABLE interrupts ADD COLUMN false_positive INTEGER NOT NULL DEFAULT 0;
        UPDATE interrupts SET (tokens_wasted, seconds_added) = (
            SELECT coalesce(body ->> '$.tokens_wasted', 0), coalesce(body ->> '$.seconds_added', 0)
            FROM interrupt_bodies WHERE interrupt_bodies.seq = interrupts.seq
        );
        """,
        """
        ALTER TABLE interrupts ADD COLUMN request TEXT NOT NULL DEFAULT '';
        UPDATE interrupts SET request = (
            SELECT coalesce(body ->> '$.request', '')
            FROM interrupt_bodies WHERE interrupt_bodies.seq = interrupts.seq
        );
        CREATE INDEX interrupts_by_request ON interrupts(request);
        """,
        """
        CREATE INDEX interrupts_counted ON interrupts(
            rule, action, outcome, time, seq, tokens_wasted, seconds_added, false_positive
        );
        """,
    ),
)
"""`seq` is the order of arrival and never reused. Bodies stand apart so that a filter scans narrow rows.

`interrupts_counted` has all that counts of rules are made of, in the order in which they are grouped.
"""
