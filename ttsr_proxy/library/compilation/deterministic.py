"""The compiler that needs no model: it keeps what is plainly stated, and says what it cannot decide.

Likeness alone never makes a NOOP or an UPDATE, since a rule with one number changed is more like the old
one than the same rule in other words is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ttsr_proxy.library.compilation.blocks import SourceText
from ttsr_proxy.library.compilation.candidates import Candidate, Extraction, excerpt
from ttsr_proxy.library.compilation.commands import Command, read_command
from ttsr_proxy.library.compilation.nearest import Nearest
from ttsr_proxy.library.compilation.statements import likeness, normalised, read_statement
from ttsr_proxy.library.drafting import Draft, RuleText
from ttsr_proxy.library.model import LibraryRule, Origin, Scenario, Snapshot, Triggers
from ttsr_proxy.library.slugs import slug_of

NEAR = 0.5
"""Likeness from which a statement may be another form of a rule that is there."""

NEAR_IN_MEANING = 0.68
"""The same for nearness of meaning, where it is measured: of 48 pairs every new rule was below it."""

SAME_SCENARIO_IN_MEANING = 0.45

SAME_SCENARIO = 0.3
"""Likeness to a rule from which a statement without a heading joins that rule's scenario."""

MAX_REJECTED = 20
"""Passages that are no rules and are listed one by one; the rest is counted."""

KIND = "deterministic"

Proven = Mapping[int, tuple[Triggers, tuple[str, ...]]]
"""By number of the candidate: the triggers that passed, and what there is to say about the others."""


Nearness = Mapping[int, tuple[LibraryRule, float]]
"""By number of the candidate: the rule nearest in meaning, and how near; empty where it is not measured."""


def split_commands(instruction: str, base: Snapshot) -> tuple[list[Command], str]:
    """The commands of an instruction, and the text without their lines."""
    commands: list[Command] = []
    rest: list[str] = []
    fence = False
    for line in instruction.split("\n"):
        if line.lstrip().startswith(("```", "~~~")):
            fence = not fence
        command = None if fence else read_command(line, base.rules, base.archived)
        if command is not None:
            commands.append(command)
        # An empty line in its place keeps the numbers of the lines that follow.
        rest.append(line if command is None else "")
    return commands, "\n".join(rest)


def carry_out(
    draft: Draft,
    base: Snapshot,
    commands: Iterable[Command],
    found: Extraction,
    proven: Proven,
    nearest: Nearness,
) -> str:
    """Put commands and candidates into the draft; returns the reason of the plan."""
    for command in commands:
        _command(draft, command)
    matching = _Matching(base, draft, found.candidates)
    for number, candidate in enumerate(found.candidates):
        triggers, remarks = proven.get(number, (Triggers(), ()))
        matching.place(candidate, triggers, (*remarks, *candidate.warnings), nearest.get(number))
    for passage in found.no_rules:
        if passage.uncertain:
            draft.uncertain(passage.reason, excerpt=passage.excerpt)
    rejected = [passage for passage in found.no_rules if not passage.uncertain]
    for passage in rejected[:MAX_REJECTED]:
        draft.reject(passage.reason, excerpt=passage.excerpt)
    counts = Counter(operation["operation"] for operation in draft.operations)
    counts["REJECT"] = len(rejected)
    summary = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    return (
        "Deterministic compiler; no model configured. It keeps statements that plainly oblige or forbid as"
        f" they are written, and leaves the rest undecided: {summary or 'nothing to do'}."
    )


def _command(draft: Draft, command: Command) -> None:
    target = command.target
    if command.verb in ("UPDATE", "REPLACE") and target in draft.rules:
        statement = read_statement(command.text)
        text = RuleText(
            title=" ".join(statement.constraint.split()[:8])[:120],
            constraint=statement.constraint,
            applies_when=statement.applies_when,
            exception=statement.exception,
        )
        if command.verb == "UPDATE":
            draft.update(target, text)
        else:
            draft.replace(target, slug_of(statement.constraint, default="rule"), text)
    elif command.verb == "ARCHIVE":
        draft.archive(target, "on the user's instruction")
    else:
        # A target that is not there is UNCERTAIN whatever the verb.
        draft.set_status("RESTORE" if command.verb == "RESTORE" else "PAUSE", target)


