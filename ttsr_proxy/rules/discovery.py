"""Finds rule files and settles which of several rules of a name counts (reference, "Provider precedence").

The first rule of a name wins; the later ones stay visible with their winner. A file that cannot be read
costs only itself.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ttsr_proxy.rules.model import Rule
from ttsr_proxy.rules.providers import (
    PROVIDERS,
    Folder,
    Provider,
    RuleDirectories,
    SingleFile,
    Source,
    what_is_at,
)

LARGEST_FILE = 1_048_576
"""Bytes of a rule file that are read; a larger file is no rule."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A place that was to be read and could not be, or a setting that names nothing."""

    path: str
    message: str


@dataclass(frozen=True, slots=True)
class FoundRule:
    """A rule with where it came from. `shadowed_by` is the rule that takes its place, if one does."""

    rule: Rule
    provider: str
    priority: int
    file: Path | None = None
    """The real file behind `rule.path`, links resolved; None for rules that are no files."""
    shadowed_by: FoundRule | None = None

    @property
    def is_same_file(self) -> bool:
        """Whether this rule and the one that shadows it are one file, found twice."""
        return self.shadowed_by is not None and self.file is not None and self.file == self.shadowed_by.file


@dataclass(frozen=True, slots=True)
class Discovery:
    """Every rule in order of precedence, shadowed ones included, and what could not be read."""

    found: tuple[FoundRule, ...]
    problems: tuple[Problem, ...]


def discover(directories: RuleDirectories, extra: Sequence[tuple[str, Rule]] = ()) -> Discovery:
    """Read every provider's rules. `extra` adds rules that are no files, each with its provider's name.

    Raises ValueError when `extra` names a provider that does not exist; never on what is on disk.
    """
    unknown = {name for name, _ in extra} - {provider.name for provider in PROVIDERS}
    if unknown:
        raise ValueError(f"no such rule provider: {', '.join(sorted(unknown))}")
    problems: list[Problem] = []
    found = [
        rule
        for provider in PROVIDERS
        for rule in (*_read_files(provider, directories, problems), *_given(provider, extra))
    ]
    return Discovery(tuple(_settle(found)), tuple(problems))


def real_path(path: Path) -> Path:
    """The path with links resolved. A link that leads in a circle stays as it is, where `resolve` raises."""
    return Path(os.path.realpath(path))


def walk(source: Source, report: Callable[[Problem], None]) -> Iterator[tuple[str, bool]]:
    """All paths that a source's rules depend on, existing or not, each with whether it is a rule file.

    A directory comes before it is listed. Strings, since every request looks at each of them.
    """
    path = str(source.path)
    if isinstance(source, SingleFile):
        yield path, os.path.lexists(path)
        return
    yield path, False
    if source.recursive:
        yield from _tree(source, path, {os.path.realpath(path)}, report)
    else:
        yield from ((file, True) for file, is_directory in _entries(source, path, report) if not is_directory)


def _given(provider: Provider, extra: Sequence[tuple[str, Rule]]) -> Iterator[FoundRule]:
    for name, rule in extra:
        if name == provider.name:
            yield FoundRule(rule, provider.name, provider.priority)


def _read_files(
    provider: Provider, directories: RuleDirectories, problems: list[Problem]
) -> Iterator[FoundRule]:
    for source in provider.sources(directories, what_is_at):
        for path in sorted(Path(path) for path, is_rule in walk(source, problems.append) if is_rule):
            try:
                data = _read(path)
            except OSError as error:
                problems.append(Problem(str(path), f"cannot be read: {error.strerror or error}"))
                continue
            rule = Rule.from_markdown(path, data)
            if isinstance(source, SingleFile):
                rule = replace(rule, name=source.name, always_apply=source.always_apply or rule.always_apply)
            yield FoundRule(rule, provider.name, provider.priority, real_path(path))


def _read(path: Path) -> bytes:
    if not stat.S_ISREG(path.stat().st_mode):  # a named pipe would block, a device would not end
        raise OSError("not a regular file")
    with path.open("rb") as file:
        data = file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise OSError(f"larger than {LARGEST_FILE:,} bytes")
    return data


def _entries(source: Folder, directory: str, report: Callable[[Problem], None]) -> list[tuple[str, bool]]:
    """Subdirectories and rule files of a directory in name order, each with whether it is a directory."""
    try:
        with os.scandir(directory) as scan:
            return sorted(
                (entry.path, is_directory)
                for entry in scan
                if not entry.name.startswith(".")
                and ((is_directory := _is_directory(entry)) or entry.name.endswith(source.extensions))
            )
    except (FileNotFoundError, NotADirectoryError):
        if source.required and directory == str(source.path):
            report(Problem(directory, "there is no such directory; no rules come from it"))
    except OSError as error:
        report(Problem(directory, f"cannot be listed: {error.strerror or error}"))
    return []


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads in a circle
        return False


def _tree(
    source: Folder, directory: str, visited: set[str], report: Callable[[Problem], None]
) -> Iterator[tuple[str, bool]]:
    for path, is_directory in _entries(source, directory, report):
        yield path, not is_directory
        if not is_directory:
            continue
        real = os.path.realpath(path)
        if not Path(real).is_relative_to(real_path(source.path)):
            report(Problem(path, f"leads out of {source.path}; not followed"))
        elif real not in visited:
            visited.add(real)
            yield from _tree(source, path, visited, report)


def _settle(found: Sequence[FoundRule]) -> Iterator[FoundRule]:
    """First wins, by name and by file."""
    by_name: dict[str, FoundRule] = {}
    by_file: dict[Path, FoundRule] = {}
    for candidate in found:
        winner = by_file.get(candidate.file) if candidate.file is not None else None
        winner = winner or by_name.get(candidate.rule.name)
        if winner is not None:
            yield replace(candidate, shadowed_by=winner)
            continue
        by_name[candidate.rule.name] = candidate
        if candidate.file is not None:
            by_file[candidate.file] = candidate
        yield candidate
