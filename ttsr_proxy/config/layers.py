"""One source of settings each (file, environment, flags), checked key by key into dotted names and values."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import yaml

from ttsr_proxy.config.keys import KEYS, PROJECT_KEYS, Key, choices, expected
from ttsr_proxy.config.settings import DEFAULT_PROJECT
from ttsr_proxy.config.upstream import checked_upstream
from ttsr_proxy.errors import TtsrError
from ttsr_proxy.redis import RedisUrl

Values = dict[str, Any]

_PROJECT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_UPSTREAM_KEYS = ("upstream.anthropic", "upstream.openai")
_FOREIGN_VARIABLES = ("TTSR_PROXY_", "TTSR_CLIENT_", "TTSR_REQUIRE_MARKED")
"""Kubernetes sets `TTSR_PROXY_PORT` and more for a service of this name; the other is the test suite's."""


class ConfigError(TtsrError):
    """Settings that cannot be used. The message has a line for each problem."""

    def __init__(self, problems: Iterable[str]) -> None:
        super().__init__("\n".join(problems))


@dataclass(slots=True)
class Layer:
    """What one source gave. Paths are absolute."""

    values: Values = field(default_factory=dict)
    projects: dict[str, Values] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def read_file(path: Path) -> Layer:
    """The configuration file. Relative paths in it are relative to it."""
    layer = Layer()
    try:
        content = yaml.safe_load(path.read_bytes())
    except OSError as error:
        layer.problems.append(f"{path}: cannot be read: {error.strerror}")
    # Besides YAMLError its constructors raise what their conversions do, as for the date 2001-99-99.
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, RecursionError) as error:
        layer.problems.append(_printable(f"{path}: is not valid YAML: {' '.join(str(error).split())}"))
    else:
        if content is None:
            return layer
        if not isinstance(content, dict):
            layer.problems.append(f"{path}: must hold keys and values, such as `port: 8787`")
            return layer
        check = _Check(str(path), path.parent, layer.problems)
        projects = content.pop("projects", None)
        layer.values = check.mapping(content, KEYS, extra=("projects",))
        if projects is not None:
            layer.projects = check.projects(projects)
    return layer


def read_environment(environ: Mapping[str, str], base: Path) -> Layer:
    """`TTSR_...` variables; empty ones count as not set. Directories as in `PATH`, names with commas."""
    layer = Layer()
    by_variable = {key.variable: key for key in KEYS if key.variable}
    for variable, text in environ.items():
        if not variable.startswith("TTSR_") or not text:
            continue
        check = _Check("environment", base, layer.problems)
        if variable == "TTSR_UPSTREAM":
            # The more specific variables win, in whatever order they come.
            for name, value in check.upstream(variable, text).items():
                layer.values.setdefault(name, value)
        elif key := by_variable.get(variable):
            check.value(variable, key, _split(key, text), layer.values, strict=False)
        elif not variable.startswith(_FOREIGN_VARIABLES):
            hint = _did_you_mean(variable, by_variable)
            layer.warnings.append(f"environment: {variable} is not a setting and has no effect{hint}")
    return layer


def read_flags(flags: Mapping[str, Any], upstreams: Iterable[str], base: Path) -> Layer:
    """Values by key name (`None`: not given), and texts of `--upstream [anthropic=|openai=]URL`."""
    layer = Layer()
    check = _Check("command line", base, layer.problems)
    by_name = {key.name: key for key in KEYS}
    for name, value in flags.items():
        if value is not None:
            check.value(f"--{name}", by_name[name], value, layer.values)
    for text in upstreams:
        family, separator, url = text.partition("=")
        key = by_name.get(f"upstream.{family}")
        if separator and key:
            check.value("--upstream", key, url, layer.values)
        else:
            for name, value in check.upstream("--upstream", text).items():
                layer.values.setdefault(name, value)
    return layer


