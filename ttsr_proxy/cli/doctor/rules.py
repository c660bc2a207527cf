"""The rules: where they come from, and which of them do not work."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence

from ttsr_proxy.cli.doctor.finding import Finding, fail, ok, warn
from ttsr_proxy.cli.terminal import counted
from ttsr_proxy.config import ProjectSettings, Settings
from ttsr_proxy.judges import why_no_judge
from ttsr_proxy.library.enforcement import enforced_rules
from ttsr_proxy.library.errors import LibraryError
from ttsr_proxy.library.storage.libraries import Libraries
from ttsr_proxy.rules.buckets import NO_BUCKET, Entry
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.rules.providers import BUILTIN_DEFAULTS, LIBRARY
from ttsr_proxy.triggers.inventory import ProjectRules, project_rules
from ttsr_proxy.triggers.ruleset import NEEDS_JUDGE

_ABOUT_RULES = "`ttsr-proxy rules check` says more; docs/writing-rules.md has every key"


def of_projects(settings: Settings) -> Iterator[Finding]:
    """The rules of every project."""
    for project in settings.projects:
        prefix = f"project {project.name}: " if len(settings.projects) > 1 else ""
        for finding in _of_project(settings, project):
            yield Finding(finding.level, prefix + finding.what, finding.mend)


def _of_project(settings: Settings, project: ProjectSettings) -> Iterator[Finding]:
    compiled: Sequence[tuple[str, Rule]] = ()
    try:
        compiled = enforced_rules(Libraries(settings.library_root).of(project.library_user).snapshot())
    except LibraryError as error:
        yield fail(
            f"the rule library at {settings.library_root} cannot be read: {error}",
            "mend or move the file; until then none of its rules is enforced",
        )
    found = project_rules(project, why_no_judge(settings.library.judge), compiled)
    yield from _places(found)
    for problem in found.inventory.problems:
        what = f"{problem.path}: {problem.message}"
        if os.path.isabs(problem.path):
            yield fail(what, "make it readable for this user, or take it out of the settings that name it")
        else:
            yield warn(what, "correct the name in the settings")
    for entry in found.inventory.entries:
        yield from _of_rule(found, entry)
    watching = len(found.inventory.ttsr)
    if project.ttsr.enabled:
        yield ok(f"{counted(watching, 'rule')} watching what the model writes")


def _places(found: ProjectRules) -> Iterator[Finding]:
    """Which providers have rules, and in which directories."""
    counts = Counter(entry.provider for entry in found.inventory.entries)
    own = {name: count for name, count in counts.items() if name != BUILTIN_DEFAULTS}
    for name, count in own.items():
        paths = [entry.rule.path for entry in found.inventory.entries if entry.provider == name]
        where = "compiled" if name == LIBRARY else ", ".join(sorted({_directory(path) for path in paths}))
        yield ok(f"{counted(count, 'rule')} of {name} ({where})")
    if not own:
        yield warn(
            f"no rule of your own in {found.project.path} or {found.project.home}",
            "write one in .omp/rules/NAME.md; docs/quickstart.md shows how",
        )
    if shipped := counts[BUILTIN_DEFAULTS]:
        yield ok(f"{counted(shipped, 'rule')} that come with ttsr-proxy")


def _directory(path: str) -> str:
    return path.rpartition("/")[0] or path


def _of_rule(found: ProjectRules, entry: Entry) -> Iterator[Finding]:
    """What does not work about a rule; one that is off because somebody said so is none of it."""
    rule = entry.rule
    if entry.provider == BUILTIN_DEFAULTS or not found.project.ttsr.enabled:
        return
    what = f"{rule.name} ({found.shown_path(rule)})"
    if entry.reason == NO_BUCKET:
        yield warn(f"{what} does nothing: {entry.reason}", f"give it one of these keys; {_ABOUT_RULES}")
    elif rule.question is not None and found.no_judge is not None:
        yield warn(
            f"{what} is off: {NEEDS_JUDGE}; {found.no_judge}", "set library.judge; see docs/library.md"
        )
    elif entry.reason is not None and entry.reason == (
        found.ruleset.rejected.get(rule.name) or found.judged.rejected.get(rule.name)
    ):
        yield fail(f"{what} does not watch: {entry.reason}", f"correct its file; {_ABOUT_RULES}")
    for warning in (*rule.warnings, *found.warnings(entry)):
        if entry.state == "active":
            yield warn(f"{what}: {warning}", f"correct its file; {_ABOUT_RULES}")
