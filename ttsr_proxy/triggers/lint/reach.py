"""Findings about where a rule looks: scopes, globs and modes that leave it nothing to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from ttsr_proxy.triggers.ast import LANGUAGES
from ttsr_proxy.triggers.globs import Glob, GlobError, PathNames, compile_glob, path_names
from ttsr_proxy.triggers.lint.finding import Finding, Subject
from ttsr_proxy.triggers.scope import parse_scope

_LITERAL_PATH = re.compile(r"[\w./ -]+")
_DOTS = re.compile(r"(?:^|/)\.{1,2}(?=/)")
_EXTENSION = re.compile(r"\.(\w+|\{[\w,.]+\})$")


def check_scope(subject: Subject) -> Iterator[Finding]:
    """Tokens that are not understood, tools that do not exist, and scopes that reach nothing."""
    rule = subject.rule
    scope, warnings = parse_scope(rule.scope)
    for warning in warnings:
        yield subject.finding(
            "error", "invalid-scope", "scope", warning,
            "Write text, thinking, tool, tool:NAME or tool:NAME(GLOB).",
        )  # fmt: skip
    watches = bool(rule.condition or rule.ast_condition or rule.question)
    if watches and not scope.reachable:
        yield subject.finding(
            "error", "scope-reaches-nothing", "scope", "the scope reaches no stream, so the rule never fires",
            "Name at least one of text, thinking and tool.",
        )  # fmt: skip
    for token in scope.tools:
        if token.tool is None or not subject.tools or _is_known(token.tool, subject.tools):
            continue
        close = difflib.get_close_matches(token.tool, subject.tools, n=1, cutoff=0.7)
        hint = f" (did you mean tool:{close[0]}?)" if close else ""
        yield subject.finding(
            "warning", "unknown-tool", "scope",
            f"no known tool or kind of tool is named {token.tool!r}{hint}",
            "Correct the name, or add the agent's tool to ttsr.toolFamilies.",
        )  # fmt: skip
    if rule.ast_condition and scope.reachable and not scope.any_tool and not scope.tools:
        yield subject.finding(
            "error", "ast-condition-without-tool", "scope",
            "the scope has no tool, and astCondition looks only at what tools write",
            "Add tool:edit and tool:write to the scope.",
        )  # fmt: skip


def check_globs(subject: Subject) -> Iterator[Finding]:
    """Globs that cannot match a path, or not together with the scope."""
    rule = subject.rule
    scope, _ = parse_scope(rule.scope)
    key = rule.globs_key if rule.globs else "globs"
    gate = list(_compiled(rule.globs or ()))
    for glob in gate:
        if (why := _never(glob.text)) is not None:
            what = f"the glob {glob.text!r} {why[0]}"
            yield subject.finding("error", "glob-matches-nothing", key, what, why[1])
    for token in scope.tools:
        if token.glob is not None and (why := _never(token.glob.text)) is not None:
            yield subject.finding(
                "error", "glob-matches-nothing", "scope", f"the glob {token.glob.text!r} {why[0]}", why[1]
            )
    if not rule.condition and not rule.ast_condition:
        return
    if rule.globs and scope.reachable and not scope.any_tool and not scope.tools:
        yield subject.finding(
            "error", "globs-without-tool", key,
            "the scope has no tool, and prose has no path that a glob could match, so the rule never fires",
            "Remove the globs, or watch tools.",
        )  # fmt: skip
    scoped = [token.glob for token in scope.tools if token.glob is not None]
    only_scoped = bool(scoped) and len(scoped) == len(scope.tools) and not scope.any_tool
    if gate and only_scoped and not _can_meet(gate, scoped):
        yield subject.finding(
            "error", "globs-contradict-scope", key,
            f"no file can match both globs ({', '.join(glob.text for glob in gate)}) and the scope's"
            f" ({', '.join(dict.fromkeys(glob.text for glob in scoped))})",
            "Name the files in one of the two places.",
        )  # fmt: skip
    if rule.ast_condition and (endings := _endings(gate or scoped)) and not endings & LANGUAGES.keys():
        yield subject.finding(
            "error", "no-language", key if gate else "scope",
            f"astCondition knows no language for files that end in {', '.join(sorted(endings))}",
            "Use a condition for these files.",
        )  # fmt: skip


def check_modes(subject: Subject) -> Iterator[Finding]:
    """Modes that cannot have an effect where the rule looks."""
    compiled, mode = subject.compiled, subject.rule.interrupt_mode
    if compiled is None:
        return
    watches_tools = compiled.scope.any_tool or bool(compiled.scope.tools)
    if (mode == "prose-only" and not subject.watches_prose) or (mode == "tool-only" and not watches_tools):
        watched = "tool calls" if watches_tools else "prose"
        yield subject.finding(
            "warning", "mode-never-interrupts", "interruptMode",
            f"the rule watches {watched} only, so with {mode} it never interrupts",
            "Write interruptMode: never if that is meant, else always.",
        )  # fmt: skip


def _is_known(tool: str, tools: frozenset[str]) -> bool:
    return tool in tools or any(fnmatchcase(tool, name) for name in tools if "*" in name)


def _compiled(texts: Sequence[str]) -> Iterator[Glob]:
    for text in texts:
        try:
            yield compile_glob(text.strip())
        except GlobError:
            continue


def _never(glob: str) -> tuple[str, str] | None:
    """Why a glob matches no path, and what to write instead."""
    if glob.endswith("/"):
        return "ends with / and matches no file", f"Write {glob}** for everything below it."
    if glob.startswith("~"):
        return "starts with ~, which is not expanded", "Write the absolute path."
    if glob.startswith(("./", "../")) or "/./" in glob or "/../" in glob:
        plain = _DOTS.sub("", glob).lstrip("/")
        return "has a . or .. segment, which paths do not have", f"Write {plain}."
    if "\\" in glob and "/" not in glob and re.search(r"\w\\\w", glob):
        return "has backslashes between names", f"Write {glob.replace(chr(92), '/')}."
    return None


def _can_meet(gate: list[Glob], scoped: list[Glob]) -> bool:
    """Whether one path can match a glob of each; in doubt True."""
    if any(glob.negated for glob in (*gate, *scoped)):
        return True
    own, other = _endings(gate), _endings(scoped)
    if own and other and not own & other:
        return False
    literal = [glob for glob in gate if _LITERAL_PATH.fullmatch(glob.text)]
    if len(literal) == len(gate):
        names: list[PathNames] = [path_names(glob.text, None) for glob in literal]
        return any(name.match(glob) for name in names for glob in scoped)
    return True


def _endings(globs: list[Glob]) -> set[str]:
    """The file extensions that all these globs are limited to; empty when one of them is not."""
    endings: set[str] = set()
    for glob in globs:
        match = _EXTENSION.search(glob.text)
        if match is None or glob.negated:
            return set()
        endings.update(part.strip(".").rpartition(".")[2].lower() for part in match[1].strip("{}").split(","))
    return endings
