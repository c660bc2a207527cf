"""Secrets are masked before the log keeps a text: keys and passwords that a model wrote, or a client sent."""

from __future__ import annotations

from ttsr_proxy.interrupts.record import InterruptRecord


def mask(text: str) -> str:
    """The text with its secrets replaced."""
    raise NotImplementedError


def mask_record(record: InterruptRecord) -> InterruptRecord:
    """The record as a store may keep it."""
    raise NotImplementedError
