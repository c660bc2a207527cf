"""Changes to several files that happen all or not at all.

A transaction is one file with all new contents. Until it is in place, nothing else has changed; from then on
it is carried out, again and again if need be, until it is gone.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path

from ttsr_proxy.jsontext import decode, encode
from ttsr_proxy.library.storage import durable

_COMPLETE = "*.json"


class Journal:
    """The transactions of one root folder. Whoever calls it holds the root's lock."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root
        self._folder = folder

    def pending(self) -> bool:
        """Whether a transaction is complete and may not be carried out to its end."""
        return any(self._folder.glob(_COMPLETE))

    def write(self, files: Mapping[str, str | None]) -> None:
        """Give files, named by paths below the root, new contents; None removes one."""
        durable.make_folder(self._folder)
        transaction = self._folder / f"{secrets.token_hex(8)}.json"
        durable.write_file(transaction, encode({"files": files}))
        durable.sync_folder(self._folder)
        self._carry_out(transaction)

    def recover(self) -> None:
        """Finish complete transactions and drop incomplete ones."""
        if not self._folder.is_dir():
            return
        for transaction in sorted(self._folder.glob(_COMPLETE)):
            self._carry_out(transaction)
        for path in self._folder.iterdir():
            durable.remove_file(path)

    def _carry_out(self, transaction: Path) -> None:
        files: dict[str, str | None] = decode(transaction.read_bytes())["files"]
        folders: dict[Path, None] = {}
        for name, text in files.items():
            target = self._root / name
            if text is not None:
                durable.make_folder(target.parent)
                durable.write_file(target, text.encode())
            elif target.parent.is_dir():
                durable.remove_file(target)
            folders[target.parent] = None
        for folder in folders:
            if folder.is_dir():
                # All of a folder's names at once; the transaction is there until they are durable.
                durable.sync_folder(folder)
                durable.remove_empty_folder(folder)
        durable.remove_file(transaction)
        durable.sync_folder(self._folder)
