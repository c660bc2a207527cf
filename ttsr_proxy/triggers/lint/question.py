"""Findings about judged rules."""

from __future__ import annotations

from collections.abc import Iterator

from ttsr_proxy.triggers.lint.finding import Finding, Subject

_OF_INTERRUPTS = {
    "interruptMode": "interrupt_mode",
    "contextMode": "context_mode",
    "maxInterrupts": "max_interrupts",
    "onExhausted": "on_exhausted",
}
"""Keys that speak of interrupts, with their fields."""


def check_question(subject: Subject) -> Iterator[Finding]:
    """Keys that mean nothing for a rule that a judge is asked about."""
    if subject.rule.question is None:
        return
    for key, field in _OF_INTERRUPTS.items():
        if getattr(subject.rule, field) not in (None, "never"):
            yield subject.finding(
                "warning", "judged-never-interrupts", key,
                f"{key} changes nothing: a judge is asked about complete output, and never interrupts",
                "Remove the key, or remove the question if the condition alone tells a violation.",
            )  # fmt: skip
