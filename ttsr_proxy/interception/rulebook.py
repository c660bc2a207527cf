"""What of a project's rulebook one request is given: its prompt blocks, and the rules that it may read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

from ttsr_proxy.config import RulebookSettings
from ttsr_proxy.protocols.request import ApiRequest
from ttsr_proxy.sessions.identity import Identity
from ttsr_proxy.sessions.recall import Recalled
from ttsr_proxy.triggers.globs import compile_glob
from ttsr_proxy.triggers.rulebook import Rulebook

_READ_RULES_THEMSELVES = frozenset({"omp"})
"""Clients whose own tools resolve `rule://`."""


@dataclass(frozen=True, slots=True)
class RequestRulebook:
    prompt: str = ""
    """New text for the system prompt; empty when the conversation goes on with what it began with."""
    readable: Mapping[str, str] = field(default_factory=dict)
    """Name to content of the rules behind `rule://`, in the order in which they are listed."""

    def __bool__(self) -> bool:
        return bool(self.prompt or self.readable)


def request_rulebook(
    rulebook: Rulebook, settings: RulebookSettings, who: Identity, request: ApiRequest, recalled: Recalled
) -> RequestRulebook:
    """Empty where it is switched off, for side traffic, and for answers that can only be watched."""
    off = any(compile_glob(glob).matches(name) for glob in settings.disabled_agents for name in _names(who))
    if not settings.enabled or off or who.helper is not None or request.observed:
        return RequestRulebook()
    own = rulebook.for_agent(who.agent)
    prompt = ""
    if recalled.is_new:
        prompt = own.prompt.blocks(
            chain((request.system,), (item.text for item in request.items if item.kind == "text"))
        )
    return RequestRulebook(prompt, {} if who.client in _READ_RULES_THEMSELVES else own.readable)


def _names(who: Identity) -> tuple[str, str]:
    return who.client, who.agent
