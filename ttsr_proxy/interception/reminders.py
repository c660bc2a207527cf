"""What the model is told about a broken rule: one element for each rule, saying truthfully what happened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias
from xml.sax.saxutils import quoteattr

from ttsr_proxy.rules.model import Rule

Fate: TypeAlias = Literal["withheld", "not executed", "cut", "delivered", "handed over"]
"""What became of the output that broke the rule.

`withheld`: prose that the model will not see again; at most the beginning of some thinking was shown.
`not executed`: a tool call that was withheld. `cut`: prose stopped in the middle, what stands before is
delivered. `delivered`: prose that the user has read. `handed over`: a tool call that the client has and may
have run.
"""


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule's violation, as far as the model is told about it."""

    rule: Rule
    rule_path: str
    """Relative to the project or home; never absolute."""
    fate: Fate
    source: str
    tool: str | None
    paths: tuple[str, ...]
    late: bool = False
    times: int = 1
    """How often this rule was broken in this response."""
    judged: bool = False
    """A judge found it when the answer was complete; the model may have answered again since."""


def interrupt(violations: Sequence[Violation], siblings: Sequence[str] = ()) -> str:
    """The reminder after an interrupt. `siblings` names the other calls that were withheld with it."""
    elements = [_element("system-interrupt", violation) for violation in violations]
    if siblings:
        names = ", ".join(dict.fromkeys(siblings))
        elements.append(
            f"Other tool calls of the same output were not executed either ({names}). "
            "They broke no rule: repeat them if they are still needed."
        )
    return "\n".join(elements)


def reminder(violation: Violation) -> str:
    """The reminder for a violation that did not interrupt."""
    return _element("system-reminder", violation)


def _element(tag: str, violation: Violation) -> str:
    rule = violation.rule
    body = rule.reminder_text.replace(f"</{tag}", f"&lt;/{tag}")
    attributes = f"rule={quoteattr(rule.name)} path={quoteattr(violation.rule_path)}"
    parts = [f'<{tag} reason="rule_violation" {attributes}>', _story(violation)]
    if body:
        parts.append(body)
    parts.append(f"</{tag}>")
    return "\n".join(parts)


def _story(violation: Violation) -> str:
    what = _what(violation)
    again = (
        f" This rule has now been broken {violation.times} times in this answer."
        if violation.times > 1
        else ""
    )
    match violation.fate:
        case "withheld":
            shown = (
                "The user may have seen the beginning of it."
                if violation.late
                else "What broke it was not shown to the user."
            )
            return (
                f"Your last output was stopped because {what} broke this rule. {shown} "
                f"Answer again in a way that keeps the rule.{again}"
            )
        case "not executed":
            return (
                f"Your last output was stopped because {what} broke this rule. The call was not executed. "
                f"Continue in a way that keeps the rule.{again}"
            )
        case "cut":
            shown = (
                "The user has already seen the beginning of it. "
                if violation.late
                else "What broke the rule was not shown. "
            )
            return (
                f"Your answer was stopped because {what} broke this rule. {shown}What stands before this "
                "message was delivered: go on from there without repeating it, and keep the rule."
                f"{again}"
            )
        case "delivered":
            return (
                f"In {_which(violation)}, {what} broke this rule. The user has read it. "
                "Keep the rule from now on."
            )
        case "handed over":
            return (
                f"In {_which(violation)}, {what} broke this rule. The call was not stopped, so it may "
                "already be applied: check what it did, and mend it if needed."
            )


def _which(violation: Violation) -> str:
    return "an earlier answer of yours" if violation.judged else "your previous answer"


def _what(violation: Violation) -> str:
    if violation.source == "thinking":
        return "your thinking"
    if violation.source == "text":
        return "the text"
    # Only an edit in prose has no tool.
    tool = f"the {violation.tool} call" if violation.tool else "the edit"
    return f"{tool} for {', '.join(violation.paths)}" if violation.paths else tool
