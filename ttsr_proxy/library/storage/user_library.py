"""One user's library on disk: read as a snapshot, changed by whole commits.

Everything here blocks, so that it is called from worker threads.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from ttsr_proxy.jsontext import decode_object, encode
from ttsr_proxy.library.errors import LibraryBusy, LibraryError, NotFound, UnreadableFile
from ttsr_proxy.library.model import LibraryRule, Scenario, Snapshot
from ttsr_proxy.library.storage import durable
from ttsr_proxy.library.storage.journal import Journal
from ttsr_proxy.library.storage.rule_file import RuleFileError, read_rule
from ttsr_proxy.library.storage.scenario_card import default_title, read_card
from ttsr_proxy.library.uris import CARD, RulesPlace, is_name, rules_root

STATE = ".state"
LOCK_SECONDS = 10.0
"""How long a writer waits for another process."""

CHECK_SECONDS = 1.0
"""How long a snapshot is good before the folder is looked at again."""

LOOKING_SHARE = 0.02
"""The most of its time that a large library may be looked at."""

# File systems stamp changes with the clock's last tick: a file this young may change again unseen.
_TICK_NANOSECONDS = 50_000_000
_ARCHIVED = re.compile(r"(?P<id>[a-z0-9-]+)@\d+\.md")

_Stamp = tuple[int, ...]


class LibraryChanged(LibraryError):
    """The library is no longer as it was when a change to it was planned."""

    code = "CONFLICT"


@dataclass(frozen=True, slots=True)
class Changes:
    """New contents of files, by path below the rules folder; None removes one."""

    files: Mapping[str, str | None]

    def __bool__(self) -> bool:
        return bool(self.files)


class UserLibrary:
    """The rules folder of one user. Any number of threads and processes may use it."""

    def __init__(self, folder: Path, user: str) -> None:
        self.folder = folder
        self.user = user
        self._state = folder / STATE
        self._journal = Journal(folder, self._state / "txn")
        self._mutex = threading.RLock()
        self._read: dict[Path, tuple[_Stamp, LibraryRule | Scenario]] = {}
        self._snapshot: Snapshot | None = None
        self._seen: _Seen | None = None
        self._due = 0.0

    def snapshot(self, *, fresh: bool = False) -> Snapshot:
        """The library as it is, hand edits included; the same object as long as nothing has changed.

        The folder is looked at once a second (less often if that takes long), or now if `fresh`. Raises
        UnreadableFile for a file that is no rule.
        """
        with self._mutex:
            started = time.monotonic()
            if self._snapshot is None or fresh or started >= self._due:
                self._refresh()
                now = time.monotonic()
                self._due = now + max(CHECK_SECONDS, (now - started) / LOOKING_SHARE)
            assert self._snapshot is not None
            return self._snapshot

    def commit(self, changes: Changes, base: Snapshot) -> Snapshot:
        """Write changes that were planned on `base`; either all of them or none survive a crash.

        Raises LibraryChanged if the library is no longer as `base` has it, LibraryBusy if another process
        keeps it.
        """
        with self._mutex, self._locked():
            self._journal.recover()
            current = self.snapshot(fresh=True)
            if current is not base:
                raise LibraryChanged("the library has changed since this was planned")
            generation = encode({"generation": base.generation + 1}).decode()
            try:
                self._journal.write({**changes.files, f"{STATE}/library.json": generation})
            except OSError as error:
                raise LibraryError(f"the library at {self.folder} cannot be written: {error}") from error
            return self.snapshot(fresh=True)

    def text(self, place: RulesPlace) -> str:
        """The file at a place, verbatim. Raises NotFound."""
        if place.scenario_id is None or place.file_name is None:
            raise NotFound("this is a folder; name a file in it")
        path = self.folder / place.scenario_id / place.file_name
        self.snapshot(fresh=True)
        try:
            self._refuse_links(path.parent)
            return _decoded(durable.read_file(path), self._uri(path))
        except FileNotFoundError as error:
            raise NotFound(f"there is no {self._uri(path)}") from error
        except OSError as error:
            raise UnreadableFile(self._uri(path), _why(error)) from error

    def _refresh(self) -> None:
        for _ in range(3):
            if self._journal.pending():
                with self._locked():
                    self._journal.recover()
            seen = self._look()
            if self._snapshot is not None and seen == self._seen:
                return
            snapshot = self._load(seen)
            # Another process may have been in the middle of a commit while the files were read.
            if self._look() == seen and not self._journal.pending():
                break
        else:
            with self._locked():
                self._journal.recover()
                seen = self._look()
                snapshot = self._load(seen)
        if snapshot != self._snapshot:
            self._snapshot = snapshot
        self._seen = None if seen.is_young else seen

    def _look(self) -> _Seen:
        files: dict[Path, _Stamp] = {}
        links: list[Path] = []
        for folder in _folders(self.folder):
            if folder.is_symlink():
                links.append(folder)
                continue
            with os.scandir(folder) as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    if entry.name.endswith(".md") and not entry.name.startswith("."):
                        files[folder / entry.name] = _stamp(entry.stat(follow_symlinks=False))
        index = self._state / "library.json"
        archive = self._state / "archive"
        places = tuple(_stamp(os.stat(path)) if path.exists() else () for path in (index, archive))
        return _Seen(files, tuple(links), places)

    def _load(self, seen: _Seen) -> Snapshot:
        for link in seen.links:
            raise UnreadableFile(self._uri(link), "is a symbolic link; links are not followed")
        rules: dict[str, LibraryRule] = {}
        scenarios: dict[str, Scenario] = {}
        known, self._read = self._read, {}
        for path, stamp in seen.files.items():
            scenario_id = path.parent.name
            cached = known.get(path)
            item = cached[1] if cached and cached[0] == stamp else self._parse(path, scenario_id)
            if not _is_young(stamp):
                self._read[path] = (stamp, item)
            scenarios.setdefault(scenario_id, Scenario(scenario_id, default_title(scenario_id)))
            if isinstance(item, Scenario):
                scenarios[scenario_id] = item
            elif item.atomic_id in rules:
                other = self._uri(self.folder / rules[item.atomic_id].scenario_id / item.file_name)
                raise UnreadableFile(self._uri(path), f"has the id of {other}; ids are unique")
            elif item.status != "archived":
                rules[item.atomic_id] = item
        used = {rule.scenario_id for rule in rules.values()}
        return Snapshot(
            self.user,
            self._generation(),
            rules,
            {name: scenario for name, scenario in scenarios.items() if name in used},
            self._archived(),
        )

    def _parse(self, path: Path, scenario_id: str) -> LibraryRule | Scenario:
        uri = self._uri(path)
        try:
            text = _decoded(durable.read_file(path), uri)
            return (
                read_card(text, scenario_id) if path.name == CARD else read_rule(text, scenario_id, path.name)
            )
        except RuleFileError as error:
            raise UnreadableFile(uri, str(error)) from error
        except OSError as error:
            raise UnreadableFile(uri, _why(error)) from error

    def _generation(self) -> int:
        try:
            index = decode_object(durable.read_file(self._state / "library.json"))
        except FileNotFoundError:
            return 0
        generation = index.get("generation") if index else None
        return generation if isinstance(generation, int) else 0

    def _archived(self) -> frozenset[str]:
        archive = self._state / "archive"
        names = (path.name for path in archive.iterdir()) if archive.is_dir() else ()
        return frozenset(match["id"] for name in names if (match := _ARCHIVED.fullmatch(name)))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        durable.make_folder(self._state)
        try:
            with FileLock(self._state / "lock", timeout=LOCK_SECONDS, mode=0o600):
                yield
        except Timeout as error:
            raise LibraryBusy(f"another process keeps the library of {self.user} locked") from error

    def _refuse_links(self, folder: Path) -> None:
        if folder.is_symlink():
            raise OSError(0, "is a symbolic link; links are not followed")

    def _uri(self, path: Path) -> str:
        return f"{rules_root(self.user)}/{path.relative_to(self.folder).as_posix()}"


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a look at the folder showed."""

    files: Mapping[Path, _Stamp]
    links: tuple[Path, ...]
    places: tuple[_Stamp, ...]

    @property
    def is_young(self) -> bool:
        return any(_is_young(stamp) for stamp in (*self.files.values(), *self.places) if stamp)


def _folders(root: Path) -> list[Path]:
    try:
        with os.scandir(root) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir() and is_name(entry.name))
    except FileNotFoundError:
        return []
    return [root / name for name in names]


def _stamp(status: os.stat_result) -> _Stamp:
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def _is_young(stamp: _Stamp) -> bool:
    return abs(time.time_ns() - max(stamp[:2])) < _TICK_NANOSECONDS


def _decoded(data: bytes, uri: str) -> str:
    try:
        return data.decode().removeprefix("\ufeff").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise UnreadableFile(uri, f"is not UTF-8 text ({error.reason} at byte {error.start})") from error


def _why(error: OSError) -> str:
    return f"cannot be read: {error.strerror or error}"
