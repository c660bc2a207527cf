"""The canonical rule (reference, "Canonical rule shape")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ttsr_proxy.modes import ContextMode, InterruptMode, OnExhausted, RepeatMode

_LISTS = ("globs", "condition", "ast_condition", "scope", "agents")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, whatever file format it came from. Its identity is `name`.

    List fields take any sequence of strings and are kept verbatim as tuples; `None` means that the author
    did not give the key. Shorthands and comma splitting happen in `from_markdown` only.
    """

    name: str
    path: str = ""
    content: str = ""
    globs: Sequence[str] | None = None
    always_apply: bool | None = None
    description: str | None = None
    condition: Sequence[str] | None = None
    ast_condition: Sequence[str] | None = None
    scope: Sequence[str] | None = None
    interrupt_mode: InterruptMode | None = None
    enabled: bool = True
    agents: Sequence[str] | None = None
    question: str | None = None
    reminder: str | None = None
    repeat_mode: RepeatMode | None = None
    repeat_gap: int | None = None
    context_mode: ContextMode | None = None
    max_interrupts: int | None = None
    on_exhausted: OnExhausted | None = None
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in _LISTS:
            value = getattr(self, field)
            if isinstance(value, str):
                raise TypeError(f"Rule.{field} takes a sequence of strings, not one string: {value!r}")
            if value is not None:
                object.__setattr__(self, field, tuple(value))