class _Matching:
    """Which rule of the library a candidate is, if any."""

    def __init__(self, base: Snapshot, draft: Draft, candidates: Sequence[Candidate]) -> None:
        self._draft = draft
        self._base = base
        self._by_key = {rule_key(rule): rule.atomic_id for rule in base.rules.values()}
        self._near = Nearest(base.rules.values())
        restated = {candidate.key for candidate in candidates}
        # Rules whose text is gone from the source that they came from, by that source.
        self._open: dict[str, list[LibraryRule]] = defaultdict(list)
        for rule in base.rules.values():
            if rule.origin.uri and rule_key(rule) not in restated:
                self._open[rule.origin.uri].append(rule)

    def place(
        self,
        candidate: Candidate,
        triggers: Triggers,
        warnings: Sequence[str],
        in_meaning: tuple[LibraryRule, float] | None,
    ) -> None:
        rules = self._draft.rules
        text = _text(candidate, triggers, tuple(warnings))
        same = rules.get(self._by_key.get(candidate.key, ""))
        if same is not None:
            self._restated(same, text)
            return
        changed = self._changed(candidate)
        if changed is not None:
            self._draft.update(changed.atomic_id, text)
            return
        near, score = self._near.find(candidate.statement.constraint)
        is_near, is_related = score >= NEAR, score >= SAME_SCENARIO
        if not is_near and in_meaning is not None:
            near, score = in_meaning
            is_near, is_related = score >= NEAR_IN_MEANING, score >= SAME_SCENARIO_IN_MEANING
        if near is not None and is_near:
            self._draft.uncertain(
                f"it may be another form of rule {near.atomic_id}, or a rule of its own; to decide, write"
                f" `update {near.atomic_id}: ...` or word it so that the difference shows",
                atomic_id=near.atomic_id,
                excerpt=excerpt(candidate.statement.constraint),
                existing=excerpt(near.constraint),
            )
            return
        joined = near.scenario_id if near is not None and is_related else ""
        rule = self._draft.new(candidate.slug, text, self._scenario(candidate, joined))
        self._by_key[candidate.key] = rule.atomic_id

    def _changed(self, candidate: Candidate) -> LibraryRule | None:
        """The rule that stood at the candidate's place in the same source: under the same anchor, or the
        only one in the same section that is worded alike."""
        rules = self._open.get(candidate.source.uri, [])
        found = [rule for rule in rules if rule.origin.anchor == candidate.anchor]
        if not found:
            found = [
                rule
                for rule in rules
                if rule.origin.anchor.rpartition("/")[0] == candidate.section
                and likeness(rule.constraint, candidate.statement.constraint) >= NEAR
            ]
        if len(found) != 1 or found[0].atomic_id not in self._draft.rules:
            return None
        rules.remove(found[0])
        return found[0]

    def _restated(self, rule: LibraryRule, text: RuleText) -> None:
        if rule.status == "paused":
            self._draft.uncertain(
                f"the same rule is paused; to have it again, write `restore {rule.atomic_id}`",
                atomic_id=rule.atomic_id,
            )
        elif text.triggers and text.triggers != rule.triggers:
            self._draft.update(rule.atomic_id, text)
        else:
            self._draft.noop(rule.atomic_id, f"covered by revision {rule.revision}")

    def _scenario(self, candidate: Candidate, joined: str) -> Scenario:
        title = candidate.scenario_title
        if not title and joined:
            return self._base.scenarios[joined]
        name = slug_of(title, default="") or slug_of(
            candidate.statement.constraint, words=3, default="general"
        )
        return self._base.scenarios.get(name) or Scenario(name, title or name.replace("-", " ").capitalize())


def _text(candidate: Candidate, triggers: Triggers, warnings: tuple[str, ...]) -> RuleText:
    statement = candidate.statement
    source: SourceText = candidate.source
    return RuleText(
        title=candidate.title,
        constraint=statement.constraint,
        applies_when=statement.applies_when,
        exception=statement.exception,
        triggers=triggers,
        question=candidate.question,
        origin=Origin(source.uri, source.sha256, candidate.anchor) if source.uri else Origin(),
        warnings=warnings,
    )


def rule_key(rule: LibraryRule) -> tuple[str, str, str]:
    """As `Candidate.key`."""
    return normalised(rule.constraint), normalised(rule.applies_when), normalised(rule.exception)
