"""ECMAScript regular expressions without the u flag, read into nodes.

The grammar is ECMA-262 22.2.1 as web browsers really accept it (Annex B.1.2), plus modifiers
(`(?i-s:...)`) and the leading `(?ims)` that the reference implementation turns into flags. Semantic rules
that need the whole pattern (which backreferences can ever be set) are `backrefs`' business.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ttsr_proxy.triggers.jsregex import charset
from ttsr_proxy.triggers.jsregex.charset import Ranges
from ttsr_proxy.triggers.jsregex.errors import PatternError
from ttsr_proxy.triggers.jsregex.nodes import (
    EMPTY,
    Backref,
    Chars,
    End,
    Group,
    Look,
    NamedBackref,
    Node,
    Repeat,
    Start,
    WordBoundary,
    alt,
    children,
    seq,
)

MAX_LENGTH = 10_000
MAX_NESTING = 200
# A count above this is beyond any text; the engine refuses numbers of more than 32 bits.
MAX_COUNT = 1_000_000_000

_LEADING_FLAGS = re.compile(r"\(\?([ims]+)\)")
_BRACED = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_MODIFIERS = re.compile(r"\(\?([A-Za-z]*)(?:(-)([A-Za-z]*))?:")
_HEX2 = re.compile(r"[0-9A-Fa-f]{2}")
_HEX4 = re.compile(r"[0-9A-Fa-f]{4}")
_BRACED_HEX = re.compile(r"\{([0-9A-Fa-f]+)\}")
_OCTAL = re.compile(r"[0-3][0-7]{0,2}|[4-7][0-7]?")
_DECIMAL = re.compile(r"[1-9][0-9]*")
_CONTROL_ESCAPES = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags in force at one point of the pattern."""

    ignore_case: bool = False
    multiline: bool = False
    dot_all: bool = False


@dataclass(frozen=True, slots=True)
class Parsed:
    """A pattern's tree, and which groups each name stands for."""

    node: Node
    names: dict[str, tuple[int, ...]]


def parse(pattern: str) -> Parsed:
    """Parse a condition; raises PatternError for anything JavaScript would not compile."""
    if len(pattern) > MAX_LENGTH:
        raise PatternError(f"pattern longer than {MAX_LENGTH} characters", MAX_LENGTH)
    return _Parser(pattern).parse()


