"""Single steps on files, private to their owner. Symbolic links are never followed.

What a file holds is durable once `write_file` returns; its name, or that it is gone, once its folder has
been synced.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

LARGEST_FILE = 1_048_576
"""Bytes of a library file that are read."""


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, readable by the owner only."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
        sync_folder(path.parent)


def write_file(path: Path, data: bytes) -> None:
    """Put a file in place whole: a reader sees the old one or the new one."""
    temporary = path.with_name(f".{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def remove_file(path: Path) -> None:
    """Remove a file if it is there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def remove_empty_folder(folder: Path) -> None:
    """Remove a folder if nothing is left in it."""
    if folder.is_dir() and not any(folder.iterdir()):
        os.rmdir(folder)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_file(path: Path) -> bytes:
    """A regular file's bytes. Raises OSError for links, devices and files beyond `LARGEST_FILE`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "not a regular file")
        data = file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise OSError(0, f"larger than {LARGEST_FILE:,} bytes")
    return data
