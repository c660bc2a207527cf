"""Settings: what can be configured, with its defaults."""

from __future__ import annotations

from dataclasses import dataclass, field

from ttsr_proxy.modes import ContextMode, InterruptMode, OnExhausted, RepeatMode


@dataclass(frozen=True, slots=True)
class HoldSettings:
    """How much prose may be held back while a match is still possible."""

    max_chars: int = 4096
    max_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """How often a response and a conversation may be interrupted."""

    per_rule: int = 2
    per_response: int = 4
    per_conversation: int = 20
    on_exhausted: OnExhausted = "pass"


@dataclass(frozen=True, slots=True)
class TtsrSettings:
    """Matching (`ttsr:` in the configuration file); names as in the reference."""

    enabled: bool = True
    interrupt_mode: InterruptMode = "always"
    context_mode: ContextMode = "discard"
    repeat_mode: RepeatMode = "once"
    repeat_gap: int = 10
    builtin_rules: bool = True
    disabled_rules: tuple[str, ...] = ()
    observe_helpers: bool = True
    hold: HoldSettings = field(default_factory=HoldSettings)
    budget: BudgetSettings = field(default_factory=BudgetSettings)
