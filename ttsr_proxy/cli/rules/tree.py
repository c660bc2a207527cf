"""The files of a tree that a scan reads: what git would ignore is left out, and so are links."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

_GIT = ".git"


@dataclass(frozen=True, slots=True)
class Unread:
    """A place that a scan does not look at, and why."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class _Ignoring:
    """The patterns of one file, which speak of paths below `directory`."""

    directory: str
    patterns: GitIgnoreSpec


def files_of(paths: Iterable[Path], *, honour_gitignore: bool = True) -> Iterator[Path | Unread]:
    """Every file under the paths in name order, each once; a file that is given itself is always in.

    Links and `.git` are left out in silence, as ignored files are; what cannot be listed is an `Unread`.
    """
    seen: set[str] = set()
    for path in paths:
        if not path.is_dir():
            found: Iterable[Path | Unread] = (path,)
        else:
            ignoring = _above(path) if honour_gitignore else None
            found = _walk(path, ignoring)
        for item in found:
            if isinstance(item, Unread):
                yield item
                continue
            key = os.path.abspath(item)
            if key not in seen:
                seen.add(key)
                yield item


def _above(path: Path) -> tuple[_Ignoring, ...]:
    """The ignore files from the root of the repository down to the path's parent.

    None of them counts when they leave out the path itself: whoever names it wants it read.
    """
    absolute = Path(os.path.abspath(path))
    chain = [absolute, *absolute.parents]
    root = next((index for index, directory in enumerate(chain) if os.path.exists(directory / _GIT)), 0)
    found: list[_Ignoring] = []
    exclude = chain[root] / _GIT / "info" / "exclude"
    found += _ignoring(exclude, chain[root])
    for directory in reversed(chain[1 : root + 1]):
        found += _ignoring(directory / ".gitignore", directory)
    ignoring = tuple(found)
    named = [str(directory) for directory in chain[:root]]
    return () if any(_is_ignored(directory, True, ignoring) for directory in named) else ignoring


def _ignoring(file: Path, directory: Path) -> list[_Ignoring]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [_Ignoring(str(directory), GitIgnoreSpec.from_lines(lines))]


def _walk(directory: Path, ignoring: tuple[_Ignoring, ...] | None) -> Iterator[Path | Unread]:
    if ignoring is not None:
        absolute = Path(os.path.abspath(directory))
        ignoring = (*ignoring, *_ignoring(directory / ".gitignore", absolute))
    try:
        with os.scandir(directory) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
    except OSError as error:
        yield Unread(directory, f"cannot be listed: {error.strerror or error}")
        return
    for entry in entries:
        if entry.name == _GIT or entry.is_symlink():
            continue
        is_directory = entry.is_dir(follow_symlinks=False)
        path = directory / entry.name
        if ignoring and _is_ignored(os.path.abspath(path), is_directory, ignoring):
            continue
        if is_directory:
            yield from _walk(path, ignoring)
        elif entry.is_file(follow_symlinks=False):
            yield path


def _is_ignored(path: str, is_directory: bool, ignoring: tuple[_Ignoring, ...]) -> bool:
    """Whether git leaves the path out. The ignore file nearest to it that says anything decides."""
    for one in reversed(ignoring):
        relative = os.path.relpath(path, one.directory).replace(os.sep, "/")
        if relative.startswith(".."):
            continue
        verdict = one.patterns.check_file(relative + "/" if is_directory else relative).include
        if verdict is not None:
            return verdict
    return False
