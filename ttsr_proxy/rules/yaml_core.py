"""YAML 1.2 core schema on PyYAML, whose own schema is YAML 1.1.

In 1.2 only `true` and `false` are booleans, dates are strings and `0o17` is a number, so that `yes`, `on`
and `2026-01-02` stay what the author wrote (https://yaml.org/spec/1.2.2/#103-core-schema). A
backslash in double quotes that can only be meant for a regular expression keeps its backslash.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml.scanner import ScannerError

LIMIT = 16_384
"""Characters of YAML that are read; more is no rule's frontmatter, and parsing takes time."""

_LONGEST_NUMBER = 100
_DEEPEST_NESTING = 20

_TAG = "tag:yaml.org,2002:"

# YAML has meanings for these in double quotes that nobody wants in a rule: `\b` is a backspace, `\P` a
# paragraph separator. Together with the escapes that YAML does not know they are a regex's.
_REGEX_ESCAPES = "abeLNP_"


class YamlError(ValueError):
    """Text that is not YAML. `line` counts from 1 within the text."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class _Escapes(dict[str, str]):
    """The escape table of one parse: unknown escapes stand for themselves, and are remembered."""

    def __init__(self, known: dict[str, str]) -> None:
        super().__init__({key: value for key, value in known.items() if key not in _REGEX_ESCAPES})
        self.kept: list[str] = []

    def __contains__(self, char: object) -> bool:
        # x, u and U take digits, and a line break continues the line: the scanner handles those next.
        return super().__contains__(char) or char not in ("x", "u", "U", "\n", "\0")

    def __missing__(self, char: str) -> str:
        self.kept.append(f"\\{char}")
        return f"\\{char}"


class CoreLoader(yaml.SafeLoader):
    """A loader for one text; `kept_escapes` says which escapes were left as they were written."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - PyYAML's way to start from an empty schema

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._escapes = _Escapes(yaml.SafeLoader.ESCAPE_REPLACEMENTS)
        self.ESCAPE_REPLACEMENTS = self._escapes  # type: ignore[misc]  # one table per parse

    def fetch_flow_collection_start(self, TokenClass: Any) -> None:
        # PyYAML looks far ahead from every open bracket: a file of brackets would take seconds.
        if self.flow_level >= _DEEPEST_NESTING:
            raise ScannerError(None, None, "brackets nested too deep", self.get_mark())
        super().fetch_flow_collection_start(TokenClass)

    @property
    def kept_escapes(self) -> list[str]:
        return sorted(set(self._escapes.kept))


def _integer(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    if len(node.value) > _LONGEST_NUMBER:
        raise ValueError(f"a number of {len(node.value)} digits")
    return int(node.value, 0) if node.value[:2] in ("0o", "0x") else int(node.value)


def _number(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    return float(node.value.lower().replace(".inf", "inf").replace(".nan", "nan"))


for _kind, _pattern, _first in (
    ("null", r"(?:~|null|Null|NULL|)", ["~", "n", "N", ""]),
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)", list("tTfF")),
    ("int", r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)", list("-+0123456789")),
    (
        "float",
        r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))",
        list("-+.0123456789"),
    ),
):
    CoreLoader.add_implicit_resolver(_TAG + _kind, re.compile(_pattern + r"\Z"), _first)
CoreLoader.add_constructor(_TAG + "int", _integer)
CoreLoader.add_constructor(_TAG + "float", _number)


def _make_keys_text(node: yaml.Node | None) -> None:
    if isinstance(node, yaml.MappingNode):
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise YamlError("a key must be a word", key.start_mark.line + 1)
            key.tag = _TAG + "str"


def load(text: str) -> tuple[yaml.Node | None, object, list[str]]:
    """Parse one YAML document: its node tree, its value, and the escapes that were kept as written.

    Keys of the outermost mapping are text.

    Raises YamlError on text that is not YAML or longer than `LIMIT`.
    """
    if len(text) > LIMIT:
        raise YamlError(f"longer than {LIMIT:,} characters", 1)
    try:
        loader = CoreLoader(text)
        node = loader.get_single_node()
        _make_keys_text(node)
        value: object = None if node is None else loader.construct_document(node)
    except YamlError:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(error.problem or error.context or "not YAML", mark.line + 1 if mark else 1) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # Characters outside YAML, numbers of thousands of digits, brackets nested a thousand deep.
        raise YamlError(str(error).splitlines()[0] if str(error) else type(error).__name__, 1) from error
    return node, value, loader.kept_escapes
