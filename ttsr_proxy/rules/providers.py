"""Where rules come from: one row per provider, in order of precedence (reference, "Discovery sources").

A provider names the folders and files it reads, existing or not; reading them is `discovery`'s job and
watching them `watch`'s. Adding a provider is adding a row.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ttsr_proxy.rules.shipped import shipped_rules_directory


@dataclass(frozen=True, slots=True)
class RuleDirectories:
    """The places that discovery starts from. `project` and `home` are made absolute."""

    project: Path
    home: Path = field(default_factory=Path.home)
    mounted: tuple[Path, ...] = ()
    """Directories given with `--rules` or in the configuration; read with their subdirectories."""
    extensions: tuple[Path, ...] = ()
    """Roots of extension packages, whose `rules/` is read."""
    shipped: Path | None = field(default_factory=shipped_rules_directory)

    def __post_init__(self) -> None:
        for name in ("project", "home"):
            object.__setattr__(self, name, Path(getattr(self, name)).absolute())
        for name in ("mounted", "extensions"):
            object.__setattr__(self, name, tuple(Path(path).absolute() for path in getattr(self, name)))


@dataclass(frozen=True, slots=True)
class Folder:
    """A directory of rule files."""

    path: Path
    extensions: tuple[str, ...] = (".md", ".mdc")
    recursive: bool = False
    required: bool = False
    """Whether somebody asked for this directory by name, so that its absence is a problem."""
    installed: bool = False
    """Whether its files come and go with the program and nobody edits them: only itself is watched."""


@dataclass(frozen=True, slots=True)
class SingleFile:
    """One rule file whose rule has a fixed name."""

    path: Path
    name: str
    always_apply: bool = False
    """Whether the rule always applies, whatever its frontmatter says."""


Source = Folder | SingleFile

Look = Callable[[Path], int | None]
"""Tells what is at a path. Sources depend on the disk through it alone, so that whoever notes what was asked
knows what they depend on."""


def what_is_at(path: str | Path) -> int | None:
    """The type of what is there (`stat.S_IFREG` and so on), links followed; None if nothing is."""
    try:
        return stat.S_IFMT(os.stat(path).st_mode)
    except (OSError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class Provider:
    """One kind of rule file in the world. The higher priority wins a name."""

    name: str
    priority: int
    sources: Callable[[RuleDirectories, Look], Iterator[Source]]


def to_repository_root(project: Path, look: Look = what_is_at) -> tuple[Path, ...]:
    """The project directory and its ancestors up to the nearest with `.git`; without one the project alone.

    In worktrees and submodules `.git` is a file.
    """
    walked: list[Path] = []
    for directory in (project, *project.parents):
        walked.append(directory)
        if look(directory / ".git") is not None:
            return tuple(walked)
    return (project,)


def _native(directories: RuleDirectories, look: Look) -> Iterator[Source]:
    agent = directories.home / ".omp" / "agent"
    yield Folder(directories.project / ".omp" / "rules")
    yield Folder(agent / "rules")
    yield SingleFile(agent / "RULES.md", "RULES", always_apply=True)
    walk = to_repository_root(directories.project, look)
    sticky = [directory / ".omp" / "RULES.md" for directory in walk]
    nearest = next((path for path in sticky if look(path) == stat.S_IFREG), sticky[0])
    yield SingleFile(nearest, "RULES", always_apply=True)


def _mounted(directories: RuleDirectories, look: Look) -> Iterator[Source]:
    for path in directories.mounted:
        yield Folder(path, recursive=True, required=True)


def _omp_plugins(directories: RuleDirectories, look: Look) -> Iterator[Source]:
    for path in directories.extensions:
        yield Folder(path / "rules", required=True)


def _agents(directories: RuleDirectories, look: Look) -> Iterator[Source]:
    walk = [path for path in to_repository_root(directories.project, look) if path != directories.home]
    for directory in (*walk, directories.home):
        for name in (".agent", ".agents"):
            yield Folder(directory / name / "rules")


def _none(directories: RuleDirectories, look: Look) -> Iterator[Source]:
    yield from ()


def _cursor(directories: RuleDirectories, look: Look) -> Iterator[Source]:
    for directory in (directories.home, directories.project):
        yield Folder(directory / ".cursor" / "rules")


def _windsurf(directories: RuleDirectories, look: Look) -> Iterator[Source]:
    memories = directories.home / ".codeium" / "windsurf" / "memories"
    yield SingleFile(memories / "global_rules.md", "global_rules")
    yield Folder(directories.project / ".windsurf" / "rules", extensions=(".md",))


def _cline(directories: RuleDirectories, look: Look) -> Iterator[Source]:
    project, home = directories.project, directories.home
    walk = to_repository_root(project, look)
    if look(walk[-1] / ".git") is None and home in project.parents:
        walk = (project, *(path for path in project.parents if home in path.parents))
    candidates = [directory / ".clinerules" for directory in walk]
    nearest = next((path for path in candidates if look(path) is not None), candidates[0])
    if look(nearest) == stat.S_IFREG:
        yield SingleFile(nearest, "clinerules")
    else:
        yield Folder(nearest, extensions=(".md",))


def _builtin_defaults(directories: RuleDirectories, look: Look) -> Iterator[Source]:
    if directories.shipped is not None:
        yield Folder(directories.shipped, installed=True)


LIBRARY = "library"
BUILTIN_DEFAULTS = "builtin-defaults"

PROVIDERS = (
    Provider("native", 100, _native),
    Provider("mounted", 95, _mounted),
    Provider("omp-plugins", 90, _omp_plugins),
    Provider("agents", 70, _agents),
    # Compiled rules are no files: whoever has them hands them to `discover`.
    Provider(LIBRARY, 60, _none),
    Provider("cursor", 50, _cursor),
    Provider("windsurf", 50, _windsurf),
    Provider("cline", 40, _cline),
    Provider(BUILTIN_DEFAULTS, 1, _builtin_defaults),
)
"""Every provider by descending priority; equal priorities keep the reference's order."""
