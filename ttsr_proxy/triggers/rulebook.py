"""A project's rulebook as each agent has it: what its prompt says, and which rules it may read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ttsr_proxy.rules.buckets import Inventory
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.rules.prompt import RulePrompt
from ttsr_proxy.triggers.ruleset import is_for_agent

_CACHED = 64
"""Agents whose rulebook is kept; sub-agents are known by ids that never come again."""


@dataclass(frozen=True, slots=True)
class AgentRulebook:
    prompt: RulePrompt
    readable: Mapping[str, str]
    """Name to content of the rules behind `rule://`, in the order in which they are listed."""


class Rulebook:
    """The rules of one inventory. What an agent has of them is worked out once."""

    def __init__(self, inventory: Inventory) -> None:
        self._always_apply = inventory.always_apply
        self._rulebook = inventory.rulebook
        self._addressable = inventory.addressable
        self._by_agent: dict[str, AgentRulebook] = {}

    def for_agent(self, agent: str) -> AgentRulebook:
        """The rules whose `agents` globs match the name, and those that have none."""
        known = self._by_agent.get(agent)
        if known is None:
            known = self._make(agent)
            if len(self._by_agent) >= _CACHED:
                self._by_agent.clear()
            self._by_agent[agent] = known
        return known

    def _make(self, agent: str) -> AgentRulebook:
        def meant(rules: tuple[Rule, ...]) -> list[Rule]:
            return [rule for rule in rules if is_for_agent(rule, agent)]

        readable = {rule.name: rule.content for rule in meant(self._addressable)}
        prompt = RulePrompt(meant(self._always_apply), meant(self._rulebook))
        return AgentRulebook(prompt, MappingProxyType(readable))
