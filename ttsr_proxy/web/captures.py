"""Writes captures: off the event loop, within bounds, and never at the cost of an agent's session."""

from __future__ import annotations

import contextlib
import os
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import structlog

from ttsr_proxy.captures.lines import SUFFIX, file_name, lines
from ttsr_proxy.captures.tape import Tape
from ttsr_proxy.config import ProjectSettings, Settings
from ttsr_proxy.protocols.protocol import WireProtocol

MAX_WAITING = 32
"""Exchanges that may wait to be written. When the disk is slower than that, further ones are not kept."""

_PART = ".part"
"""Ends the name of a file that is being written. The dot before its name keeps it out of every listing."""

_LEFT_SECONDS = 3600.0
"""A file that has been in the making for so long was left by a process that died."""

MEGABYTE = 1_000_000

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Bounds:
    directory: Path
    max_bytes: float
    max_seconds: float


class Captures:
    """The captures of all projects. A failure is logged when it begins, and not again until it is over."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._writer: ThreadPoolExecutor | None = None
        self._waiting: set[Future[None]] = set()
        self._failing: set[str] = set()

    def keep(self, tape: Tape, protocol: WireProtocol, project: ProjectSettings) -> None:
        """Write the exchange, which is over, some time soon. Never raises."""
        if len(self._waiting) >= MAX_WAITING:
            self._failed("the disk is too slow")
            return
        if self._writer is None:
            self._writer = ThreadPoolExecutor(1, thread_name_prefix="captures")
        capture = project.capture
        bounds = _Bounds(
            self._settings.captures_of(project), capture.max_megabytes * MEGABYTE, capture.days * 86_400
        )
        done = self._writer.submit(self._write, tape, protocol, bounds)
        self._waiting.add(done)
        done.add_done_callback(self._waiting.discard)

    def close(self) -> None:
        """Write what waits, then end."""
        if self._writer is not None:
            self._writer.shutdown(wait=True)

    def _write(self, tape: Tape, protocol: WireProtocol, bounds: _Bounds) -> None:
        try:
            _write_file(tape, protocol, bounds)
        except OSError as error:
            self._failed(error.strerror or type(error).__name__)
        except Exception as error:
            # A fault of the program: its message may hold what people wrote.
            self._failed(type(error).__name__)
        else:
            self._failing.clear()

    def _failed(self, reason: str) -> None:
        if reason not in self._failing:
            self._failing.add(reason)
            _log.error("capture_failed", reason=reason)


def _write_file(tape: Tape, protocol: WireProtocol, bounds: _Bounds) -> None:
    """Raises OSError; what was begun is then gone."""
    data = b"".join(lines(tape, protocol))
    directory = bounds.directory
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    _make_room(bounds, len(data))
    name = file_name(tape)
    part = directory / f".{name}{_PART}"
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        os.replace(part, directory / name)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def _make_room(bounds: _Bounds, size: int) -> None:
    """Delete the captures that are too old, and the oldest until one of `size` bytes has room."""
    now = time.time()
    kept: list[tuple[float, int, str]] = []
    with os.scandir(bounds.directory) as entries:
        for entry in entries:
            ours = entry.name.endswith(SUFFIX)
            if not ours and not entry.name.endswith(SUFFIX + _PART):
                continue
            with contextlib.suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                if now - found.st_mtime > (bounds.max_seconds if ours else _LEFT_SECONDS):
                    os.unlink(entry.path)
                elif ours:
                    kept.append((found.st_mtime, found.st_size, entry.path))
    total = sum(size for _, size, _ in kept) + size
    for _, freed, path in sorted(kept):
        if total <= bounds.max_bytes:
            break
        with contextlib.suppress(OSError):
            os.unlink(path)
            total -= freed
