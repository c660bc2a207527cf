"""Notices when rule files change, without threads: a look at their stat data, cheap enough per request.

A look covers files, folders and the places where folders may yet appear, so that the first rule of a fresh
project counts as much as an edit, also one by an editor that replaces the file. Nothing is listed for it: the
times of a folder tell when something in it came, went or got another name.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TypeAlias

from ttsr_proxy.rules.discovery import Discovery, Problem, discover, walk
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.rules.providers import PROVIDERS, Folder, RuleDirectories, Source, what_is_at

State: TypeAlias = tuple[int, ...] | None
"""What tells one version of a file or directory from another; None for what does not exist."""

# File systems stamp changes with the clock's last tick: a second change within one tick of the first looks
# like none. A look that finds a change this young is not trusted (git calls such files racily clean).
_TICK_NANOSECONDS = 50_000_000


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Where rules come from depends on what was `found` at some paths; what they say, on other `states`."""

    found: Mapping[str, int | None]
    states: Mapping[str, State]

    def holds(self) -> bool:
        """Whether everything is still as it was. A directory's own times tell of files that came or went."""
        return all(what_is_at(path) == what for path, what in self.found.items()) and all(
            _state(path) == state for path, state in self.states.items()
        )

    @property
    def is_young(self) -> bool:
        newest = max((max(state[:2]) for state in self.states.values() if state), default=0)
        return abs(time.time_ns() - newest) < _TICK_NANOSECONDS


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
        given = tuple(extra)
        fresh = self._fingerprint is not None and self._fingerprint.holds()
        if self._discovery is None or not fresh or given != self._extra:
            # Taken before reading, so that a change during it is seen by the next look.
            fingerprint = fingerprint_of(self._directories)
            discovery = discover(self._directories, given)
            if discovery != self._discovery:
                self._discovery = discovery
            self._fingerprint = None if fingerprint.is_young else fingerprint
            self._extra = given
        return self._discovery


def fingerprint_of(directories: RuleDirectories) -> Fingerprint:
    """The identity, size and times of everything that the rules depend on."""
    found: dict[str, int | None] = {}
    states: dict[str, State] = {}

    def look(path: Path) -> int | None:
        what = found[str(path)] = what_is_at(path)
        return what

    for provider in PROVIDERS:
        for source in provider.sources(directories, look):
            for path in _watched(source):
                states[path] = _state(path)
    return Fingerprint(found, states)


def _watched(source: Source) -> Iterable[str]:
    if isinstance(source, Folder) and source.installed:
        return (str(source.path),)
    return (path for path, _ in walk(source, _ignore))


def _ignore(problem: Problem) -> None:
    """Discovery reports what cannot be listed."""


_FIELDS = attrgetter("st_mtime_ns", "st_ctime_ns", "st_size", "st_ino", "st_dev", "st_mode")


def _state(path: str) -> State:
    try:
        fields: tuple[int, ...] = _FIELDS(os.stat(path))
    except OSError:
        return None
    return fields
