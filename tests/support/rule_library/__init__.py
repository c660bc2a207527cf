"""Libraries for tests: on disk, with rules in them."""

from __future__ import annotations

from pathlib import Path

from ttsr_proxy.library.drafting import Draft, RuleText
from ttsr_proxy.library.model import Scenario, Snapshot, Triggers
from ttsr_proxy.library.storage.user_library import UserLibrary

__all__ = ["HTTP", "NOW", "TIMEOUT", "add", "new_library", "text_of"]

NOW = "2026-01-02T03:04:05Z"
HTTP = Scenario("outbound-http", "Outbound HTTP", "Calling remote services.")
TIMEOUT = RuleText(
    title="Explicit timeouts",
    constraint="Every outbound HTTP request must set a connect and a read timeout.",
    applies_when="Code calls a remote HTTP service.",
    triggers=Triggers(condition=(r"requests\.get\((?![^)]*timeout)",), scope=("tool:write(*.py)",)),
)


def new_library(folder: Path, user: str = "alice") -> UserLibrary:
    """A library without rules; its folder appears with the first commit."""
    return UserLibrary(folder, user)


def text_of(constraint: str, **fields: object) -> RuleText:
    """A rule's text with a title made of its first words."""
    return RuleText(title=" ".join(constraint.split()[:4]), constraint=constraint, **fields)  # type: ignore[arg-type]


def add(library: UserLibrary, slug: str, text: RuleText, scenario: Scenario = HTTP) -> Snapshot:
    """Commit one new rule."""
    base = library.snapshot(fresh=True)
    draft = Draft(base, NOW, "test")
    draft.new(slug, text, scenario)
    return library.commit(draft.changes(), base)
