"""Writes the generated parts of the documentation (`make docs`).

A part stands between `<!-- generated: NAME -->` and `<!-- end -->` in any page of this folder.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click
from click.testing import CliRunner

from ttsr_proxy.cli import main as command_line
from ttsr_proxy.config import KEYS, PROJECT_KEYS, Key
from ttsr_proxy.config.keys import expected
from ttsr_proxy.rules.discovery import discover
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.rules.providers import RuleDirectories
from ttsr_proxy.rules.shipped import shipped_rules_directory
from ttsr_proxy.toolcalls.built_in import BUILT_IN
from ttsr_proxy.toolcalls.family import Family, TextArgument
from ttsr_proxy.web.app import ENDPOINTS
from ttsr_proxy.web.metrics import FAMILIES

DOCS = Path(__file__).parent
PART = re.compile(r"(<!-- generated: (?P<name>\w+) -->\n).*?(?=<!-- end -->)", re.DOTALL)

_FORMS = {
    "upstream": "an `http://` or `https://` URL",
    "file": "a path",
    "directory": "a directory",
    "directories": "a list of directories",
    "names": "a list of names",
    "table": "a list of mappings",
}
_DEFAULTS = {
    "state": "`~/.local/state/ttsr-proxy/state.db`",
    "library.root": "`library` beside the state",
    "capture.directory": "`captures/PROJECT` beside the rule library",
}


def commands(
    command: click.Command = command_line, name: str = "ttsr-proxy"
) -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name, groups before their members."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            member = command.get_command(context, word)
            assert member is not None
            yield from commands(member, f"{name} {word}")


def settings() -> str:
    """The table of the file's keys."""
    lines = ["| key | value | default | environment | what it does |", "| --- | --- | --- | --- | --- |"]
    for key in KEYS:
        variable = f"`{key.variable}`" if key.variable else "-"
        lines.append(f"| `{key.name}` | {_value(key)} | {_default(key)} | {variable} | {key.text} |")
    return "\n".join(lines) + "\n"


def project_settings() -> str:
    """The table of the keys of one project."""
    lines = ["| key | value | what it does |", "| --- | --- | --- |"]
    for key in PROJECT_KEYS:
        if not key.name.startswith("ttsr."):
            lines.append(f"| `{key.name}` | {_value(key)} | {key.text} |")
    lines.append("| `ttsr` | as above | What differs from the top-level `ttsr`. |")
    return "\n".join(lines) + "\n"


def help_texts() -> str:
    """`--help` of every command."""
    blocks = []
    for name, _ in commands():
        # As it is called, since a command takes the names of its help option from its group.
        shown = CliRunner().invoke(
            command_line,
            [*name.split()[1:], "--help"],
            prog_name="ttsr-proxy",
            terminal_width=90,
            max_content_width=90,
        )
        blocks.append(f"### `{name}`\n\n```text\n{shown.stdout.rstrip()}\n```\n")
    return "\n".join(blocks)


def endpoints() -> str:
    """The table of the proxy's own endpoints."""
    rows = (f"| `{method} {path}` | {answer} |" for method, path, answer in ENDPOINTS)
    return "\n".join(("| endpoint | what it answers |", "| --- | --- |", *rows)) + "\n"


def tool_families() -> str:
    """The table of the tools that are known out of the box."""
    lines = ["| family | tools | kind | path | text |", "| --- | --- | --- | --- | --- |"]
    for family in BUILT_IN:
        paths = _code(pattern.text for pattern in family.paths) or "none"
        if any(text.form == "patch" for text in family.texts):
            paths = "in the patch" if paths == "none" else f"{paths}, or in the patch"
        cells = (
            f"`{family.name}`",
            _code(family.tools),
            _kinds(family),
            f"all: {paths}" if family.all_paths else paths,
            ", ".join(map(_text_argument, family.texts)),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _kinds(family: Family) -> str:
    plain = f"; without text `{family.plain_kind}`" if family.plain_kind else ""
    return f"`{family.kind}`{plain}"


def _text_argument(text: TextArgument) -> str:
    remarks = [] if text.form == "text" else [text.form]
    remarks += [f"kind `{text.kind}`"] if text.kind else []
    remarks += ["joined"] if text.join is not None else []
    name = f"`{text.pattern.text if text.pattern else '*'}`"
    return f"{name} ({', '.join(remarks)})" if remarks else name


def _code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def shipped_rules() -> str:
    """The table of the rules that come with the product."""
    nowhere = Path("/nonexistent")
    found = discover(RuleDirectories(nowhere, nowhere, shipped=shipped_rules_directory())).found
    lines = ["| rule | catches | looks at | effect |", "| --- | --- | --- | --- |"]
    for rule in (entry.rule for entry in found):
        effect = "reminds" if rule.interrupt_mode == "never" else "interrupts"
        description = (rule.description or "").replace("|", "\\|")
        lines.append(f"| `{rule.name}` | {description} | {_looks_at(rule)} | {effect} |")
    return "\n".join(lines) + "\n"


def _looks_at(rule: Rule) -> str:
    """The streams of a rule's scope in words, with the file globs once."""
    streams = {"text": "answers", "thinking": "thinking", "tool:bash": "commands"}
    words = [word for token, word in streams.items() if token in (rule.scope or ())]
    globs = dict.fromkeys(re.findall(r"tool:(?:edit|write)\((.+)\)", "\n".join(rule.scope or ())))
    if globs:
        words.append(", ".join(f"`{glob}`" for glob in globs))
    elif any(token in ("tool:edit", "tool:write") for token in rule.scope or ()):
        words.append("all files" if "tool:edit" in (rule.scope or ()) else "files written as a whole")
    return "; ".join(words)


def metrics() -> str:
    """The table of what `/metrics` tells."""
    lines = ["| metric | type | labels | what it says |", "| --- | --- | --- | --- |"]
    for family in FAMILIES:
        lines.append(f"| `{family.name}` | {family.kind} | {_code(family.labels) or '-'} | {family.text} |")
    return "\n".join(lines) + "\n"


PARTS: dict[str, Callable[[], str]] = {
    "shipped_rules": shipped_rules,
    "settings": settings,
    "project_settings": project_settings,
    "endpoints": endpoints,
    "tool_families": tool_families,
    "help": help_texts,
    "metrics": metrics,
}


def with_parts(page: str) -> str:
    """The page with its generated parts as they are today."""
    return PART.sub(lambda part: f"{part[1]}{PARTS[part['name']]()}", page)


def outdated() -> dict[Path, str]:
    """Pages whose generated parts are not current, with what they should be."""
    pages = {path: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}
    today = {path: with_parts(page) for path, page in pages.items()}
    return {path: page for path, page in today.items() if page != pages[path]}


def _value(key: Key) -> str:
    return _FORMS.get(key.form) or expected(key.type)


def _default(key: Key) -> str:
    if key.name in _DEFAULTS:
        return _DEFAULTS[key.name]
    (field,) = (field for field in dataclasses.fields(key.owner) if field.name == key.attribute)
    match field.default:
        case bool() as value:
            return f"`{str(value).lower()}`"
        case ():
            return "`[]`"
        case None | "":
            return "-"
        case float() as value:
            return f"`{value:g}`"
        case value:
            return f"`{value}`"


if __name__ == "__main__":
    for path, page in outdated().items():
        print(path.relative_to(DOCS.parent))
        path.write_text(page, encoding="utf-8")
