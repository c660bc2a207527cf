"""The sources of a compilation: what a request names, checked at once, and its texts, fetched later."""

from __future__ import annotations

import asyncio
import fnmatch
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.library.compilation.blocks import SourceText
from ttsr_proxy.library.errors import InvalidArgument, Refused
from ttsr_proxy.library.ingestion.archives import NamedText, decode_text, is_archive, read_archive
from ttsr_proxy.library.ingestion.resources import Resources
from ttsr_proxy.library.ingestion.uploads import Uploads
from ttsr_proxy.library.ingestion.urls import Fetcher

MAX_CHARACTERS = 2_000_000
"""Characters of all sources of one compilation."""


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """One source as a request names it: exactly one of the first three is given."""

    resource_uri: str | None = None
    path: str | None = None
    temp_file_id: str | None = None
    source_name: str | None = None
    include: str | None = None
    """Comma list of globs: of a folder or archive, only these files."""
    exclude: str | None = None
    ignore_dirs: str | None = None
    """Comma list of folder names that are left out."""

    def to_json(self) -> JsonObject:
        return {key: value for key, value in asdict(self).items() if value is not None}


class SourceReader:
    """Where sources come from."""

    def __init__(self, uploads: Uploads, resources: Resources, fetcher: Fetcher | None) -> None:
        self._uploads = uploads
        self._resources = resources
        self._fetcher = fetcher
        """None: URLs may not be fetched."""

    async def check(self, user: str, source: SourceRequest) -> None:
        """What can be seen to be wrong before anything is read. Raises LibraryError."""
        if source.temp_file_id is not None:
            await asyncio.to_thread(self._uploads.read, user, source.temp_file_id)
        elif source.path is not None:
            if "://" not in source.path:
                raise Refused("files of the server cannot be read; upload the file and give its temp_file_id")
            self._allowed().check(source.path)

    async def read(self, user: str, source: SourceRequest) -> tuple[str, list[SourceText]]:
        """The source's URI and its texts; what is new is kept as a resource. Raises LibraryError."""
        if source.resource_uri is not None:
            uri = source.resource_uri.rstrip("/")
            texts = await asyncio.to_thread(self._resources.read, user, uri)
        elif source.temp_file_id is not None:
            name, data = await asyncio.to_thread(self._uploads.read, user, source.temp_file_id)
            texts = await asyncio.to_thread(_uploaded, source.source_name or name, data)
            uri = await self._keep(user, "uploads", source.source_name or name, texts)
        else:
            assert source.path is not None
            text, name = await self._allowed().fetch(source.path)
            texts = [NamedText(name, text)]
            uri = await self._keep(user, "urls", source.source_name or name, texts)
        chosen = [text for text in texts if _is_chosen(text.name, source)]
        if not chosen:
            raise InvalidArgument(f"{uri} holds no text that can be compiled")
        single = len(texts) == 1 and "/" not in texts[0].name
        return uri, [
            SourceText(uri if single else f"{uri}/{text.name}", text.text, text.name) for text in chosen
        ]

    async def _keep(self, user: str, kind: str, name: str, texts: Sequence[NamedText]) -> str:
        if not texts:
            raise InvalidArgument(f"{name[:200]} holds no text that can be compiled")
        return await asyncio.to_thread(self._resources.keep, user, kind, name, texts)

    def _allowed(self) -> Fetcher:
        if self._fetcher is None:
            raise Refused("fetching URLs is switched off (library.sources.allowUrls)")
        return self._fetcher


def check_size(texts: Sequence[SourceText]) -> None:
    """Raise InvalidArgument if the texts together are too long."""
    if sum(len(text.text) for text in texts) > MAX_CHARACTERS:
        raise InvalidArgument(f"the sources together hold more than {MAX_CHARACTERS:,} characters")


def _uploaded(name: str, data: bytes) -> list[NamedText]:
    if is_archive(data):
        return read_archive(data)
    text = decode_text(data)
    if text is None:
        raise InvalidArgument(f"{name[:200]} is neither text nor a ZIP archive")
    return [NamedText(name.replace("\\", "/").rpartition("/")[2], text)]


def _is_chosen(name: str, source: SourceRequest) -> bool:
    folders = name.split("/")[:-1]
    ignored = _listed(source.ignore_dirs)
    return (
        (not source.include or any(_fits(name, glob) for glob in _listed(source.include)))
        and not any(_fits(name, glob) for glob in _listed(source.exclude))
        and not any(folder in ignored for folder in folders)
    )


def _fits(name: str, glob: str) -> bool:
    return fnmatch.fnmatch(name, glob) or fnmatch.fnmatch(name.rpartition("/")[2], glob)


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]
