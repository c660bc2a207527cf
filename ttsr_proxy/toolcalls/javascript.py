"""What a script of Codex's `exec` tool would do: the patches and commands in its string literals.

The model writes `await tools.apply_patch("*** Begin Patch\\n...")` or `tools.exec_command({cmd: "..."})`. A
text counts when it stands in the script: literals, templates, `+`, `[...].join("...")` and constants made of
them. What a template puts in is left out.
"""

from __future__ import annotations

import re
from typing import Final

from ast_grep_py import SgNode

from ttsr_proxy.toolcalls.syntax import MAX_SOURCE, Form, Payload, Payloads, parse

MAX_DEPTH: Final = 200
"""Expressions within each other that are followed to their text."""

_COMMAND_KEYS: Final = frozenset({"cmd", "command"})
_COMMAND: Final[tuple[str, Form, frozenset[str]]] = ("bash", "shell", _COMMAND_KEYS)
_PATCH_KEYS: Final = frozenset({"input", "patch", "patchText"})
_TOOLS: Final[dict[str, tuple[str, Form, frozenset[str]]]] = {
    "apply_patch": ("edit", "patch", _PATCH_KEYS),
    "exec_command": _COMMAND,
    "shell": _COMMAND,
    "shell_command": _COMMAND,
    "local_shell": _COMMAND,
}
"""Tools that a script can call: kind and form of their text, and its keys where the argument is an object."""

_ESCAPE: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}|(\r\n|.))", re.DOTALL
)
_LITERAL_PARTS: Final = frozenset({"string_fragment", "escape_sequence"})
_NAMED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_SURROGATES: Final = re.compile("[\ud800-\udfff]+")


def payloads_of(script: str) -> tuple[Payload, ...]:
    """The patches and commands of the script, in the order of their calls."""
    if "tools" not in script:
        return ()
    root = parse(script, "javascript")
    if root is None:
        return ()
    nodes = list(_walk(root))
    constants: dict[str, SgNode] = {}
    for node in nodes:
        name, value = node.field("name"), node.field("value")
        if node.kind() == "variable_declarator" and name is not None and value is not None:
            constants.setdefault(name.text(), value)
    texts = _Texts(constants)
    payloads = Payloads()
    for node in nodes:
        if node.kind() == "call_expression":
            _add_call(node, texts, payloads)
    return tuple(payloads.found)


def _walk(root: SgNode) -> list[SgNode]:
    """All nodes in the order of the text."""
    found: list[SgNode] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        found.append(node)
        # A long string has thousands of escape sequences as its children.
        if node.kind() != "string":
            waiting.extend(reversed(node.children()))
    return found


def _add_call(call: SgNode, texts: _Texts, payloads: Payloads) -> None:
    function, arguments = call.field("function"), call.field("arguments")
    tool = _TOOLS.get(_tool_name(function) if function is not None else "")
    if tool is None or arguments is None:
        return
    kind, form, keys = tool
    for argument in arguments.children():
        if argument.is_named():
            for text in texts.of(argument, keys):
                payloads.add(kind, form, (), text)


def _tool_name(function: SgNode) -> str:
    """The tool in `tools.NAME` and `tools["NAME"]`; empty for other functions."""
    children = [child for child in function.children() if child.is_named()]
    if len(children) != 2 or function.kind() not in ("member_expression", "subscript_expression"):
        return ""
    return children[1].text().strip("\"'`") if children[0].text() == "tools" else ""


class _Texts:
    """The texts of expressions, as far as they stand in the script."""

    def __init__(self, constants: dict[str, SgNode]) -> None:
        self._constants = constants
        self._room = 4 * MAX_SOURCE
        """Nodes and characters that may still be looked at: constants made of constants grow fast."""

    def of(self, argument: SgNode, keys: frozenset[str]) -> list[str]:
        """The argument itself, or the values of these keys where it is an object."""
        node = self._resolved(argument)
        if node.kind() != "object":
            text = self._text(node, 0)
            return [] if text is None else [text]
        found = []
        for pair in node.children():
            key = pair.field("key") if pair.kind() == "pair" else None
            value = pair.field("value") if key is not None else pair
            if pair.kind() == "shorthand_property_identifier":
                key = pair
            if key is None or value is None or key.text().strip("\"'") not in keys:
                continue
            text = self._text(self._named(pair) if key is pair else value, 0)
            if text is not None:
                found.append(text)
        return found

    def _resolved(self, node: SgNode) -> SgNode:
        for _ in range(MAX_DEPTH):
            if node.kind() != "identifier":
                break
            node = self._constants.get(node.text(), node)
            if node.kind() == "identifier" and node.text() not in self._constants:
                break
        return node

    def _named(self, identifier: SgNode) -> SgNode:
        return self._constants.get(identifier.text(), identifier)

    def _text(self, node: SgNode, depth: int) -> str | None:
        self._room -= 1
        if depth > MAX_DEPTH or self._room < 0:
            return None
        match node.kind():
            case "string" | "template_string":
                text = _literal(node, is_raw=False)
                self._room -= len(text)
                return text
            case "parenthesized_expression":
                inner = [child for child in node.children() if child.is_named()]
                return self._text(inner[0], depth + 1) if inner else None
            case "binary_expression":
                return self._sum(node, depth)
            case "identifier":
                constant = self._constants.get(node.text())
                return None if constant is None else self._text(constant, depth + 1)
            case "call_expression":
                return self._call(node, depth)
        return None

    def _sum(self, node: SgNode, depth: int) -> str | None:
        """Parts that are not known are left out. Long sums lean to the left: no recursion into them."""
        parts: list[str | None] = []
        while node.kind() == "binary_expression":
            left, right = node.field("left"), node.field("right")
            if left is None or right is None:
                break
            parts.append(self._text(right, depth + 1))
            node = left
        parts.append(self._text(node, depth + 1))
        known = [part for part in reversed(parts) if part is not None]
        return "".join(known) if known else None

    def _call(self, node: SgNode, depth: int) -> str | None:
        function, arguments = node.field("function"), node.field("arguments")
        if function is None or arguments is None:
            return None
        if arguments.kind() == "template_string":
            return _literal(arguments, is_raw=function.text() == "String.raw")
        owner = function.field("object") if function.text().endswith(".join") else None
        array = self._resolved(owner) if owner is not None else None
        separators = [child for child in arguments.children() if child.is_named()]
        separator = self._text(separators[0], depth + 1) if separators else ","
        if array is None or array.kind() != "array" or separator is None:
            return None
        items = [self._text(child, depth + 1) for child in array.children() if child.is_named()]
        return separator.join(item or "" for item in items)


def _literal(node: SgNode, *, is_raw: bool) -> str:
    whole = node.text()
    if "${" in whole:
        parts = (child for child in node.children() if child.kind() in _LITERAL_PARTS)
        text = "".join(map(SgNode.text, parts))
    else:
        text = whole[1:-1]
    return text if is_raw else _SURROGATES.sub(_paired, _ESCAPE.sub(_unescaped, text))


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    if code:
        number = int(code, 16)
        return chr(number) if number <= 0x10FFFF else "\ufffd"
    character: str = escape[4]
    return "" if character[0] in "\r\n\u2028\u2029" else _NAMED.get(character, character)


def _paired(surrogates: re.Match[str]) -> str:
    return surrogates[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
