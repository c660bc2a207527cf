"""Findings about what a rule says to the model, and about rules that watch what the model says."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ttsr_proxy.triggers.lint.finding import Finding, Subject
from ttsr_proxy.triggers.match import StreamContext
from ttsr_proxy.triggers.occurrences import occurrences
from ttsr_proxy.triggers.ruleset import RuleSet

LONG_CONTENT = 6_000
"""Characters of a body that is sent to the model at every violation."""

LONG_DESCRIPTION = 300
"""Characters of a description, of which the prompt lists one line."""

_ACTION = re.compile(
    r"\b(?:git|npm|pnpm|yarn|pip3?|docker|kubectl|terraform|curl|wget|sudo|rm|chmod|chown|mkfs|dd|kill|psql)"
    r"(?:\\s[+*]?|\[[^\]]*\][+*]?|[ ])+(?:-|\(\?:-|[a-z])"
)
"""Conditions that read like a command line."""


def check_action(subject: Subject) -> Iterator[Finding]:
    """A rule about something that is done, which watches what is said."""
    if not subject.watches_prose or subject.rule.question is not None:
        return
    for number, pattern in enumerate(subject.rule.condition or (), 1):
        if _ACTION.search(pattern.replace(r"\b", "")):
            given = "the default scope has" if not subject.rule.scope else "the scope has"
            yield subject.finding(
                "warning", "action-in-prose", "scope" if subject.rule.scope else subject.condition_key,
                f"condition {number} reads like a command, and {given} text in it: the rule also fires when"
                " the model only speaks of the command",
                "Write scope: tool:bash.",
            )  # fmt: skip


def check_own_words(subject: Subject) -> Iterator[Finding]:
    """A rule about prose that its own text breaks: a model that repeats the rule breaks it again."""
    if subject.compiled is None or not subject.watches_prose or subject.rule.question is not None:
        return
    source = StreamContext("text" if subject.compiled.scope.text else "thinking")
    matches = occurrences(RuleSet([subject.rule]), subject.rule.reminder_text, source).matches
    found = [match for match in matches if match.start < match.end]
    if found:
        quoted = subject.rule.reminder_text[found[0].start : found[0].end]
        shown = quoted if len(quoted) <= 60 else quoted[:59] + "…"
        yield subject.finding(
            "warning", "matches-own-text", subject.condition_key,
            f"the condition matches the rule's own text ({shown!r}), which the model may repeat when it"
            " follows the rule",
            "Say it in other words, or put a short text without it into reminder.",
        )  # fmt: skip


def check_text(subject: Subject) -> Iterator[Finding]:
    """Texts that say nothing, or more than fits."""
    rule = subject.rule
    if not rule.reminder_text.strip():
        yield subject.finding(
            "error", "empty-rule", None, "the rule has no text, so the model is not told what to do",
            "Write what to do instead below the frontmatter.",
        )  # fmt: skip
    if (rule.condition or rule.ast_condition or rule.question) and len(rule.reminder_text) > LONG_CONTENT:
        yield subject.finding(
            "warning", "long-rule", None,
            f"the text has {len(rule.content):,} characters and is sent at every violation",
            "Shorten it, or put what the model needs at that moment into reminder.",
        )  # fmt: skip
    description = rule.description or ""
    if len(description) > LONG_DESCRIPTION or "\n" in description.strip():
        yield subject.finding(
            "warning", "long-description", "description",
            f"the description has {len(description):,} characters, or several lines; the prompt lists it"
            " in one line",
            "Write one sentence.",
        )  # fmt: skip
