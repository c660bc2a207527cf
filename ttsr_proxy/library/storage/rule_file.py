"""A rule as a Markdown file, which is a rule file of the rulebook too, and back."""

from __future__ import annotations

from collections.abc import Mapping

from ttsr_proxy.library.model import STATUSES, LibraryRule, Origin, Status, Triggers
from ttsr_proxy.library.storage.frontmatter import write_frontmatter
from ttsr_proxy.library.uris import is_name
from ttsr_proxy.rules.frontmatter import read_document
from ttsr_proxy.rules.metadata import LIBRARY_KEYS
from ttsr_proxy.rules.normalise import rule_fields

DESCRIPTION = 300
"""Characters of the constraint that stand in the description."""

_TRIGGER_KEYS = ("condition", "astCondition", "scope", "globs", "interruptMode", "question")
_OWN_KEYS = frozenset((*LIBRARY_KEYS, *_TRIGGER_KEYS, "description", "enabled"))


class RuleFileError(ValueError):
    """Why a file is no rule, in words for the person who edited it."""


def write_rule(rule: LibraryRule) -> str:
    """The rule's file. `enabled: false` keeps other readers of rule files from enforcing a paused rule."""
    triggers = rule.triggers
    values: dict[str, object] = {
        "atomic_id": rule.atomic_id,
        "scenario_id": rule.scenario_id,
        "revision": rule.revision,
        "status": rule.status,
        "enabled": None if rule.status == "active" else False,
        "title": rule.title,
        "description": " ".join(rule.constraint.split())[:DESCRIPTION],
        "applies_when": rule.applies_when,
        "exception": rule.exception,
        "condition": list(triggers.condition) or None,
        "astCondition": list(triggers.ast_condition) or None,
        "scope": list(triggers.scope) or None,
        "globs": list(triggers.globs) or None,
        "interruptMode": triggers.interrupt_mode,
        "question": rule.question,
        **rule.extra,
        "created_at": rule.created_at or None,
        "updated_at": rule.updated_at or None,
        "source": {
            key: value
            for key in ("uri", "sha256", "anchor")
            if (value := getattr(rule.origin, key))
        }
        or None,
        "compiler": rule.compiler or None,
    }  # fmt: skip
    return write_frontmatter(values, rule.constraint)


def read_rule(text: str, scenario_id: str, file_name: str) -> LibraryRule:
    """The rule in a file of a scenario's folder.

    Keys that a person left out have defaults, so that a plain rule file may be put there by hand. Raises
    RuleFileError for what contradicts its place or cannot be understood.
    """
    document = read_document(text)
    values = _Values(document.metadata)
    atomic_id = values.text("atomic_id", file_name.removesuffix(".md"))
    if f"{atomic_id}.md" != file_name:
        raise RuleFileError(f"`atomic_id` is {atomic_id!r}, but the file's name is {file_name!r}")
    if not is_name(atomic_id):
        raise RuleFileError(f"{atomic_id!r} cannot be an id: lower-case letters, digits and '-', at most 64")
    if (stated := values.text("scenario_id", scenario_id)) != scenario_id:
        raise RuleFileError(f"`scenario_id` is {stated!r}, but the file is in {scenario_id!r}")
    constraint = document.body.strip()
    if not constraint:
        raise RuleFileError("the constraint is missing: there is no text below the frontmatter")
    fields = rule_fields(document)
    source = document.metadata.get("source")
    origin = source if isinstance(source, Mapping) else {}
    return LibraryRule(
        atomic_id=atomic_id,
        scenario_id=scenario_id,
        constraint=constraint,
        title=values.text("title", atomic_id),
        revision=values.revision(),
        status=values.status(enabled=fields.get("enabled", True)),
        applies_when=values.text("applies_when"),
        exception=values.text("exception"),
        triggers=Triggers(
            tuple(fields.get("condition") or ()),
            tuple(fields.get("ast_condition") or ()),
            tuple(fields.get("scope") or ()),
            tuple(fields.get("globs") or ()),
            fields.get("interrupt_mode"),
        ),
        question=fields.get("question"),
        created_at=values.text("created_at"),
        updated_at=values.text("updated_at"),
        origin=Origin(**{key: str(origin.get(key, "")) for key in ("uri", "sha256", "anchor")}),
        compiler=values.text("compiler"),
        extra={key: value for key, value in document.metadata.items() if key not in _OWN_KEYS},
        content=text,
    )


class _Values:
    """The library's own keys of a file."""

    def __init__(self, metadata: Mapping[str, object]) -> None:
        self._metadata = metadata

    def text(self, key: str, default: str = "") -> str:
        value = self._metadata.get(key)
        if value is None:
            return default
        if isinstance(value, str):
            return value
        raise RuleFileError(f"`{key}` must be text, not {value!r}")

    def revision(self) -> int:
        value = self._metadata.get("revision", 1)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        raise RuleFileError(f"`revision` must be a whole number of 1 or more, not {value!r}")

    def status(self, *, enabled: bool) -> Status:
        value = self._metadata.get("status", "active" if enabled else "paused")
        for status in STATUSES:
            if status == value:
                return "paused" if status == "active" and not enabled else status
        raise RuleFileError(f"`status` must be one of {', '.join(STATUSES)}, not {value!r}")
