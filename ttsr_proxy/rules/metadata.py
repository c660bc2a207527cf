"""Reads the lines between the `---` fences into keys and values, and says what looks wrong.

Where the block as a whole is not YAML, each key is read on its own, so that one bad line costs one key
and the other values keep their types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import yaml

from ttsr_proxy.rules import yaml_core
from ttsr_proxy.rules.repairs import WHITESPACE, unquote
from ttsr_proxy.rules.shorthand import split_list
from ttsr_proxy.rules.yaml_core import YamlError

GLOB_KEYS = ("globs", "paths", "applyTo", "fileMatchPattern")
"""The spellings of `globs`, ours first."""

CONDITION_KEYS = ("condition", "ttsr_trigger", "ttsrTrigger")
"""The spellings of `condition`, the current one first."""

LIBRARY_KEYS = (
    "atomic_id",
    "scenario_id",
    "revision",
    "status",
    "title",
    "applies_when",
    "exception",
    "created_at",
    "updated_at",
    "source",
    "compiler",
)
"""What else stands in the files of the rule library, for the library alone to read."""

KNOWN_KEYS = (
    *GLOB_KEYS,
    *CONDITION_KEYS,
    "alwaysApply",
    "description",
    "astCondition",
    "scope",
    "interruptMode",
    "enabled",
    "agents",
    "question",
    "reminder",
    "repeatMode",
    "repeatGap",
    "contextMode",
    "maxInterrupts",
    "onExhausted",
    "observe",
    "trigger",
)

_LIST_KEYS = (*GLOB_KEYS, "scope", "agents")
_TEXT_KEYS = (
    *GLOB_KEYS,
    *CONDITION_KEYS,
    "astCondition",
    "scope",
    "agents",
    "description",
    "question",
    "reminder",
)

_KEY_LINE = re.compile(r"([\w-]+):\s*(.*)")
_ITEM_LINE = re.compile(r"\s*-(?:\s+(.*))?")
_QUOTED_LIST = re.compile(r"""\[\s*(?:"[^"]*"|'[^']*')(?:\s*,\s*(?:"[^"]*"|'[^']*'))*\s*\]""")
_COMMENT = re.compile(r"[ \t]*#")


@dataclass(frozen=True, slots=True)
class Metadata:
    """Keys in camelCase with their values, and the line of the file on which each stands."""

    values: Mapping[str, object]
    lines: Mapping[str, int]
    warnings: tuple[str, ...]


def is_known_key(key: str) -> bool:
    """Whether a camelCase frontmatter key means something in a rule."""
    return key in KNOWN_KEYS


def camel_case(key: str) -> str:
    """`interrupt-mode` as `interruptMode`; other keys unchanged."""
    return re.sub(r"-([a-z])", lambda match: match[1].upper(), key)


def parse_metadata(block: str, first_line: int) -> Metadata:
    """Read a frontmatter block whose first line has this number in its file; never raises."""
    reader = _Reader(first_line)
    if "\t" in block:
        block = block.replace("\t", "  ")
        reader.warnings.append("tab characters in the frontmatter were read as two spaces each")
    try:
        reader.read_whole(block)
    except YamlError as error:
        before = len(reader.warnings)
        reader.read_each_key(block)
        if len(reader.warnings) == before:
            reader.warn(error.line - 1, f"not valid YAML ({error}); each key was read on its own")
    return Metadata(reader.values, reader.lines, tuple(reader.warnings))


class _Reader:
    def __init__(self, first_line: int) -> None:
        self.first_line = first_line
        self.values: dict[str, object] = {}
        self.lines: dict[str, int] = {}
        self.warnings: list[str] = []

    def warn(self, offset: int, message: str) -> None:
        self.warnings.append(f"line {self.first_line + offset}: {message}")

    def read_whole(self, text: str, offset: int = 0) -> None:
        """Read text as one YAML mapping. `offset` is its first line within the block."""
        node, value, kept_escapes = yaml_core.load(text)
        if node is None:
            return
        if not isinstance(node, yaml.MappingNode) or not isinstance(value, dict):
            self.warn(offset, "the frontmatter has no `key: value` lines")
            return
        for key_node, value_node in node.value:
            line = offset + key_node.start_mark.line
            name = camel_case(key_node.value)
            self._store(name, value.get(key_node.value), line)
            if name in _TEXT_KEYS:
                self._warn_of_comments(name, value_node, text, offset)
            if name in CONDITION_KEYS and _is_lone_plain_item(value_node):
                self.warn(line, f"`{name}`: brackets make a list of one condition; quote a character class")
        if kept_escapes:
            self.warn(
                offset,
                f"{', '.join(kept_escapes)} in double quotes was read as it stands, for a regular expression;"
                " use single quotes",
            )

    def read_each_key(self, block: str) -> None:
        for offset, key, lines in self._segments(block):
            try:
                self.read_whole("\n".join(lines), offset)
            except YamlError as error:
                name = camel_case(key)
                value = _repaired(name, lines)
                self._store(name, value, offset)
                self.warn(offset, f"`{name}`: not valid YAML ({error}); read as {_shown(value)}")

    def _segments(self, block: str) -> Iterator[tuple[int, str, list[str]]]:
        """Each top-level key with its lines: the key's own and those up to the next key."""
        key, start, lines = "", 0, list[str]()
        for offset, line in enumerate(block.split("\n")):
            match = _KEY_LINE.fullmatch(line)
            if match:
                if key:
                    yield start, key, [*lines, ""]
                key, start, lines = match[1], offset, [f"{match[1]}: {match[2]}"]
            elif key:
                lines.append(line)
            elif line.strip() and not line.lstrip().startswith("#"):
                self.warn(offset, f"not a `key: value` line; ignored: {_shown(line.strip())}")
        if key:
            yield start, key, lines

    def _store(self, name: str, value: object, line: int) -> None:
        if name in self.values:
            self.warn(line, f"`{name}` is given twice; the last one counts")
        self.values[name] = value
        self.lines[name] = self.first_line + line

    def _warn_of_comments(self, name: str, node: yaml.Node, text: str, offset: int) -> None:
        items = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for item in items:
            if not isinstance(item, yaml.ScalarNode) or item.style is not None:
                continue
            end = item.end_mark.index
            if _COMMENT.match(text, end):
                what = f"shortened to {_shown(item.value)}" if item.value else "empty"
                line = offset + item.end_mark.line
                self.warn(line, f"`{name}`: {what} by a YAML comment; quote the value if the # belongs to it")


def _is_lone_plain_item(node: yaml.Node) -> bool:
    return (
        isinstance(node, yaml.SequenceNode)
        and bool(node.flow_style)
        and len(node.value) == 1
        and isinstance(node.value[0], yaml.ScalarNode)
        and node.value[0].style is None
    )


def _repaired(name: str, lines: list[str]) -> object:
    """What a key whose YAML is broken most plausibly means."""
    first = lines[0].partition(": ")[2].strip(WHITESPACE)
    more = [line for line in lines[1:] if line.strip()]
    if not first:
        items = [_ITEM_LINE.fullmatch(line) for line in more]
        if not all(items):
            return " ".join(line.strip(WHITESPACE) for line in more) or None
        return [_scalar(item[1] or "") for item in items if item]
    if (
        first.startswith("[")
        and first.endswith("]")
        and (name in _LIST_KEYS or _QUOTED_LIST.fullmatch(first))
    ):
        return [unquote(part)[0] for part in split_list(first[1:-1])]
    return _scalar(" ".join([first, *(line.strip(WHITESPACE) for line in more)]))


def _scalar(text: str) -> object:
    """One value: as YAML if it is, else the text itself without a pair of quotes around it."""
    text = text.strip(WHITESPACE)
    try:
        value = yaml_core.load(text)[1]
    except YamlError:
        value = text
        inner = unquote(text)[0]
        if text[:1] not in inner:
            value = inner
    return text if isinstance(value, dict) else value


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