@dataclass(frozen=True, slots=True)
class _Check:
    """Checks values of one source and notes what is wrong with them."""

    origin: str
    base: Path
    problems: list[str]

    def projects(self, content: object) -> dict[str, Values]:
        checked: dict[str, Values] = {}
        if not isinstance(content, dict):
            self._problem(
                "projects", f"{content!r} is not allowed; expected a name for each project, with its keys"
            )
            return checked
        for name, keys in content.items():
            where = f"projects.{name}"
            if not isinstance(name, str) or not _PROJECT_NAME.fullmatch(name):
                self._problem(where, "a project's name may hold letters, digits, '.', '_' and '-'")
            elif name == DEFAULT_PROJECT:
                self._problem(where, "this name is that of the project given with --project")
            elif not isinstance(keys, dict):
                self._problem(where, f"{keys!r} is not allowed; expected keys, at least `path`")
            else:
                checked[name] = self.mapping(keys, PROJECT_KEYS, shown=where + ".")
                if "path" not in keys:
                    self._problem(where, "its `path` is missing")
        return checked

    def mapping(
        self,
        content: Mapping[Any, Any],
        keys: tuple[Key, ...],
        *,
        prefix: str = "",
        shown: str = "",
        extra: tuple[str, ...] = (),
    ) -> Values:
        """Values by dotted name. `shown` is how messages name the place of the keys."""
        values: Values = {}
        by_name = {key.name: key for key in keys}
        known = dict.fromkeys(
            name.removeprefix(prefix).split(".")[0] for name in by_name if name.startswith(prefix)
        )
        for word, value in content.items():
            name = f"{prefix}{word}"
            where = f"{shown}{name}"
            if key := by_name.get(name):
                self.value(where, key, value, values)
            elif word not in known:
                allowed = (*known, *extra)
                self._problem(
                    where,
                    f"unknown key{_did_you_mean(str(word), allowed)}. Known keys here: {', '.join(allowed)}",
                )
            elif name == "upstream" and not isinstance(value, dict):
                values.update(self.upstream(where, value))
            elif isinstance(value, dict):
                values.update(self.mapping(value, keys, prefix=name + ".", shown=shown))
            elif value is not None:
                self._problem(where, f"{value!r} is not allowed; expected keys and values")
        return values

    def upstream(self, where: str, value: object) -> Values:
        """One URL for every family."""
        values: Values = {}
        problems_before = len(self.problems)
        for key in KEYS:
            if key.name in _UPSTREAM_KEYS and len(self.problems) == problems_before:
                self.value(where, key, value, values)
        return values

    def value(self, where: str, key: Key, value: object, into: Values, *, strict: bool = True) -> None:
        try:
            converted = msgspec.convert(value, key.type, strict=strict)
        except msgspec.ValidationError:
            hint = _did_you_mean(str(value), choices(key.type))
            shown = "its value" if key.secret else repr(value)
            self._problem(where, f"{shown} is not allowed; expected {expected(key.type)}{hint}")
            return
        try:
            into[key.name] = self._formed(key, converted)
        except ValueError as error:
            self._problem(where, str(error))

    def _formed(self, key: Key, value: Any) -> Any:
        match key.form:
            case "upstream":
                return checked_upstream(value)
            case "state":
                return RedisUrl.parse(value) if "://" in value else self._absolute(value)
            case "file":
                if "://" in value:
                    raise ValueError(f"{value!r} is not allowed; expected the path of a file")
                return self._absolute(value)
            case "directory":
                return self._directory(value)
            case "directories":
                return tuple(self._directory(item) for item in value)
            case "names" | "table":
                return tuple(value)
            case "value":
                return value

    def _directory(self, text: str) -> Path:
        path = self._absolute(text)
        if not path.is_dir():
            raise ValueError(f"there is no directory {path}")
        return path

    def _absolute(self, text: str) -> Path:
        return Path(os.path.abspath(self.base / Path(text).expanduser()))

    def _problem(self, where: str, what: str) -> None:
        self.problems.append(_printable(f"{self.origin}: {where}: {what}"))


def _printable(problem: str) -> str:
    """On one line: keys, values and paths may be any text, line ends and escape sequences included."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in problem)


def _split(key: Key, text: str) -> str | list[str]:
    match key.form:
        case "directories":
            return [part for part in text.split(os.pathsep) if part]
        case "names":
            return [part.strip() for part in text.split(",") if part.strip()]
        case _:
            return text


def _did_you_mean(word: str, allowed: Iterable[str]) -> str:
    by_lower = {name.lower(): name for name in allowed}
    close = difflib.get_close_matches(word.lower(), by_lower, n=1)
    return f"; did you mean {by_lower[close[0]]}?" if close else ""
