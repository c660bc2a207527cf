"""Changes to several files that happen all or not at all.

A transaction is a folder with the new contents and, once it is complete, a manifest named `COMMIT`. Until
the manifest is there, nothing else has changed; from then on the transaction is carried out, again and
again if need be, until its folder is gone.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from pathlib import Path

from ttsr_proxy.jsontext import decode_object, encode
from ttsr_proxy.library.storage import durable

MANIFEST = "COMMIT"


class Journal:
    """The transactions of one root folder. Whoever calls it holds the root's lock."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root
        self._folder = folder

    def pending(self) -> bool:
        """Whether a transaction is complete and may not be carried out to its end."""
        return any(self._folder.glob(f"*/{MANIFEST}"))

    def write(self, files: Mapping[str, str | None]) -> None:
        """Give files, named by paths below the root, new contents; None removes one."""
        transaction = self._folder / secrets.token_hex(8)
        durable.make_folder(transaction)
        entries = []
        for number, (name, text) in enumerate(files.items()):
            entry: dict[str, str | None] = {"path": name, "staged": None, "sha256": None}
            if text is not None:
                data = text.encode()
                entry |= {"staged": str(number), "sha256": hashlib.sha256(data).hexdigest()}
                durable.write_file(transaction / str(number), data)
            entries.append(entry)
        durable.write_file(transaction / MANIFEST, encode({"files": entries}))
        self._carry_out(transaction, entries)

    def recover(self) -> None:
        """Finish complete transactions and drop incomplete ones."""
        if not self._folder.is_dir():
            return
        for transaction in sorted(self._folder.iterdir()):
            manifest = transaction / MANIFEST
            document = decode_object(durable.read_file(manifest)) if manifest.exists() else None
            if document is None:
                durable.remove_folder(transaction)
            else:
                self._carry_out(transaction, document["files"])

    def _carry_out(self, transaction: Path, entries: list[dict[str, str | None]]) -> None:
        for entry in entries:
            target = self._root / str(entry["path"])
            if entry["staged"] is None:
                if target.parent.is_dir():
                    durable.remove_file(target)
                    durable.remove_empty_folder(target.parent)
            else:
                data = durable.read_file(transaction / entry["staged"])
                if hashlib.sha256(data).hexdigest() != entry["sha256"]:
                    raise OSError(0, f"{transaction} is damaged: staged file {entry['staged']} has changed")
                durable.make_folder(target.parent)
                durable.write_file(target, data)
        # First the manifest: what is left of the folder after a crash is then dropped.
        durable.remove_file(transaction / MANIFEST)
        durable.remove_folder(transaction)
