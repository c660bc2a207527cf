"""Where agents take their base URL from: the environment, and files of their own.

One function an agent. Adding an agent is adding one.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import yaml

Form: TypeAlias = Literal["bare", "v1"]
"""Whether a client adds `/v1` itself, or wants it at the end of its base URL."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One place that says where requests go; `url` is None where it leaves the client at its default."""

    agent: str
    place: str
    """How people know the place: a variable, or a file and a key."""
    form: Form
    url: str | None


@dataclass(frozen=True, slots=True)
class Unread:
    """A file of an agent that could not be read, so that nobody knows where it sends requests."""

    place: str
    reason: str


Found: TypeAlias = Iterator[Setting | Unread]

_VARIABLES: Final[tuple[tuple[str, str, Form], ...]] = (
    ("ANTHROPIC_BASE_URL", "Claude Code, omp and Anthropic's SDKs", "bare"),
    ("OPENAI_BASE_URL", "OpenAI's SDKs", "v1"),
    ("ANTHROPIC_API_BASE", "aider", "bare"),
    ("OPENAI_API_BASE", "aider", "v1"),
)
"""Variable, who reads it, and its form."""


def environment(environ: Mapping[str, str], home: Path, project: Path) -> Found:
    """The variables that are set."""
    for variable, agent, form in _VARIABLES:
        if url := environ.get(variable):
            yield Setting(agent, variable, form, url)


def claude_code(environ: Mapping[str, str], home: Path, project: Path) -> Found:
    """Claude Code's settings; their `env` goes before the environment."""
    own = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    for file in (
        own / "settings.json",
        project / ".claude/settings.json",
        project / ".claude/settings.local.json",
    ):
        content = _read(file, json.loads)
        if isinstance(content, Unread):
            yield content
        elif isinstance(url := _at(content, "env", "ANTHROPIC_BASE_URL"), str):
            yield Setting("Claude Code", f"{file}: env.ANTHROPIC_BASE_URL", "bare", url)


def codex(environ: Mapping[str, str], home: Path, project: Path) -> Found:
    """The provider that Codex uses: the built-in one reads `openai_base_url`, another its own `base_url`."""
    file = Path(environ.get("CODEX_HOME") or home / ".codex") / "config.toml"
    content = _read(file, tomllib.loads)
    if isinstance(content, Unread):
        yield content
        return
    if content is None:
        return
    profile = _at(content, "profiles", str(_at(content, "profile")))
    provider = _at(profile, "model_provider") or _at(content, "model_provider") or "openai"
    table = _at(content, "model_providers", str(provider))
    if provider != "openai" and table is None:
        return
    key = "openai_base_url" if provider == "openai" else f"model_providers.{provider}.base_url"
    url = _at(content, "openai_base_url") if provider == "openai" else _at(table, "base_url")
    yield Setting("Codex", f"{file}: {key}", "v1", url if isinstance(url, str) else None)


def opencode(environ: Mapping[str, str], home: Path, project: Path) -> Found:
    """Every provider of opencode's files that has a base URL."""
    config_home = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    files = [config_home / "opencode/opencode.json", project / "opencode.json"]
    if given := environ.get("OPENCODE_CONFIG"):
        files.append(Path(given))
    for file in files:
        yield from _opencode_providers(str(file), _read(file, json.loads))
    if text := environ.get("OPENCODE_CONFIG_CONTENT"):
        yield from _opencode_providers("OPENCODE_CONFIG_CONTENT", _parsed("OPENCODE_CONFIG_CONTENT", text))


def _opencode_providers(place: str, content: Any) -> Found:
    if isinstance(content, Unread):
        yield content
        return
    providers = _at(content, "provider")
    for name in providers if isinstance(providers, dict) else ():
        if isinstance(url := _at(providers, name, "options", "baseURL"), str):
            yield Setting("opencode", f"{place}: provider.{name}.options.baseURL", "v1", url)


def aider(environ: Mapping[str, str], home: Path, project: Path) -> Found:
    """aider's configuration files."""
    for file in (home / ".aider.conf.yml", project / ".aider.conf.yml"):
        content = _read(file, yaml.safe_load)
        if isinstance(content, Unread):
            yield content
        elif isinstance(url := _at(content, "openai-api-base"), str):
            yield Setting("aider", f"{file}: openai-api-base", "v1", url)


READERS: Final = (environment, claude_code, codex, opencode, aider)


def _read(file: Path, parse: Callable[[str], Any]) -> Any:
    """What the file holds, None if there is none, `Unread` if it cannot be read."""
    try:
        return parse(file.read_text(encoding="utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        return Unread(str(file), " ".join(str(error).split()))


def _parsed(place: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        return Unread(place, str(error))


def _at(content: Any, *keys: str) -> Any:
    """What stands under these keys, None where one of them is missing."""
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content
