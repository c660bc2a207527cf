"""Keeps coding agents to your rules while the model is still streaming."""

from ttsr_proxy.rules.model import Rule
from ttsr_proxy.triggers.match import Match, StreamContext
from ttsr_proxy.triggers.ruleset import RuleSet

__all__ = ["Match", "Rule", "RuleSet", "StreamContext"]
