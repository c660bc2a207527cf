"""Notices when rule files change, without threads: a scan of their stat data, cheap enough per request.

A scan covers files, folders and the places where folders may yet appear, so that the first rule of a fresh
project counts as much as an edit, also one by an editor that replaces the file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from ttsr_proxy.rules.discovery import Discovery, Problem, discover, source_files
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.rules.providers import PROVIDERS, RuleDirectories

Fingerprint: TypeAlias = tuple[tuple[str, tuple[int, ...] | None], ...]

# File systems stamp changes with the clock's last tick: a second change within one tick of the first looks
# like none. A scan that finds a change this young is not trusted (git calls such files racily clean).
_TICK_NANOSECONDS = 50_000_000


class RuleSource:
    """The discovered rules of one project, read again when something on disk has changed."""

    def __init__(self, directories: RuleDirectories) -> None:
        self._directories = directories
        self._fingerprint: Fingerprint | None = None
        self._extra: tuple[tuple[str, Rule], ...] = ()
        self._discovery: Discovery | None = None

    def current(self, extra: Sequence[tuple[str, Rule]] = ()) -> Discovery:
        """Today's rules; the same object as before if neither the disk nor `extra` changed.

        Raises ValueError when `extra` names a provider that does not exist.
        """
        fingerprint = fingerprint_of(self._directories)
        given = tuple(extra)
        if self._discovery is None or fingerprint != self._fingerprint or given != self._extra:
            discovery = discover(self._directories, given)
            if discovery != self._discovery:
                self._discovery = discovery
            # Taken before reading, so that a change during it is seen by the next scan.
            self._fingerprint = None if _is_young(fingerprint) else fingerprint
            self._extra = given
        return self._discovery


def fingerprint_of(directories: RuleDirectories) -> Fingerprint:
    """The identity, size and times of everything that discovery would read, by path."""
    paths: list[Path] = []

    def ignore(problem: Problem) -> None:
        """Discovery reports what cannot be listed; here it only has to be the same each time."""

    for provider in PROVIDERS:
        for source in provider.sources(directories):
            paths.append(source.path)
            paths += source_files(source, ignore)
    return tuple((str(path), _stat(path)) for path in paths)


def _stat(path: Path) -> tuple[int, ...] | None:
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino, stat.st_dev, stat.st_mode)


def _is_young(fingerprint: Fingerprint) -> bool:
    newest = max((max(stat[:2]) for _, stat in fingerprint if stat), default=0)
    return abs(time.time_ns() - newest) < _TICK_NANOSECONDS
