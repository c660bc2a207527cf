"""Texts behind resource URIs: a user's earlier uploads and URLs, and a configured read-only folder."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from ttsr_proxy.library.errors import InvalidArgument, NotFound
from ttsr_proxy.library.ingestion.archives import MAX_ENTRY, NamedText, decode_text, is_text_name
from ttsr_proxy.library.storage import durable

MAX_FILES = 500
"""Files of one folder that are read."""

_SHARED = "viking://resources/"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._ -]{0,127}")


class Resources:
    """Where sources are kept. Everything here blocks."""

    def __init__(self, root: Path, shared: Path | None) -> None:
        self._root = root / "resources"
        self._shared = shared

    def keep(self, user: str, kind: str, name: str, texts: Sequence[NamedText]) -> str:
        """Keep a source's texts; returns its URI, the same for the same texts under the same name.

        `kind` is `uploads` or `urls`. One text is a file, several are a folder.
        """
        name = _UNSAFE.sub("-", PurePosixPath(name.replace("\\", "/")).name).strip("-.")[:80] or "source"
        folder = self._root / user / kind
        if len(texts) == 1 and "/" not in texts[0].name:
            target = PurePosixPath(name)
            name = f"{target.stem}{target.suffix or '.md'}"
            _write(folder / name, texts[0].text)
        else:
            for text in texts:
                _write(folder / name / Path(*_segments(text.name)), text.text)
        return f"viking://user/{user}/resources/{kind}/{name}"

    def read(self, user: str, uri: str) -> list[NamedText]:
        """The texts at a URI, folders with all that is in them.

        Raises NotFound for what is not there or is another user's, InvalidArgument for what is no resource.
        """
        base, path = self._place(user, uri)
        target = base.joinpath(*path)
        # Neither a link nor a trick in a name may lead out of the base.
        if not Path(os.path.realpath(target)).is_relative_to(os.path.realpath(base)):
            raise NotFound(f"there is no resource {uri}", uri=uri)
        if target.is_file():
            return [NamedText(target.name, _text(target, uri))]
        if not target.is_dir():
            raise NotFound(f"there is no resource {uri}", uri=uri)
        names = sorted(
            path.relative_to(target).as_posix()
            for path in target.rglob("*")
            if path.is_file() and not path.is_symlink()
        )
        readable = [name for name in names if is_text_name(name)]
        if len(readable) > MAX_FILES:
            raise InvalidArgument(f"{uri} holds more than {MAX_FILES} files; name a folder in it")
        return [NamedText(name, _text(target / name, uri)) for name in readable]

    def _place(self, user: str, uri: str) -> tuple[Path, list[str]]:
        own = f"viking://user/{user}/resources/"
        if uri.startswith(own):
            return self._root / user, _checked(uri.removeprefix(own), uri)
        if uri.startswith(_SHARED) and self._shared is not None:
            return self._shared, _checked(uri.removeprefix(_SHARED), uri)
        if uri.startswith(_SHARED):
            # Without a shared folder the user's own sources are the resources.
            return self._root / user, _checked(uri.removeprefix(_SHARED), uri)
        if not uri.startswith("viking://"):
            raise InvalidArgument(f"resource_uri must be a viking:// URI, not {uri[:200]!r}")
        raise NotFound(f"there is no resource {uri}", uri=uri)


def _checked(path: str, uri: str) -> list[str]:
    parts = path.rstrip("/").split("/") if path.rstrip("/") else []
    if not all(_SEGMENT.fullmatch(part) for part in parts):
        raise InvalidArgument(f"{uri[:200]!r} is not the URI of a resource")
    return parts


def _segments(name: str) -> list[str]:
    return [_UNSAFE.sub("-", part).lstrip(".-") or "x" for part in name.split("/")]


def _write(path: Path, text: str) -> None:
    data = text.encode("utf-8", "replace")
    if path.exists() and hashlib.sha256(path.read_bytes()).digest() == hashlib.sha256(data).digest():
        return
    durable.make_folder(path.parent)
    durable.write_file(path, data)


def _text(path: Path, uri: str) -> str:
    if path.stat().st_size > MAX_ENTRY:
        raise InvalidArgument(f"{path.name} in {uri} is larger than {MAX_ENTRY:,} bytes")
    text = decode_text(path.read_bytes())
    if text is None:
        raise InvalidArgument(f"{path.name} in {uri} is no text")
    return text
