"""What a text holds for the deterministic compiler: candidates for rules, and passages that are none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from ttsr_proxy.library.compilation.blocks import Block, SourceText, batches, split_blocks
from ttsr_proxy.library.compilation.statements import (
    Statement,
    is_binding,
    is_vague,
    normalised,
    read_statement,
    sentences,
)
from ttsr_proxy.library.model import Triggers
from ttsr_proxy.library.slugs import slug_of
from ttsr_proxy.library.uris import is_name
from ttsr_proxy.rules.frontmatter import Document, read_document
from ttsr_proxy.rules.metadata import LIBRARY_KEYS, is_known_key
from ttsr_proxy.rules.normalise import rule_fields

TRIGGER_FENCE = "ttsr"
"""The language of a code block that gives the rule before it its triggers."""

MAX_EXCERPT = 200

MAX_STATEMENT = 2_000
"""Characters of one statement; a rule is one obligation."""

MAX_FRONTMATTER = 16_384
"""Characters within which a text's frontmatter ends, as for rule files."""

_LITERAL = re.compile(
    r"(?i)\b(?:never|do not|don['’]t|must not|avoid|no)\b[^`.]{0,40}`(?P<literal>[^`\n]{2,60})`"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_MARKS = re.compile(r"[*_`]+")


@dataclass(frozen=True, slots=True)
class ProposedTriggers:
    """Triggers as they were given, with what should and should not match."""

    triggers: Triggers = field(default_factory=Triggers)
    positive: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A statement that may become a rule."""

    statement: Statement
    title: str
    slug: str
    source: SourceText
    section: str
    """The anchor of its heading path."""
    scenario_title: str
    """The nearest heading; empty if it stands below none."""
    proposed: ProposedTriggers = field(default_factory=ProposedTriggers)
    question: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        return f"{self.section}/{self.slug}" if self.section else self.slug

    @property
    def key(self) -> tuple[str, str, str]:
        """Equal for statements that differ in case, punctuation and white space only."""
        text = self.statement
        return normalised(text.constraint), normalised(text.applies_when), normalised(text.exception)


@dataclass(frozen=True, slots=True)
class NoRule:
    """A passage that is no rule, or not clearly one."""

    reason: str
    excerpt: str
    uncertain: bool = False


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was found in all texts."""

    candidates: tuple[Candidate, ...]
    no_rules: tuple[NoRule, ...]
    batch_count: int


def extract(texts: Sequence[SourceText]) -> Extraction:
    """Read the texts. A text with a rule file's frontmatter is one rule; of others each statement is one."""
    candidates: list[Candidate] = []
    no_rules: list[NoRule] = []
    blocks: list[Block] = []
    for number, given in enumerate(texts, 1):
        source = replace(given, text=_CONTROLS.sub("", given.text))
        document = _document(source.text)
        if any(is_known_key(key) for key in document.metadata) and document.body.strip():
            candidates.append(_rule_file(source, document))
            blocks += split_blocks(replace(source, text=document.body), number)
            continue
        # Only a block of metadata is taken off; lines must keep their numbers otherwise.
        text = document.body if document.metadata else source.text
        found = split_blocks(replace(source, text=text), number)
        blocks += found
        for item in _read(found):
            (candidates if isinstance(item, Candidate) else no_rules).append(item)  # type: ignore[arg-type]
    return Extraction(tuple(candidates), tuple(no_rules), max(1, len(batches(blocks))))


def _document(text: str) -> Document:
    end = text.find("\n---", 3) if text.startswith("---") else 0
    if end > MAX_FRONTMATTER:
        return Document({}, {}, text)
    return read_document(text)


def excerpt(text: str) -> str:
    """The start of a passage, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_EXCERPT else f"{line[: MAX_EXCERPT - 3]}..."


def proposed_triggers(document: Document) -> tuple[ProposedTriggers, str | None]:
    """The triggers in a rule file's frontmatter, and its judge's question."""
    fields = rule_fields(document)
    triggers = Triggers(
        tuple(fields.get("condition") or ()),
        tuple(fields.get("ast_condition") or ()),
        tuple(fields.get("scope") or ()),
        tuple(fields.get("globs") or ()),
        fields.get("interrupt_mode"),
    )
    positive, negative = (
        _texts(document.metadata.get(key)) for key in ("positive_examples", "negative_examples")
    )
    return ProposedTriggers(triggers, positive, negative), fields.get("question")


def _rule_file(source: SourceText, document: Document) -> Candidate:
    proposed, question = proposed_triggers(document)
    own = {key: value for key in LIBRARY_KEYS if isinstance(value := document.metadata.get(key), str)}
    constraint = document.body.strip()
    stem = PurePosixPath(source.name).stem
    statement = Statement(constraint, own.get("applies_when", ""), own.get("exception", ""))
    title = own.get("title") or stem.replace("-", " ").capitalize() or _title(constraint)
    return Candidate(
        statement,
        title[:120],
        stem if is_name(stem) else slug_of(stem, constraint, default="rule"),
        source,
        section="",
        scenario_title=own.get("scenario_id", ""),
        proposed=proposed,
        question=question,
    )


def _read(blocks: Sequence[Block]) -> Iterator[Candidate | NoRule]:
    """The statements of one text; a `ttsr` code block belongs to the statement before it."""
    last: Candidate | None = None
    for block in blocks:
        if block.kind == "code" and block.code_language == TRIGGER_FENCE and last is not None:
            proposed, question = proposed_triggers(read_document(f"---\n{block.text}\n---\n"))
            last = replace(last, proposed=proposed, question=question, warnings=())
            continue
        for item in _statements(block):
            if last is not None:
                yield last
                last = None
            if isinstance(item, Candidate):
                last = item
            else:
                yield item
    if last is not None:
        yield last


def _statements(block: Block) -> Iterator[Candidate | NoRule]:
    match block.kind:
        case "heading":
            return
        case "code" | "quote":
            yield NoRule(f"a {block.kind} block states no rule", excerpt(block.text))
        case "item" | "row":
            yield _judged(block, block.text)
        case "paragraph":
            for sentence in sentences(block.text):
                yield _judged(block, sentence)


def _judged(block: Block, text: str) -> Candidate | NoRule:
    plain = " ".join(text.split())
    if len(plain) > MAX_STATEMENT:
        reason = f"it is longer than {MAX_STATEMENT:,} characters; state one obligation at a time"
        return NoRule(reason, excerpt(plain), uncertain=True)
    if is_vague(plain):
        return NoRule("it leaves open when it binds", excerpt(plain), uncertain=True)
    if not is_binding(plain) and block.kind != "row":
        return NoRule("no words that oblige or forbid", excerpt(plain))
    statement = read_statement(plain)
    return Candidate(
        statement,
        _title(statement.constraint.removeprefix(statement.applies_when)),
        slug_of(
            statement.constraint.removeprefix(statement.applies_when), statement.constraint, default="rule"
        ),
        block.source,
        block.section,
        block.headings[-1] if block.headings else "",
        warnings=_suggestions(plain),
    )


def _suggestions(text: str) -> tuple[str, ...]:
    return tuple(
        f"not enforced: a trigger could be `condition: '{re.escape(match['literal'])}'`"
        for match in _LITERAL.finditer(text)
    )


def _title(constraint: str) -> str:
    words = _MARKS.sub("", constraint).split()
    title = " ".join(words[:8]).strip(" .,;:，。")[:120]
    return title[:1].upper() + title[1:] or "Rule"


def _texts(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    return tuple(item for item in items if isinstance(item, str))
