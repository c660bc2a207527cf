"""Tool calls that read `rule://<name>`: with a tool that reads files, or with `cat` and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

import regex

from ttsr_proxy.jsontext import JsonObject, decode_object
from ttsr_proxy.toolcalls.partial import close_partial

MOST_CHARS: Final = 2048
"""A call whose arguments have gone on for so long without naming a rule is taken for another one."""

_SCHEME: Final = "rule://"
_PATH_KEY: Final = regex.compile(r"(?i)path|file|ur[il]|target")
_COMMAND_KEYS: Final = ("command", "cmd", "CommandLine")
_VIEWING: Final = (None, "view")
"""The commands of an editor tool that read a file; other tools have none."""
_PLAIN: Final = r"""[^\s"'$`\\|&;<>(){}*?]"""
_CAT: Final = regex.compile(
    rf"""\s*cat\s+(?:--\s+)?(?:"rule://([^"$`\\]+)"|'rule://([^']+)'|rule://({_PLAIN}+))\s*"""
)
_SCRIPT: Final = regex.compile(
    rf"""
    \s* (?: (?:const|let|var) \s+ (?<result>\w+) \s* = \s* | text\( \s* )?
    await \s+ tools\.(?:exec_command|shell_command) \( \s* \{{ \s* "?(?:cmd|command)"? \s* : \s*
    (?<quote>["'`]) \s* cat \s+ (?<inner>["']?) rule:// (?<name>{_PLAIN}+) \g<inner> \s* \g<quote>
    (?: \s* , \s* "?\w+"? \s* : \s* (?: \w+ | "{_PLAIN}*" ) )* \s* ,? \s* \}} \s* \) \s* \)? \s* ;? \s*
    (?: text\( \s* (?(result)\g<result>|(?!)) (?:\.\w+)? \s* \) \s* ;? \s* )?
    """,
    regex.VERBOSE,
)
"""A script of Codex's `exec` tool that does nothing but read a rule and show it."""


def can_read_rules(kinds: Collection[str | None]) -> bool:
    """Whether a tool with calls of these kinds can be asked for a rule."""
    return "read" in kinds or "bash" in kinds


def may_read_rule(kinds: Collection[str | None], text: str) -> bool:
    """Whether a call can still turn out to read a rule; `text` is the beginning of its argument JSON."""
    if len(text) > MOST_CHARS:
        return False
    if text.strip()[:1] not in ("", "{"):
        return "bash" in kinds and _SCRIPT.fullmatch(text, partial=True) is not None
    arguments = close_partial(text)
    if "read" in kinds and _may_view(arguments):
        path = next(_paths(arguments), "")
        if path is not None and path[: len(_SCHEME)] == _SCHEME[: len(path)]:
            return True
    if "bash" in kinds:
        command = next(_commands(arguments), "")
        return not command or _CAT.fullmatch(command, partial=True) is not None
    return False


def rule_read(kinds: Collection[str | None], text: str) -> str | None:
    """The name of the rule that a complete call reads; None for any other call."""
    arguments = decode_object(text) if len(text) <= MOST_CHARS else None
    if arguments is None:
        script = _SCRIPT.fullmatch(text) if "bash" in kinds and len(text) <= MOST_CHARS else None
        return script["name"] if script else None
    if "read" in kinds and arguments.get("command") in _VIEWING:
        path = next(_paths(arguments), None)
        if path is not None and path.startswith(_SCHEME):
            return path[len(_SCHEME) :]
    if "bash" in kinds:
        found = _CAT.fullmatch(next(_commands(arguments), None) or "")
        return next(name for name in found.groups() if name is not None) if found else None
    return None


def _may_view(arguments: JsonObject) -> bool:
    """Editors that read files too say so by their command."""
    command = arguments.get("command")
    return command is None or (isinstance(command, str) and "view".startswith(command))


def _paths(arguments: JsonObject) -> Iterator[str | None]:
    """What the arguments name to be read; None for several files at once, which are no read of a rule."""
    for key, value in arguments.items():
        if _PATH_KEY.search(key):
            only = value[0] if isinstance(value, list) and len(value) == 1 else value
            if isinstance(only, str):
                yield only
            elif isinstance(only, list):
                yield None if only else ""


def _commands(arguments: JsonObject) -> Iterator[str]:
    """Shell commands; empty where an argument vector does not tell its command yet."""
    for key, value in arguments.items():
        if key not in _COMMAND_KEYS:
            continue
        if isinstance(value, str):
            yield value
        elif isinstance(value, list) and all(isinstance(word, str) for word in value):
            # An argument vector: `cat` itself, or a shell with the command as its last argument.
            words: list[str] = [word for word in value if isinstance(word, str)]
            if words[:1] == ["cat"]:
                yield " ".join(words)
            else:
                yield words[-1] if len(words) > 2 else ""
