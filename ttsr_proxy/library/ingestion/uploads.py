"""Temporary uploads: files that wait to be named as a source, each bound to its user."""

from __future__ import annotations

import json
import re
import secrets
import time
from pathlib import Path, PurePosixPath

from ttsr_proxy.library.errors import Exhausted, Refused
from ttsr_proxy.library.storage import durable

MAX_UPLOAD = 16 * 1024 * 1024
"""Bytes of one upload."""

MAX_PENDING = 32
"""Uploads that one user may have waiting."""

KEPT_SECONDS = 12 * 3600.0

_ID = re.compile(r"(?:upload|shared)_[a-zA-Z0-9]{1,64}(?:\.[A-Za-z0-9]{1,16})?")
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,16}")


class Uploads:
    """The uploads below one folder. Everything here blocks."""

    def __init__(self, root: Path) -> None:
        self._root = root / "uploads"

    def add(self, user: str, file_name: str, data: bytes) -> str:
        """Keep a file; returns its id. Raises Exhausted when the user has too many waiting."""
        folder = self._folder(user)
        durable.make_folder(folder)
        self.sweep(user)
        if sum(1 for path in folder.glob("*.json")) >= MAX_PENDING:
            raise Exhausted(f"{MAX_PENDING} uploads are waiting already; compile them first")
        suffix = PurePosixPath(file_name.replace("\\", "/")).suffix
        upload = f"upload_{secrets.token_hex(16)}{suffix.lower() if _SUFFIX.fullmatch(suffix) else ''}"
        durable.write_file(folder / upload, data)
        meta = {"file_name": file_name[:255], "user": user, "created_at": time.time()}
        durable.write_file(folder / f"{upload}.json", json.dumps(meta).encode())
        return upload

    def read(self, user: str, upload: str) -> tuple[str, bytes]:
        """The name and the bytes of an upload. Raises Refused for one that is unknown, old or another's."""
        try:
            if not _ID.fullmatch(upload):
                raise FileNotFoundError
            meta = json.loads((self._folder(user) / f"{upload}.json").read_bytes())
            if meta["created_at"] < time.time() - KEPT_SECONDS:
                raise FileNotFoundError
            return str(meta["file_name"]), (self._folder(user) / upload).read_bytes()
        except (OSError, ValueError, KeyError) as error:
            raise Refused(
                f"temp_file_id {upload[:100]!r} is unknown, has expired, or belongs to another user"
            ) from error

    def sweep(self, user: str) -> None:
        """Remove what is too old."""
        for meta in self._folder(user).glob("*.json"):
            if meta.stat().st_mtime < time.time() - KEPT_SECONDS:
                durable.remove_file(meta.with_suffix(""))
                durable.remove_file(meta)

    def _folder(self, user: str) -> Path:
        return self._root / user
