"""Tool calls that read `rule://<name>`: with a tool that reads files, or with `cat` and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

import regex

from ttsr_proxy.jsontext import JsonObject, JsonValue, decode_object
from ttsr_proxy.toolcalls.partial import close_partial

MOST_CHARS: Final = 2048
"""A call whose arguments have gone on for so long without naming a rule is taken for another one."""

_SCHEME: Final = "rule://"
_PATH_KEY: Final = regex.compile(r"(?i)path|file|ur[il]|target")
_COMMAND_KEYS: Final = ("command", "cmd", "script")
_CAT: Final = regex.compile(
    r"""\s*cat\s+(?:--\s+)?(?:"rule://([^"$`\\]+)"|'rule://([^']+)'|rule://([^\s"'$`\\|&;<>(){}*?]+))\s*"""
)


def can_read_rules(kinds: Collection[str | None]) -> bool:
    """Whether a tool with calls of these kinds can be asked for a rule."""
    return "read" in kinds or "bash" in kinds


def may_read_rule(kinds: Collection[str | None], text: str) -> bool:
    """Whether a call can still turn out to read a rule; `text` is the beginning of its argument JSON."""
    if len(text) > MOST_CHARS:
        return False
    arguments = close_partial(text)
    paths = list(_paths(arguments)) if "read" in kinds else []
    commands = list(_commands(arguments)) if "bash" in kinds else []
    if not paths and not commands:
        return True
    return any(path[: len(_SCHEME)] == _SCHEME[: len(path)] for path in paths) or any(
        _CAT.fullmatch(command, partial=True) for command in commands
    )


def rule_read(kinds: Collection[str | None], text: str) -> str | None:
    """The name of the rule that a complete call reads; None for any other call."""
    arguments = decode_object(text) if _SCHEME in text.replace("\\/", "/") else None
    if arguments is None:
        return None
    if "read" in kinds:
        for path in _paths(arguments):
            if path.startswith(_SCHEME):
                return path[len(_SCHEME) :]
    if "bash" in kinds:
        for command in _commands(arguments):
            if found := _CAT.fullmatch(command):
                return next(name for name in found.groups() if name is not None)
    return None


def _paths(arguments: JsonObject) -> Iterator[str]:
    for key, value in arguments.items():
        if _PATH_KEY.search(key):
            # Several files at once are no read of a rule.
            only = value[0] if isinstance(value, list) and len(value) == 1 else value
            if isinstance(only, str):
                yield only


def _commands(arguments: JsonObject) -> Iterator[str]:
    for key in _COMMAND_KEYS:
        value: JsonValue = arguments.get(key)
        if isinstance(value, str):
            yield value
        elif isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            # An argument vector: `cat` itself, or a shell with the command as its last argument.
            yield " ".join(value) if value[0] == "cat" or len(value) < 3 else value[-1]
