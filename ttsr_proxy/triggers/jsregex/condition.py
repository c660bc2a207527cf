"""A compiled condition: two patterns and what the matcher needs to know about them."""

from __future__ import annotations

from dataclasses import dataclass

import regex


@dataclass(frozen=True, slots=True)
class CompiledCondition:
    """One condition, ready to match.

    `streaming.search(text, pos, partial=True)` returns a complete match if there is one anywhere from `pos`
    on; only if there is none does it return the leftmost partial match, before whose start nothing can match
    any more, whatever follows. `pos` is 0 or the start of an earlier partial match. The two patterns agree on
    whether there is a match at a start, not on how far it extends: `streaming` has no lazy loops.
    """

    source: str
    """The condition as its author wrote it."""
    warnings: tuple[str, ...]
    portable: bool
    """It is a JavaScript regular expression, so that the reference implementation accepts it too."""
    final: regex.Pattern[str]
    """For a complete text: exactly JavaScript's verdict."""
    streaming: regex.Pattern[str]
    """For a text that may go on: matches only what no continuation can undo."""
    line_bound: bool = False
    r"""A text matches if and only if one of its lines does, cut at `\n \r U+2028 U+2029` and without them.

    `final` may then run on each line alone. `streaming` may run on a line with its terminator included, which
    is what settles verdicts at the line's end.
    """
    needs_end: bool = True
    """Some verdict is settled by nothing but the end of the block."""
    monotone: bool = False
    """Both patterns mean the same: a match of `final` is one whatever follows."""
    max_lookbehind: int | None = None
    """Characters to the left of a match that can matter; None is without bound."""
    open_ended: bool = True
    """A match could start nearly anywhere and stay open without bound: held for, it holds everything."""
    literals: tuple[tuple[str, ...], ...] = ()
    """Of each of these groups, every match contains at least one string; in ASCII lower case if
    `case_insensitive`."""
    case_insensitive: bool = False
    """`literals` are to be looked for in the text's lower case (`str.lower`)."""
    min_length: int = 0
    """The shortest match in characters; 0 if the empty string can be one."""
    max_length: int | None = None
    """The longest match in characters; None is without bound."""
    linear: bool = False
    """Proven to take time linear in the text, so that no time limit is needed."""
