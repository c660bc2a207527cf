"""Reads ZIP archives in memory, entry by entry, within limits. Nothing is ever extracted to disk."""

from __future__ import annotations

import io
import stat
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from ttsr_proxy.library.errors import InvalidArgument

MAX_ARCHIVE = 16 * 1024 * 1024
"""Bytes of an archive, and of all its entries as read."""

MAX_ENTRIES = 500
MAX_ENTRY = 1024 * 1024
"""Bytes of one entry as read."""

MAX_RATIO = 200
"""How many times larger than its compressed form an entry may be."""

MAX_DEPTH = 8
MAX_NAME = 200

TEXT_SUFFIXES = (".md", ".mdx", ".mdc", ".markdown", ".txt", ".rst", ".json", ".yaml", ".yml", ".toml")

_SNIFFED = 8 * 1024
_SKIPPED_FOLDERS = frozenset(("node_modules",))


@dataclass(frozen=True, slots=True)
class NamedText:
    """A text file of a source."""

    name: str
    text: str


def is_archive(data: bytes) -> bool:
    """Whether the data is a ZIP archive, by its first bytes; names say nothing."""
    return data.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def read_archive(data: bytes) -> list[NamedText]:
    """The text files of an archive, by name.

    Folders and files that start with a dot, `node_modules`, links, devices and files that are no text are
    left out. Raises InvalidArgument for an archive that breaks a limit or names a place outside itself.
    """
    if len(data) > MAX_ARCHIVE:
        raise InvalidArgument(f"the archive is larger than {MAX_ARCHIVE:,} bytes")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return sorted(_texts(archive), key=lambda item: item.name)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OSError) as error:
        raise InvalidArgument(f"the archive cannot be read: {error}") from error


def decode_text(data: bytes) -> str | None:
    """The text of a file: UTF-8, else Windows-1252; None for binary data."""
    if b"\0" in data[:_SNIFFED]:
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_text_name(name: str) -> bool:
    """Whether a file of this name, in a folder or an archive, is read as text."""
    parts = name.split("/")
    return name.lower().endswith(TEXT_SUFFIXES) and not any(
        part.startswith(".") or part in _SKIPPED_FOLDERS for part in parts
    )


def _texts(archive: zipfile.ZipFile) -> Iterator[NamedText]:
    entries = archive.infolist()
    if len(entries) > MAX_ENTRIES:
        raise InvalidArgument(f"the archive has more than {MAX_ENTRIES} entries")
    _refuse_overlaps(entries)
    budget = MAX_ARCHIVE
    for entry in entries:
        name = _safe_name(entry.filename)
        if entry.is_dir():
            continue
        if entry.flag_bits & 0x1:
            raise InvalidArgument(f"the archive's entry {name!r} is encrypted")
        if name.lower().endswith(".zip"):
            raise InvalidArgument(f"the archive holds another archive, {name!r}")
        mode = entry.external_attr >> 16
        if (mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG)) or not is_text_name(name):
            continue
        data = _read(archive, entry, name, budget)
        budget -= len(data)
        text = decode_text(data)
        if text is not None:
            yield NamedText(name, text)


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str, budget: int) -> bytes:
    # What the entry claims of its size is not believed.
    limit = min(MAX_ENTRY, budget)
    with archive.open(entry) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise InvalidArgument(
            f"the archive's entry {name!r} or all entries together are too large "
            f"({MAX_ENTRY:,} bytes for one, {MAX_ARCHIVE:,} for all)"
        )
    if len(data) > MAX_RATIO * max(1, entry.compress_size):
        raise InvalidArgument(f"the archive's entry {name!r} is compressed more than {MAX_RATIO} times")
    return data


def _refuse_overlaps(entries: list[zipfile.ZipInfo]) -> None:
    """Entries that share bytes make a small archive huge (CVE-2024-0450)."""
    end = 0
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        if entry.header_offset < end:
            raise InvalidArgument("the archive's entries overlap")
        end = entry.header_offset + 30 + len(entry.orig_filename) + entry.compress_size


def _safe_name(written: str) -> str:
    name = unicodedata.normalize("NFC", written.replace("\\", "/"))
    parts = name.rstrip("/").split("/")
    if (
        "\0" in name
        or name.startswith("/")
        or (len(name) > 1 and name[1] == ":")
        or any(part in ("", ".", "..") for part in parts)
    ):
        raise InvalidArgument(f"the archive names a place outside itself: {written[:100]!r}")
    if len(parts) > MAX_DEPTH or len(name) > MAX_NAME:
        raise InvalidArgument(f"the archive's entry {written[:100]!r} is nested too deep or named too long")
    return name
