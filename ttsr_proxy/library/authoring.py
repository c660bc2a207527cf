"""Drafts a rule file from a complaint in plain words, from output that was recorded, or from both."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from ttsr_proxy.errors import TtsrError
from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.library.compilation.blocks import SourceText
from ttsr_proxy.library.compilation.candidates import ProposedTriggers
from ttsr_proxy.library.compilation.compiler import Compiler, prove
from ttsr_proxy.library.compilation.prover import Prover
from ttsr_proxy.library.model import Snapshot, Triggers
from ttsr_proxy.library.slugs import slug_of
from ttsr_proxy.library.storage.frontmatter import write_frontmatter
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.toolcalls.families import FamilyTable
from ttsr_proxy.triggers.match import StreamContext
from ttsr_proxy.triggers.ruleset import RuleSet

MAX_LITERAL = 120
"""Characters of recorded text that a pattern is made of."""

_QUOTED = re.compile(r"`([^`\n]{2,60})`")
_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}/]")
_WRITERS = ("edit", "write")


@dataclass(frozen=True, slots=True)
class RuleDraft:
    """A drafted rule file. `finds_it` tells whether it matches the recorded output; None without one."""

    name: str
    text: str
    finds_it: bool | None
    remarks: tuple[str, ...]


async def draft_rule(
    complaint: str, record: InterruptRecord | None, model: Compiler | None, prover: Prover
) -> RuleDraft:
    """Draft a rule, with a model's help if there is one. Raises TtsrError when nothing comes of it.

    Without a model the pattern is the recorded text, or what the complaint puts in backticks, taken
    literally.
    """
    if model is not None:
        constraint, name, triggers, remarks = await _ask(complaint, record, model)
    else:
        constraint, name, triggers, remarks = await _literal(complaint, record, prover)
    values = {
        "description": " ".join(constraint.split())[:200],
        "condition": list(triggers.condition) or None,
        "astCondition": list(triggers.ast_condition) or None,
        "scope": list(triggers.scope) or None,
        "interruptMode": triggers.interrupt_mode,
    }
    text = write_frontmatter(values, constraint)
    finds_it = None if record is None else _matches(Rule.from_markdown(f"{name}.md", text), record)
    return RuleDraft(name, text, finds_it, remarks)


async def _ask(
    complaint: str, record: InterruptRecord | None, model: Compiler
) -> tuple[str, str, Triggers, tuple[str, ...]]:
    instruction = complaint or "Make a rule against what is marked in the recorded output."
    sources = []
    if record is not None:
        marked = f"{record.before}>>>{record.matched}<<<{record.after}"
        files = ", ".join(record.paths) or "no file"
        told = f"Output of {record.tool or record.source} for {files}:\n\n{marked}\n"
        sources.append(SourceText(f"log:{record.id}", told))
    compiled = await model.compile(Snapshot("draft"), instruction, sources)
    for rule in compiled.draft.rules.values():
        parts = (rule.constraint, rule.applies_when, rule.exception)
        remarks = next(
            op["warnings"] for op in compiled.draft.operations if op.get("atomic_id") == rule.atomic_id
        )
        return "\n\n".join(part for part in parts if part), rule.atomic_id, rule.triggers, tuple(remarks)
    reasons = "; ".join(str(operation.get("reason", "")) for operation in compiled.draft.operations)
    raise TtsrError(f"the model made no rule of it: {reasons or compiled.plan_reason}")


async def _literal(
    complaint: str, record: InterruptRecord | None, prover: Prover
) -> tuple[str, str, Triggers, tuple[str, ...]]:
    if record is not None:
        literal = record.matched.strip().partition("\n")[0][:MAX_LITERAL]
    elif quoted := _QUOTED.search(complaint):
        literal = quoted[1]
    else:
        raise TtsrError(
            "without a model (library.compiler) a pattern needs something literal: put it in backticks, or"
            " name a log entry with --from-log"
        )
    constraint = complaint or f"Do not write `{literal}`."
    pattern = _SPECIAL.sub(r"\\\g<0>", literal)
    proposed = ProposedTriggers(Triggers(condition=(pattern,), scope=_scope(record)), positive=(literal,))
    triggers, remarks = await prove(prover, proposed, needs_examples=False)
    return constraint, slug_of(complaint, literal, default="rule"), triggers, remarks


def _scope(record: InterruptRecord | None) -> tuple[str, ...]:
    """The streams in which such output stands."""
    if record is None:
        return ()
    if record.source != "tool" or record.tool is None:
        return (record.source,)
    kind = FamilyTable.default().family_of(record.tool).kind
    names = _WRITERS if kind in _WRITERS else (record.tool.lower(),)
    suffixes = {PurePosixPath(path.replace("\\", "/")).suffix for path in record.paths} - {""}
    globs = [f"(*{suffix})" for suffix in sorted(suffixes)] or [""]
    return tuple(f"tool:{name}{glob}" for name in names for glob in globs)


def _matches(rule: Rule, record: InterruptRecord) -> bool:
    kind = None if record.tool is None else FamilyTable.default().family_of(record.tool).kind
    context = StreamContext(record.source, record.tool, record.paths, kind)
    text = record.violation or f"{record.before}{record.matched}{record.after}"
    return bool(RuleSet([rule]).check(text, context))
