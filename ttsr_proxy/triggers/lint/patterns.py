"""Findings about single conditions: those that cannot be used, only sometimes, everywhere, or too slowly."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ttsr_proxy.rules.model import CATCH_ALL
from ttsr_proxy.triggers.ast import AstPatternError, check_pattern
from ttsr_proxy.triggers.compiled import Condition
from ttsr_proxy.triggers.jsregex import PatternError, compile_condition
from ttsr_proxy.triggers.lint.alternatives import Alternative, alternatives
from ttsr_proxy.triggers.lint.finding import Finding, Subject
from ttsr_proxy.triggers.lint.ordinary import matched_samples
from ttsr_proxy.triggers.lint.slowness import LENGTHS, nested_loop, slowest

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SHOWN = 60
_NEARLY_ALL = 0.9


def check_usable(subject: Subject) -> Iterator[Finding]:
    """Conditions that do not compile, or that only this program understands."""
    for number, pattern in enumerate(subject.rule.condition or (), 1):
        try:
            compiled = compile_condition(pattern)
        except PatternError as error:
            yield subject.finding(
                "error", "invalid-condition", subject.condition_key,
                f"condition {number} ({_shown(pattern)}) does not compile: {error}",
                "Correct the regular expression; JavaScript's syntax holds.",
            )  # fmt: skip
            continue
        if not compiled.portable:
            yield subject.finding(
                "warning", "not-portable", subject.condition_key,
                f"condition {number} ({_shown(pattern)}): {'; '.join(compiled.warnings)}",
                "Write it in JavaScript's syntax, so that other programs accept the rule too.",
            )  # fmt: skip
        control = _CONTROL.search(pattern)
        if control:
            yield subject.finding(
                "error", "control-character", subject.condition_key,
                f"condition {number} has the control character {control[0]!r} in it",
                r"Use single quotes: in double quotes YAML turns \b into a backspace.",
            )  # fmt: skip
    for key in ("condition", "ttsr_trigger", "ttsrTrigger", "astCondition"):
        given = subject.rule.ast_condition if key == "astCondition" else subject.rule.condition
        if key in subject.lines and not given:
            yield subject.finding(
                "error", "empty-condition", key, "there is no condition in it, so the rule does not watch",
                "Write a condition, or remove the key.",
            )  # fmt: skip
    for number, pattern in enumerate(subject.rule.ast_condition or (), 1):
        try:
            check_pattern(pattern)
        except AstPatternError as error:
            yield subject.finding(
                "error", "invalid-ast-condition", "astCondition",
                f"astCondition {number} ({_shown(pattern)}) is not used: {error}",
                "Write a piece of code, with $NAME for any one node and $$$NAME for any number of them.",
            )  # fmt: skip
    for warning in subject.compiled.warnings if subject.compiled else ():
        if "never matches" in warning:
            yield subject.finding(
                "error", "ast-condition-is-no-code", "astCondition", warning,
                "Write one piece of code that is complete in the language of the rule's files.",
            )  # fmt: skip


def check_breadth(subject: Subject) -> Iterator[Finding]:
    """Conditions, or single alternatives, that match nearly any text. Before a judge they may."""
    if subject.compiled is None or subject.rule.question is not None:
        return
    for number, condition in enumerate(subject.compiled.conditions, 1):
        if _is_file_gate(subject, condition):
            continue
        options = alternatives(condition.pattern)
        broad = [(option, why) for option in options if (why := _too_broad(subject, option))]
        if broad and len(broad) < len(options):
            for option, why in broad:
                shown = _shown(option.text) if option.text else "which is empty"
                yield subject.finding(
                    "error", "broad-alternative", subject.condition_key,
                    f"alternative {option.number} of condition {number}, {shown}, {why}",
                    "Remove the alternative or make it as narrow as the others: any of them is enough.",
                )  # fmt: skip
        elif broad:
            yield subject.finding(
                "error", "broad-condition", subject.condition_key,
                f"condition {number} ({_shown(condition.pattern)}) {broad[0][1]}",
                "Name what is forbidden; a rule about whole files has a file glob as its condition.",
            )  # fmt: skip


def check_cost(subject: Subject) -> Iterator[Finding]:
    """Conditions that some text makes slow, and those that would hold back every answer."""
    if subject.compiled is None:
        return
    mode = subject.rule.interrupt_mode or subject.ttsr.interrupt_mode
    interrupts_prose = subject.rule.question is None and mode in ("always", "prose-only")
    for number, condition in enumerate(subject.compiled.conditions, 1):
        if nested_loop(condition.pattern):
            yield subject.finding(
                "error", "catastrophic-condition", subject.condition_key,
                f"condition {number} ({_shown(condition.pattern)}) has a loop within a loop that can share"
                " out the same text in exponentially many ways",
                "Write (a+)+ as a+; let each turn of the outer loop begin with what the inner cannot read.",
            )  # fmt: skip
            continue
        slow = slowest(condition.compiled)
        if slow is not None:
            yield subject.finding(
                "error" if slow.characters < LENGTHS[-1] else "warning",
                "slow-condition", subject.condition_key,
                f"condition {number} ({_shown(condition.pattern)}) does not finish within"
                f" {slow.seconds:g} s on {slow.characters:,} characters such as {_shown(slow.sample)}",
                "Make loops within loops, or after each other, read different characters, or bound them;"
                " in a stream such a condition is left out for the rest of the block.",
            )  # fmt: skip
        if condition.compiled.open_ended and subject.watches_prose and interrupts_prose:
            yield subject.finding(
                "warning", "unbounded-in-prose", subject.condition_key,
                f"condition {number} ({_shown(condition.pattern)}) could begin anywhere and stay open without"
                " end, so prose is not held back for it and a match may have been shown already",
                "Give it a beginning that ordinary text does not have, or watch tool calls only.",
            )  # fmt: skip


def _is_file_gate(subject: Subject, condition: Condition) -> bool:
    """Whether the condition is the catch-all that a file glob stands for."""
    scope = subject.compiled.scope if subject.compiled else None
    return condition.pattern == CATCH_ALL and scope is not None and not scope.text and not scope.any_tool


def _too_broad(subject: Subject, option: Alternative) -> str | None:
    if option.matches_empty:
        return "matches the empty text, so it matches everywhere"
    if subject.compiled is not None and option.pattern is not None:
        matched, reached = matched_samples(subject.compiled, option.pattern)
        if reached >= 2 and matched >= _NEARLY_ALL * reached:
            return "matches nearly every sample of ordinary text that the rule watches"
    return None


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")