@dataclass(slots=True)
class _Name:
    """Where the groups of one name stand, to tell whether two of them can both take part."""

    indices: list[int]
    branches: list[dict[int, int]]


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._depth = 0
        self._groups = 0
        self._names: dict[str, _Name] = {}
        self._name_references: list[tuple[str, int]] = []
        self._branch: dict[int, int] = {}
        self._disjunctions = 0
        self._total_groups, self._has_names = _count_groups(pattern)

    def parse(self) -> Parsed:
        flags = Flags()
        leading = _LEADING_FLAGS.match(self._text)
        if leading:
            letters = leading[1]
            flags = Flags("i" in letters, "m" in letters, "s" in letters)
            self._at = leading.end()
        node = self._disjunction(flags)
        if self._at < len(self._text):
            raise self._error("unmatched )")
        for name, position in self._name_references:
            if name not in self._names:
                raise PatternError(f"no group is named {name!r}", position)
        return Parsed(node, {name: tuple(known.indices) for name, known in self._names.items()})

    # Alternatives and terms

    def _disjunction(self, flags: Flags) -> Node:
        identity = self._disjunctions
        self._disjunctions += 1
        options: list[Node] = []
        items: list[Node] = []
        self._branch[identity] = 0
        while True:
            character = self._peek()
            if character in ("", ")"):
                break
            if character == "|":
                self._at += 1
                options.append(seq(*items))
                items = []
                self._branch[identity] += 1
                continue
            items.append(self._term(character, flags))
        options.append(seq(*items))
        del self._branch[identity]
        return alt(*options)

    def _term(self, character: str, flags: Flags) -> Node:
        start = self._at
        quantifiable = True
        node: Node
        if character == "(":
            node = self._parenthesis(flags)
            quantifiable = not self._text.startswith(("(?<=", "(?<!"), start)
        elif character == "[":
            node = self._chars(self._class(flags), flags)
        elif character == "\\":
            node = self._escape(flags)
            quantifiable = not isinstance(node, WordBoundary)
        elif character in "^$":
            self._at += 1
            node = Start(flags.multiline) if character == "^" else End(flags.multiline)
            quantifiable = False
        elif character == ".":
            self._at += 1
            node = Chars(charset.ANY if flags.dot_all else charset.NOT_LINE_TERMINATORS)
        elif character in "*+?" or (character == "{" and _BRACED.match(self._text, start)):
            raise self._error("nothing to repeat")
        else:
            self._at += 1
            node = self._chars(charset.of(character), flags)
        return self._quantified(node, quantifiable)

    def _quantified(self, node: Node, quantifiable: bool) -> Node:
        start = self._at
        bounds = self._quantifier()
        if bounds is None:
            return node
        if not quantifiable:
            raise PatternError("nothing to repeat", start)
        low, high = bounds
        greedy = not self._accept("?")
        if high == 0:
            return EMPTY
        if _is_zero_width(node):
            # ECMA-262 22.2.2.3.1: a turn that is not needed and matches nothing is undone.
            return node if low else EMPTY
        return node if (low, high) == (1, 1) else Repeat(node, low, high, greedy)

    def _quantifier(self) -> tuple[int, int | None] | None:
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self._peek())
        if simple is not None:
            self._at += 1
            return simple
        braced = _BRACED.match(self._text, self._at)
        if braced is None:
            return None
        low = _count(braced[1])
        high = low if braced[2] is None else _count(braced[3]) if braced[3] else None
        if high is not None and low > high:
            raise self._error("numbers out of order in {} quantifier")
        self._at = braced.end()
        return low, None if high == MAX_COUNT else high

    # Parentheses

    def _parenthesis(self, flags: Flags) -> Node:
        start = self._at
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise self._error(f"more than {MAX_NESTING} nested groups")
        index = 0
        look: tuple[bool, bool] | None = None
        for opening, (ahead, negated) in _LOOKS.items():
            if self._text.startswith(opening, start):
                look = ahead, negated
                self._at += len(opening)
                break
        else:
            if not self._text.startswith("(?", start):
                self._at += 1
                index = self._new_group()
            elif self._text.startswith("(?<", start):
                self._at += 3
                name = self._group_name()
                index = self._new_group()
                self._declare(name, index, start)
            else:
                flags = self._modified(flags)
        node = self._disjunction(flags)
        if not self._accept(")"):
            raise PatternError("missing )", start)
        self._depth -= 1
        if look is not None:
            return Look(node, *look)
        return Group(node, index) if index else node

    def _modified(self, flags: Flags) -> Flags:
        match = _MODIFIERS.match(self._text, self._at)
        if match is None:
            raise self._error("invalid group")
        added, dash, removed = match[1], match[2], match[3] or ""
        letters = added + removed
        if len(set(letters)) < len(letters) or set(letters) - set("ims") or (dash and not letters):
            raise self._error("invalid flags in group")
        self._at = match.end()
        changes = {
            field: letter in added
            for letter, field in (("i", "ignore_case"), ("m", "multiline"), ("s", "dot_all"))
            if letter in letters
        }
        return replace(flags, **changes)

    def _new_group(self) -> int:
        self._groups += 1
        return self._groups

    def _declare(self, name: str, index: int, position: int) -> None:
        known = self._names.setdefault(name, _Name([], []))
        for branches in known.branches:
            if all(self._branch.get(identity, option) == option for identity, option in branches.items()):
                raise PatternError(f"group name {name!r} is used twice", position)
        known.indices.append(index)
        known.branches.append(dict(self._branch))

    def _group_name(self) -> str:
        start = self._at
        name = ""
        while not self._accept(">"):
            character = self._peek()
            if character == "":
                raise PatternError("invalid group name", start)
            self._at += 1
            if character == "\\":
                character = self._unicode_escape_in_name(start)
            if not (character == "$" or character in "\u200c\u200d" or ("_" + character).isidentifier()):
                raise PatternError("invalid group name", start)
            name += character
        if not name or not (name[0] == "$" or name[0].isidentifier()):
            raise PatternError("invalid group name", start)
        return name

    def _unicode_escape_in_name(self, start: int) -> str:
        if self._accept("u"):
            match = _HEX4.match(self._text, self._at) or _BRACED_HEX.match(self._text, self._at)
            if match:
                self._at = match.end()
                code = int(match[0].strip("{}"), 16)
                if code <= charset.LAST:
                    return chr(code)
        raise PatternError("invalid group name", start)

    # Escapes

    def _escape(self, flags: Flags) -> Node:
        start = self._at
        self._at += 1
        letter = self._peek()
        if letter in ("b", "B"):
            self._at += 1
            return WordBoundary(letter == "B")
        decimal = _DECIMAL.match(self._text, self._at)
        if decimal and _count(decimal[0]) <= self._total_groups:
            self._at = decimal.end()
            return Backref((int(decimal[0]),), flags.ignore_case)
        if letter == "k" and self._has_names:
            self._at += 1
            if not self._accept("<"):
                raise PatternError("invalid named reference", start)
            name = self._group_name()
            self._name_references.append((name, start))
            return NamedBackref(name, flags.ignore_case)
        return self._chars(self._escaped_chars(in_class=False), flags)

    def _escaped_chars(self, in_class: bool) -> Ranges:
        """What follows a backslash; the position is on the character after it."""
        letter = self._peek()
        if letter == "":
            raise PatternError("\\ at the end of the pattern", self._at - 1)
        if letter in charset.CLASS_ESCAPES:
            self._at += 1
            return charset.CLASS_ESCAPES[letter]
        code = self._escaped_code(letter, in_class)
        return ((code, code),)

    def _escaped_code(self, letter: str, in_class: bool) -> int:
        octal = _OCTAL.match(self._text, self._at)
        if octal:
            self._at = octal.end()
            return int(octal[0], 8)
        if letter == "c":
            return self._control(in_class)
        if letter == "k" and self._has_names:
            raise self._error("invalid escape")
        self._at += 1
        if letter in _CONTROL_ESCAPES:
            return _CONTROL_ESCAPES[letter]
        if letter == "x":
            match = _HEX2.match(self._text, self._at)
            if match:
                self._at = match.end()
                return int(match[0], 16)
        elif letter == "u":
            code = self._code_unit()
            if code is not None:
                return self._joined(code)
        return ord(letter)

    def _control(self, in_class: bool) -> int:
        following = self._text[self._at + 1 : self._at + 2]
        allowed = following.isascii() and (
            following.isalpha() or (in_class and (following == "_" or following.isdigit()))
        )
        if following and allowed:
            self._at += 2
            return ord(following) % 32
        # Annex B: the backslash stands for itself, and `c` is read again as an ordinary character.
        return ord("\\")

    def _code_unit(self) -> int | None:
        match = _HEX4.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        return int(match[0], 16)

    def _joined(self, code: int) -> int:
        """A surrogate pair written as two escapes is the one character that our texts hold."""
        if 0xD800 <= code <= 0xDBFF and self._text.startswith("\\u", self._at):
            start = self._at
            self._at += 2
            low = self._code_unit()
            if low is not None and 0xDC00 <= low <= 0xDFFF:
                return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
            self._at = start
        return code

    # Classes

    def _class(self, flags: Flags) -> Ranges:
        start = self._at
        self._at += 1
        negated = self._accept("^")
        ranges: list[tuple[int, int]] = []
        while not self._accept("]"):
            if self._peek() == "":
                raise PatternError("missing ]", start)
            position = self._at
            left = self._class_atom()
            if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                right = self._class_atom()
                ranges.extend(self._class_range(left, right, position))
            else:
                ranges.extend(left)
        members = charset.normalise(ranges)
        if flags.ignore_case:
            members = charset.fold(members)
        return charset.complement(members) if negated else members

    def _class_range(self, left: Ranges, right: Ranges, position: int) -> Ranges:
        low, high = charset.single(left), charset.single(right)
        if low is None or high is None:
            # Annex B: with a class escape at either end the hyphen stands for itself.
            return (*left, (0x2D, 0x2D), *right)
        if low > high:
            raise PatternError("range out of order in class", position)
        return ((ord(low), ord(high)),)

    def _class_atom(self) -> Ranges:
        character = self._peek()
        self._at += 1
        if character != "\\":
            return charset.of(character)
        if self._accept("b"):
            return ((8, 8),)
        return self._escaped_chars(in_class=True)

    # Reading

    def _chars(self, ranges: Ranges, flags: Flags) -> Node:
        return Chars(charset.fold(ranges) if flags.ignore_case else ranges)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _accept(self, character: str) -> bool:
        if self._peek() != character:
            return False
        self._at += 1
        return True

    def _error(self, message: str) -> PatternError:
        return PatternError(message, self._at)


_LOOKS = {"(?=": (True, False), "(?!": (True, True), "(?<=": (False, False), "(?<!": (False, True)}


def _count(digits: str) -> int:
    # int() refuses more than 4,300 digits, and a condition may have 10,000 characters.
    return MAX_COUNT if len(digits.lstrip("0")) > 9 else int(digits)


def _count_groups(pattern: str) -> tuple[int, bool]:
    """How many capturing groups there are, and whether any has a name: both decide what escapes mean."""
    total, named, in_class, at = 0, False, False, 0
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            at += 1
        elif character == "[":
            in_class = True
        elif character == "]":
            in_class = False
        elif character == "(" and not in_class:
            if not pattern.startswith("(?", at):
                total += 1
            elif pattern.startswith("(?<", at) and pattern[at + 3 : at + 4] not in ("=", "!", ""):
                total += 1
                named = True
        at += 1
    return total, named


def _is_zero_width(node: Node) -> bool:
    match node:
        case Chars() | Backref() | NamedBackref():
            return False
        case Look():
            return True
        case Repeat(item=item) | Group(item=item):
            return _is_zero_width(item)
        case _:
            return all(_is_zero_width(child) for child in children(node))
