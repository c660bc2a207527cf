"""Does a trigger do what it claims? It is tried with the matcher's own functions.

Every positive example must match, no negative one may, ordinary text must not, and the search must stay
quick. What is tried may be hostile, so that the work is done in the prover's process.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from ttsr_proxy.library.model import Triggers
from ttsr_proxy.rules.model import CATCH_ALL, Rule
from ttsr_proxy.triggers.ast import LANGUAGES
from ttsr_proxy.triggers.compiled import CompiledRule, RuleRejected, compile_rule
from ttsr_proxy.triggers.match import StreamContext
from ttsr_proxy.triggers.ruleset import RuleSet

MAX_PATTERN = 500
"""Characters of one pattern."""

MAX_EXAMPLE = 4_000
MAX_EXAMPLES = 20

SLOW_SECONDS = 1.0
"""The longest that all searches of one pattern in worst-case texts may take."""

WORST_CASE_CHARACTERS = 64 * 1024

_EXTENSION = re.compile(r"\.(\w+)(?=[},)]|$)")
_EXTENSION_OF = {language: extension for extension, language in reversed(LANGUAGES.items())}


@dataclass(frozen=True, slots=True)
class Claim:
    """Triggers, and the texts that they should and should not match."""

    triggers: Triggers
    positive: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()
    needs_examples: bool = True
    """Whether at least one example of each kind is demanded, as of a model's proposal."""


def faults(claim: Claim) -> list[str]:
    """What is wrong with a claim; empty if it holds."""
    triggers = claim.triggers
    found = [*_form(claim)]
    if found:
        return found
    rule = _rule(triggers)
    try:
        compiled = compile_rule(rule)
    except RuleRejected as reason:
        return [str(reason)]
    found += compiled.warnings
    found += _examples(claim)
    for pattern in triggers.condition:
        found += _condition(pattern)
    for pattern in triggers.ast_condition:
        found += _in_ordinary_code(pattern, compiled)
    return found


def _form(claim: Claim) -> Iterator[str]:
    triggers = claim.triggers
    for pattern in (*triggers.condition, *triggers.ast_condition):
        if len(pattern) > MAX_PATTERN:
            yield f"the pattern {pattern[:40]!r}... is longer than {MAX_PATTERN} characters"
    if CATCH_ALL in triggers.condition:
        yield f"{CATCH_ALL!r} matches everything; give a pattern that only a violation matches"
    if triggers.ast_condition and not _languages(triggers):
        yield "astCondition needs a scope with a file extension, such as tool:edit(*.py)"
    for examples in (claim.positive, claim.negative):
        if len(examples) > MAX_EXAMPLES or any(len(example) > MAX_EXAMPLE for example in examples):
            yield f"at most {MAX_EXAMPLES} examples of at most {MAX_EXAMPLE:,} characters each"
    if claim.needs_examples and not (claim.positive and claim.negative):
        yield "positive_examples and negative_examples need at least one entry each"


def _examples(claim: Claim) -> Iterator[str]:
    triggers = claim.triggers
    kept = _anywhere(triggers)
    for example in claim.positive:
        if not kept or not _matches(kept, example):
            yield f"the positive example {example[:120]!r} does not match"
    for example in claim.negative:
        if kept and _matches(kept, example):
            yield f"the negative example {example[:120]!r} matches"


def _condition(pattern: str) -> Iterator[str]:
    """What speaks against a regular expression by itself."""
    rules = RuleSet([Rule("candidate", condition=(pattern,), scope=("text",))])
    context = StreamContext("text")
    if rules.check("", context):
        yield f"{pattern!r} matches the empty text"
        return
    hits = [snippet for snippet in ordinary_snippets() if rules.check(snippet, context)]
    if hits:
        yield f"{pattern!r} is too broad: it matches ordinary text such as {hits[0][:120]!r}"
    started = time.perf_counter()
    for text in _worst_cases(pattern):
        rules.check(text, context)
    if time.perf_counter() - started > SLOW_SECONDS:
        yield f"{pattern!r} is too slow on long texts"


def _in_ordinary_code(pattern: str, compiled: CompiledRule) -> Iterator[str]:
    languages = _languages(compiled.rule)
    rules = RuleSet([Rule("candidate", ast_condition=(pattern,), scope=("tool",))])
    for language in languages:
        context = StreamContext("tool", "write", (f"x.{_EXTENSION_OF[language]}",), "write")
        for snippet in ordinary_snippets():
            if rules.check(snippet, context):
                yield f"{pattern!r} is too broad: it matches ordinary code such as {snippet[:120]!r}"
                return


def _worst_cases(pattern: str) -> Iterator[str]:
    # What the pattern itself is made of comes closest to a match that fails late.
    own = re.sub(r"[\\^$.|?*+()\[\]{}]", "", pattern) or "x"
    for unit in ("a", " ", "\n", "ab ", "(", "x=1;\n", own, f"{own} "):
        yield (unit * (WORST_CASE_CHARACTERS // len(unit) + 1))[:WORST_CASE_CHARACTERS]


def _matches(rules: Sequence[tuple[RuleSet, StreamContext]], example: str) -> bool:
    return any(ruleset.check(example, context) for ruleset, context in rules)


def _anywhere(triggers: Triggers) -> list[tuple[RuleSet, StreamContext]]:
    """The patterns without their scope, each kind in a place where it can match."""
    places: list[tuple[RuleSet, StreamContext]] = []
    if triggers.condition:
        rule = Rule("candidate", condition=triggers.condition, scope=("text",))
        places.append((RuleSet([rule]), StreamContext("text")))
    if triggers.ast_condition:
        rule = Rule("candidate", ast_condition=triggers.ast_condition, scope=("tool",))
        for language in _languages(triggers):
            context = StreamContext("tool", "write", (f"x.{_EXTENSION_OF[language]}",), "write")
            places.append((RuleSet([rule]), context))
    return places


def _languages(part: Triggers | Rule) -> list[str]:
    """The languages of the file extensions that scope and globs name."""
    texts = (*(part.scope or ()), *(part.globs or ()))
    extensions = [name for text in texts for name in _EXTENSION.findall(text.lower())]
    return list(dict.fromkeys(LANGUAGES[name] for name in extensions if name in LANGUAGES))


def _rule(triggers: Triggers) -> Rule:
    return Rule(
        "candidate",
        condition=triggers.condition or None,
        ast_condition=triggers.ast_condition or None,
        scope=triggers.scope or None,
        globs=triggers.globs or None,
    )


@lru_cache(maxsize=1)
def ordinary_snippets() -> tuple[str, ...]:
    """Short pieces of ordinary code and prose that no rule should object to."""
    text = resources.files(__package__).joinpath("ordinary.txt").read_text(encoding="utf-8")
    return tuple(snippet.strip("\n") for snippet in text.split("\n%%\n"))
