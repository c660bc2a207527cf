"""The tables of the conversation store in SQLite."""

from __future__ import annotations

from typing import Final

from ttsr_proxy.sqlite import Schema

SCHEMA: Final = Schema(
    "sessions",
    (
        """
        CREATE TABLE session_meta(key TEXT PRIMARY KEY, value BLOB NOT NULL);
        CREATE TABLE records(
            seq INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            tenant TEXT NOT NULL,
            parent TEXT,
            created REAL NOT NULL,
            last_used REAL NOT NULL,
            final INTEGER NOT NULL,
            body TEXT NOT NULL
        );
        CREATE INDEX records_by_parent ON records(parent) WHERE parent IS NOT NULL;
        CREATE INDEX records_for_retention ON records(seq, id, parent, last_used);
        CREATE TABLE anchors(
            tenant TEXT NOT NULL,
            anchor TEXT NOT NULL,
            created REAL NOT NULL,
            record INTEGER NOT NULL REFERENCES records(seq) ON DELETE CASCADE,
            PRIMARY KEY (tenant, anchor, created, record)
        ) WITHOUT ROWID;
        CREATE INDEX anchors_by_record ON anchors(record);
        CREATE TABLE unfinished(
            tenant TEXT NOT NULL,
            request_key TEXT NOT NULL,
            ended REAL NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (tenant, request_key)
        ) WITHOUT ROWID;
        CREATE INDEX unfinished_by_end ON unfinished(ended);
        """,
    ),
)
"""A record's `seq` is above its parent's: a child is saved after its parent."""
