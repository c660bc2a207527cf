"""Interrupt logs as busy weeks leave them, always the same for the same arguments."""

from __future__ import annotations

import random
from collections.abc import Iterator

from ttsr_proxy.interrupts.record import Action, InterruptRecord, Outcome

__all__ = ["many_interrupts"]

_RULES = (
    ("no-eval", "src/report.py", "result = ", "eval(expression)", "", "ast.literal_eval(expression)"),
    ("no-any-type", "web/api.ts", "function parse(input", ": any", ") {", ": unknown"),
    ("no-bare-except", "jobs/sync.py", "    ", "except:", "\n        pass", "except OSError as error:"),
    ("no-print-debugging", "src/import_orders.py", "    ", "print(order)", "", "log.debug(order)"),
    ("no-em-dash", "", "The cache is warm ", "—", " nothing is read from disk.", ":"),
)
_MODELS = ("claude-sonnet-4-5", "gpt-5.2-codex", "claude-opus-4-5")
_CLIENTS = ("claude-code", "codex", "opencode")
_ENDS: tuple[tuple[Action, Outcome], ...] = (
    *[("interrupted", "clean")] * 12,
    *[("interrupted", "violated again")] * 2,
    ("interrupted", "failed"),
    ("suppressed", "clean"),
    ("observed", "pending"),
    ("exhausted", "violated again"),
)


def many_interrupts(count: int, until: float, days: float) -> Iterator[InterruptRecord]:
    """So many records, oldest first, over so many days up to `until` (seconds since the epoch)."""
    chance = random.Random(20)
    step = days * 86_400 / count
    for number in range(count):
        rule, path, before, matched, after, corrected = chance.choice(_RULES)
        action, outcome = chance.choice(_ENDS)
        conversation = number // 12
        interrupted = action == "interrupted"
        yield InterruptRecord(
            id=f"{number:08x}",
            time=until - (count - number) * step + chance.random() * step,
            project="default",
            conversation=f"{conversation:08x}-6f1d-4f6e-9d53-5f0c3a1b7e20",
            request=f"{number:08x}-request",
            turn=number % 12,
            attempt=1,
            client=_CLIENTS[conversation % len(_CLIENTS)],
            agent="main",
            model=_MODELS[conversation % len(_MODELS)],
            protocol="anthropic",
            rule=rule,
            rule_path=f".omp/rules/{rule}.md",
            trigger="regex",
            pattern=matched,
            source="tool" if path else "text",
            tool="Write" if path else None,
            paths=(path,) if path else (),
            matched=matched,
            before=before,
            after=after,
            violation=f"# As asked:\n{before}{matched}{after}\n",
            correction=f"# As asked:\n{before}{corrected}{after}\n" if outcome == "clean" else "",
            action=action,
            outcome=outcome,
            held_chars=chance.randrange(400),
            seconds_added=round(chance.random() * 3, 2) if interrupted else 0.0,
            tokens_wasted=chance.randrange(20, 900) if interrupted else 0,
            injected=f"Your last output broke the rule {rule}; it was not executed. Do without {matched}."
            if interrupted
            else "",
            false_positive=number % 60 == 0,
        )
