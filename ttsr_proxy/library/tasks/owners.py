"""Which processes own tasks, and whether they still run.

Process numbers would not tell: containers that share a library have the same ones. Each owner keeps a lock on
a file of its own instead, which the system releases when the process ends, however it ends.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from filelock import FileLock, Timeout

from ttsr_proxy.library.storage import durable


class Owner:
    """This process as an owner of tasks. Everything here blocks."""

    def __init__(self, folder: Path) -> None:
        self.name = f"owner-{secrets.token_hex(8)}"
        self._folder = folder
        self._lock = FileLock(folder / self.name, mode=0o600, thread_local=False)

    def appear(self) -> None:
        """Be seen to run from now on. Raises OSError."""
        if not self._lock.is_locked:
            durable.make_folder(self._folder)
            self._lock.acquire()

    def leave(self) -> None:
        if self._lock.is_locked:
            durable.remove_file(self._folder / self.name)
            self._lock.release()

    def runs(self, name: str) -> bool:
        """Whether the owner of that name, perhaps this one, runs; a dead one's file is removed."""
        path = self._folder / name
        if not path.exists():
            return False
        lock = FileLock(path, timeout=0)
        try:
            lock.acquire()
        except Timeout:
            return True
        durable.remove_file(path)
        lock.release()
        return False
