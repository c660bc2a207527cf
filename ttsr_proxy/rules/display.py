"""How a rule's path is shown where a model can read it."""

from __future__ import annotations

from pathlib import Path, PurePath


def display_path(path: str | PurePath, project: Path, home: Path) -> str:
    """A path relative to the project, else to home as `~/...`, else the file name; never absolute.

    With forward slashes on every system. Nothing is looked up on disk. A URI is shown as it is.
    """
    if "://" in str(path):
        return str(path)
    pure = PurePath(path)
    if not pure.is_absolute():
        return pure.as_posix() if ".." not in pure.parts else pure.name
    if pure.is_relative_to(project):
        return pure.relative_to(project).as_posix()
    if pure.is_relative_to(home):
        return "~/" + pure.relative_to(home).as_posix()
    return pure.name
