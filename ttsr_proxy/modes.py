"""The words that both rules and settings use for how matching behaves (reference names)."""

from __future__ import annotations

from typing import Literal, TypeAlias

InterruptMode: TypeAlias = Literal["never", "prose-only", "tool-only", "always"]
RepeatMode: TypeAlias = Literal["once", "after-gap", "always"]
ContextMode: TypeAlias = Literal["discard", "keep"]
OnExhausted: TypeAlias = Literal["pass", "block"]
