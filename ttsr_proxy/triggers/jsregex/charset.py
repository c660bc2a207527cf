"""Sets of code points, and the sets that JavaScript's escapes stand for.

A set is a sorted tuple of disjoint, non-adjacent, inclusive ranges. Every atom of a condition that reads one
character is such a set once it is parsed, with case folding already applied, so nothing downstream needs to
know about escapes, classes or the `i` flag.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from typing import TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]

LAST = 0x10FFFF
EMPTY: Ranges = ()
ANY: Ranges = ((0, LAST),)


def normalise(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Sort and merge ranges into a set."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def of(characters: str) -> Ranges:
    """The set of the characters of a string."""
    return normalise((ord(c), ord(c)) for c in characters)


def union(*sets: Ranges) -> Ranges:
    return normalise(r for s in sets for r in s)


def complement(ranges: Ranges) -> Ranges:
    gaps: list[tuple[int, int]] = []
    start = 0
    for low, high in ranges:
        if low > start:
            gaps.append((start, low - 1))
        start = high + 1
    if start <= LAST:
        gaps.append((start, LAST))
    return tuple(gaps)


def intersection(left: Ranges, right: Ranges) -> Ranges:
    found: list[tuple[int, int]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        low, high = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if low <= high:
            found.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def difference(left: Ranges, right: Ranges) -> Ranges:
    return intersection(left, complement(right))


def is_subset(left: Ranges, right: Ranges) -> bool:
    return not difference(left, right)


def is_disjoint(left: Ranges, right: Ranges) -> bool:
    return not intersection(left, right)


def contains(ranges: Ranges, code: int) -> bool:
    index = bisect_right(ranges, (code, LAST)) - 1
    return index >= 0 and ranges[index][0] <= code <= ranges[index][1]


def single(ranges: Ranges) -> str | None:
    """The set's only character, if it has exactly one."""
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return chr(ranges[0][0])
    return None


def ascii_letter_pair(ranges: Ranges) -> str | None:
    """The lower-case letter if the set is an ASCII letter in both its cases and nothing else."""
    if len(ranges) == 2 and all(low == high for low, high in ranges):
        upper, lower = chr(ranges[0][0]), chr(ranges[1][0])
        if lower.isascii() and upper.isalpha() and upper.lower() == lower:
            return lower
    return None


# ECMA-262 22.2.2.9 (CharacterClassEscape) and 12.3 (LineTerminator). `\s` is WhiteSpace plus LineTerminator.
LINE_TERMINATORS = of("\n\r\u2028\u2029")
NOT_LINE_TERMINATORS = complement(LINE_TERMINATORS)
DIGIT = ((0x30, 0x39),)
WORD = normalise([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
NOT_WORD = complement(WORD)
SPACE = union(
    of("\t\n\v\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff"),
    ((0x2000, 0x200A),),
)
CLASS_ESCAPES: dict[str, Ranges] = {
    "d": DIGIT,
    "D": complement(DIGIT),
    "s": SPACE,
    "S": complement(SPACE),
    "w": WORD,
    "W": NOT_WORD,
}


def canonicalise(code: int) -> int:
    """ECMA-262 22.2.2.7.3 without the u flag: simple upper case, never from outside ASCII into it.

    JavaScript folds UTF-16 code units, so characters beyond the BMP have no case here either.
    """
    if code > 0xFFFF:
        return code
    upper = chr(code).upper()
    if len(upper) != 1 or ord(upper) > 0xFFFF:
        return code
    folded = ord(upper)
    return code if code >= 128 > folded else folded


@cache
def _case_classes() -> tuple[tuple[int, ...], ...]:
    classes: defaultdict[int, list[int]] = defaultdict(list)
    for code in range(0x10000):
        classes[canonicalise(code)].append(code)
    return tuple(tuple(members) for members in classes.values() if len(members) > 1)


def fold(ranges: Ranges) -> Ranges:
    """Close a set under JavaScript's case-insensitive equality."""
    if not ranges or ranges == ANY:
        return ranges
    if ranges[-1][1] < 128:
        # Nothing outside ASCII is equal to anything inside it, so the large table is not needed.
        swapped = (chr(c).swapcase() for low, high in ranges for c in range(low, high + 1))
        return union(ranges, of("".join(swapped)))
    added = [
        (member, member)
        for members in _case_classes()
        if any(contains(ranges, member) for member in members)
        for member in members
    ]
    return normalise([*ranges, *added])


def to_class(ranges: Ranges) -> str:
    """The set in `regex` syntax, as one atom that means the same under any flags but IGNORECASE."""
    if not ranges:
        return r"[^\x00-\U0010FFFF]"
    if ranges == ANY:
        return r"[\x00-\U0010FFFF]"
    one = single(ranges)
    if one is not None:
        return escape(one)
    outside = complement(ranges)
    if len(outside) < len(ranges):
        return f"[^{_members(outside)}]"
    return f"[{_members(ranges)}]"


def _members(ranges: Ranges) -> str:
    parts: list[str] = []
    for low, high in ranges:
        parts.append(escape(chr(low)))
        if high > low:
            parts.append("-" if high > low + 1 else "")
            parts.append(escape(chr(high)))
    return "".join(parts)


def escape(character: str) -> str:
    """One character in `regex` syntax, inside a class or out of it."""
    code = ord(character)
    if (character.isascii() and character.isalnum()) or character == "_":
        return character
    if 0x20 < code < 0x7F:
        return "\\" + character
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
