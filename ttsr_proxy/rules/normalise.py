"""Turns frontmatter values into a rule's fields, and reports every value that has no effect.

What each key accepts is the reference's; foreign spellings become what they mean, and a wrong value costs
that key alone.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict, TypeVar, get_args

from ttsr_proxy.modes import ContextMode, InterruptMode, OnExhausted, RepeatMode
from ttsr_proxy.rules.frontmatter import Document
from ttsr_proxy.rules.metadata import CONDITION_KEYS, GLOB_KEYS, KNOWN_KEYS, LIBRARY_KEYS
from ttsr_proxy.rules.repairs import WHITESPACE, unquote
from ttsr_proxy.rules.shorthand import file_globs, from_regex_literal, split_list, tool_scopes, unique

REMINDER_BYTES = 1024
"""How long a `reminder` may be in UTF-8 before the body is used instead."""

_OFF, _ON = ("false", "no", "off"), ("true", "yes", "on")

# Windsurf, https://docs.windsurf.com/windsurf/cascade/memories: when a rule is active.
_WINDSURF_TRIGGERS: Mapping[str, bool] = {
    "always_on": True,
    "glob": False,
    "model_decision": False,
    "manual": False,
}

_Choice = TypeVar("_Choice", bound=str)


class RuleFields(TypedDict, total=False):
    """The fields of a rule that its frontmatter decides."""

    globs: Sequence[str] | None
    globs_key: str
    always_apply: bool | None
    description: str | None
    condition: Sequence[str] | None
    ast_condition: Sequence[str] | None
    scope: Sequence[str] | None
    interrupt_mode: InterruptMode | None
    enabled: bool
    disabled_by: str | None
    agents: Sequence[str] | None
    question: str | None
    reminder: str | None
    repeat_mode: RepeatMode | None
    repeat_gap: int | None
    context_mode: ContextMode | None
    max_interrupts: int | None
    on_exhausted: OnExhausted | None
    observe: bool | None
    warnings: tuple[str, ...]


def rule_fields(document: Document) -> RuleFields:
    """Read a document's metadata; never raises."""
    values = _Values(document)
    condition, inferred_scope = values.condition()
    scope = unique([*values.tokens("scope"), *inferred_scope])
    globs_key, globs = values.globs()
    disabled_by = values.disabled_by()
    fields = RuleFields(
        globs=globs,
        globs_key=globs_key,
        always_apply=values.always_apply(),
        description=values.text("description"),
        condition=condition or None,
        ast_condition=values.strings("astCondition") or None,
        scope=scope or None,
        interrupt_mode=values.interrupt_mode(),
        enabled=disabled_by is None,
        disabled_by=disabled_by,
        agents=unique(agent.lower() for agent in values.tokens("agents")) or None,
        question=(values.text("question") or "").strip(WHITESPACE) or None,
        reminder=values.reminder(),
        repeat_mode=values.choice("repeatMode", get_args(RepeatMode)),
        repeat_gap=values.count("repeatGap"),
        context_mode=values.choice("contextMode", get_args(ContextMode)),
        max_interrupts=values.count("maxInterrupts"),
        on_exhausted=values.choice("onExhausted", get_args(OnExhausted)),
        observe=values.switch("observe"),
    )
    values.report_unknown_keys()
    fields["warnings"] = tuple(values.warnings)
    return fields


