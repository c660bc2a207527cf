"""Conditions: JavaScript regular expressions compiled for the `regex` package, and what they promise."""

from ttsr_proxy.triggers.jsregex.condition import CompiledCondition
from ttsr_proxy.triggers.jsregex.errors import PatternError
from ttsr_proxy.triggers.jsregex.translate import compile_condition

__all__ = ["CompiledCondition", "PatternError", "compile_condition"]
