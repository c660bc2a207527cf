"""A scenario's `abstract.md`: what the situation is, and which rules it has."""

from __future__ import annotations

from collections.abc import Sequence

from ttsr_proxy.library.model import LibraryRule, Scenario
from ttsr_proxy.library.storage.frontmatter import write_frontmatter
from ttsr_proxy.rules.frontmatter import read_document


def write_card(scenario: Scenario, rules: Sequence[LibraryRule]) -> str:
    """The card. Its list of rules is written anew with every commit that touches the scenario."""
    listed = [
        f"- `{rule.atomic_id}`: {rule.title}{' (paused)' if rule.status == 'paused' else ''}"
        for rule in rules
    ]
    paragraphs = (f"# {scenario.title}", scenario.summary, "\n".join(listed))
    body = "\n\n".join(part for part in paragraphs if part)
    values = {
        "scenario_id": scenario.scenario_id,
        "title": scenario.title,
        "summary": scenario.summary or None,
    }
    return write_frontmatter(values, body)


def read_card(text: str, scenario_id: str) -> Scenario:
    """The scenario that a card describes. What is missing is taken from the folder's name."""
    metadata = read_document(text).metadata
    title, summary = metadata.get("title"), metadata.get("summary")
    return Scenario(
        scenario_id,
        title if isinstance(title, str) and title else default_title(scenario_id),
        summary if isinstance(summary, str) else "",
    )


def default_title(scenario_id: str) -> str:
    """`outbound-http` as `Outbound http`."""
    return scenario_id.replace("-", " ").capitalize()