class _Values:
    """The metadata of one document, with a reader for each kind of value."""

    def __init__(self, document: Document) -> None:
        self._values = document.metadata
        self._lines = document.lines
        self.warnings: list[str] = []

    def warn(self, key: str, message: str) -> None:
        self.warnings.append(f"line {self._lines[key]}: `{key}`: {message}")

    def text(self, key: str) -> str | None:
        """A string, verbatim but for curly quotes around it."""
        value = self._values.get(key)
        if isinstance(value, str):
            return self._without_curly_quotes(key, value)
        if value is not None:
            self.warn(key, f"{_shown(value)} is not text and is ignored; put it in quotes")
        return None

    def strings(self, key: str) -> list[str]:
        """A string or a list of strings, each trimmed, each once, empty ones dropped."""
        value = self._values.get(key)
        if value is None:
            return []
        items = value if isinstance(value, list) else [value]
        texts = [item for item in items if isinstance(item, str)]
        for item in items:
            if not isinstance(item, str):
                self.warn(key, f"{_shown(item)} is not text and is ignored; put it in quotes")
        return unique(token for text in texts if (token := text.strip(WHITESPACE)))

    def tokens(self, key: str) -> list[str]:
        """A string or a list of strings, each a comma list, without quotes around the parts."""
        parts = [part for text in self.strings(key) for part in self._split(key, text)]
        return unique(part for part in parts if part)

    def condition(self) -> tuple[list[str], list[str]]:
        """The conditions, and the scope that file globs among them stand for."""
        key = next((key for key in CONDITION_KEYS if self._values.get(key) is not None), None)
        if key is None:
            return [], []
        conditions: list[str] = []
        globs: list[str] = []
        for written in self.strings(key):
            text = self._without_curly_quotes(key, written)
            found = file_globs(text)
            globs += found
            if not found:
                conditions.append(self._without_slashes(key, text))
        if globs and not conditions:
            conditions = [".*"]
        return unique(conditions), tool_scopes(globs)

    def globs(self) -> tuple[str, list[str] | None]:
        """The key that globs stand under, and the globs; None when the author gave none."""
        given = [key for key in GLOB_KEYS if self._values.get(key) is not None]
        if not given:
            return GLOB_KEYS[0], None
        key, *others = given
        for other in others:
            self.warn(other, f"ignored, since `{key}` is given too")
        value = self._values[key]
        if isinstance(value, list):
            self.strings(key)
            return key, [self._without_curly_quotes(key, item) for item in value if isinstance(item, str)]
        return key, self.tokens(key) or None

    def disabled_by(self) -> str | None:
        """What in the file switches the rule off, as `key: value`."""
        enabled = self._values.get("enabled")
        word = unquote(str(enabled).strip(WHITESPACE).lower())[0]
        if enabled is not None and word in _OFF:
            return f"enabled: {enabled if isinstance(enabled, str) else word}"
        if enabled is not None and word not in _ON:
            self.warn("enabled", f"must be true or false, not {_shown(enabled)}; the rule stays on")
        if self._values.get("trigger") == "manual":
            return "trigger: manual"
        if self._values.get("globs") is None and self._values.get("paths") == []:
            return "paths: [] (no file)"
        return None

    def always_apply(self) -> bool:
        """True for the YAML boolean `true` only; Windsurf's `trigger` decides where the key is absent."""
        trigger = self._values.get("trigger")
        triggered = _WINDSURF_TRIGGERS.get(trigger) if isinstance(trigger, str) else None
        if trigger is not None and triggered is None:
            self.warn(
                "trigger", f"must be one of {_listed(_WINDSURF_TRIGGERS)}, not {_shown(trigger)}; ignored"
            )
        value = self._values.get("alwaysApply")
        if value is None:
            return bool(triggered)
        if not isinstance(value, bool):
            self.warn("alwaysApply", f"must be true or false without quotes; {_shown(value)} counts as false")
        return value is True

    def interrupt_mode(self) -> InterruptMode | None:
        value = self._values.get("interruptMode")
        if value is False or (isinstance(value, str) and value.lower() in _OFF):
            self.warn("interruptMode", f"{_shown(value)} was read as 'never'")
            return "never"
        return self.choice("interruptMode", get_args(InterruptMode))

    def choice(self, key: str, allowed: tuple[_Choice, ...]) -> _Choice | None:
        """One of the allowed words, exactly as written here."""
        value = self._values.get(key)
        if isinstance(value, str):
            value = self._without_curly_quotes(key, value)
        if value is None:
            return None
        for word in allowed:
            if word == value:
                return word
        hint = _suggestion(value, allowed) if isinstance(value, str) else ""
        self.warn(key, f"must be one of {_listed(allowed)}, not {_shown(value)}; ignored{hint}")
        return None

    def switch(self, key: str) -> bool | None:
        """A YAML boolean; anything else is told and counts as not given."""
        value = self._values.get(key)
        if value is None or isinstance(value, bool):
            return value
        self.warn(key, f"must be true or false without quotes, not {_shown(value)}; ignored")
        return None

    def count(self, key: str) -> int | None:
        """A whole number, 0 or more."""
        value = self._values.get(key)
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        self.warn(key, f"must be a whole number of 0 or more, not {_shown(value)}; ignored")
        return None

    def reminder(self) -> str | None:
        text = self.text("reminder")
        if text is None:
            return None
        if not text.strip(WHITESPACE):
            self.warn("reminder", "empty; the body is used")
            return None
        size = len(text.encode("utf-8", errors="surrogatepass"))
        if size > REMINDER_BYTES:
            self.warn("reminder", f"{size:,} bytes, at most {REMINDER_BYTES:,} are allowed; the body is used")
            return None
        return text

    def report_unknown_keys(self) -> None:
        for key in self._values:
            if key not in KNOWN_KEYS and key not in LIBRARY_KEYS:
                self.warn(key, f"not a key of rule files; ignored{_suggestion(key, KNOWN_KEYS)}")

    def _split(self, key: str, text: str) -> list[str]:
        parts: list[str] = []
        for part in split_list(text):
            token, curly = unquote(part)
            if curly:
                self.warn(key, f"curly quotes around {_shown(token)} were removed")
            parts.append(token)
        return parts

    def _without_curly_quotes(self, key: str, text: str) -> str:
        token, curly = unquote(text)
        if not curly or not any(char.isalnum() for char in token):
            # A condition may be about curly quotes: `“|”` must stay what it is.
            return text
        self.warn(key, f"curly quotes around {_shown(token)} were removed")
        return token

    def _without_slashes(self, key: str, condition: str) -> str:
        pattern = from_regex_literal(condition)
        if pattern is None:
            return condition
        self.warn(key, f"the regex literal {_shown(condition)} was read as {_shown(pattern)}")
        return pattern


def _suggestion(word: str, known: Sequence[str]) -> str:
    folded = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=0.75)
    return f" (did you mean `{folded[close[0]]}`?)" if close else ""


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
