"""A client of the rule library's API, with the names of the reference's Python SDK.

from ttsr_proxy.client import SyncHTTPClient

client = SyncHTTPClient(url="http://127.0.0.1:8787")
task = client.rule_compile("Never call eval on input.", {"sources": ["docs/standards.md"]})
"""

from __future__ import annotations

import asyncio
import io
import os
import zipfile
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp

from ttsr_proxy.errors import TtsrError
from ttsr_proxy.jsontext import JsonObject, decode_object
from ttsr_proxy.library.ingestion.archives import is_text_name

DEFAULT_URL = "http://127.0.0.1:8787"

_T = TypeVar("_T")
_API = "/api/v1"


class ApiError(TtsrError):
    """The API refused a call, or could not be reached (code `UNAVAILABLE`)."""

    def __init__(
        self, code: str, message: str, details: Mapping[str, Any], status: int | None = None
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.details = details
        self.status = status
        """The HTTP status; None if there was no answer."""


class AsyncHTTPClient:
    """Calls the API; every method may raise ApiError.

    `account` and `user` are for servers behind a gateway that they trust.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        api_key: str | None = None,
        *,
        account: str | None = None,
        user: str | None = None,
        timeout: float = 60.0,
    ) -> None:
        self._url = url.rstrip("/")
        given = {"X-API-Key": api_key, "X-OpenViking-Account": account, "X-OpenViking-User": user}
        self._headers = {name: value for name, value in given.items() if value}
        self._timeout = aiohttp.ClientTimeout(total=timeout)

    async def initialize(self) -> None:
        """Nothing to do; other clients of this API need the call."""

    async def close(self) -> None:
        """Nothing to do: each call has its own connection."""

    async def health(self) -> bool:
        """Whether the server answers."""
        try:
            return (await self._send("GET", "/health")).get("status") == "ok"
        except ApiError:
            return False

    async def rule_compile(
        self, instruction: str | None = None, options: Mapping[str, Any] | None = None
    ) -> JsonObject:
        """Compile constraints; the task that does it.

        `options["sources"]` holds at most 16 sources: objects of the API, or texts, each the path of a file
        or directory here (it is uploaded), a URL, or a `viking://` URI. Raises FileNotFoundError for a path
        that is not there.
        """
        sources = [await self._source(source) for source in (options or {}).get("sources", ())]
        body: JsonObject = {"sources": sources} if sources else {}
        if instruction is not None:
            body["instruction"] = instruction
        result: JsonObject = await self._call("POST", f"{_API}/rules/compile", json=body)
        return result

    async def rule_search(self, task_context: str, options: Mapping[str, Any] | None = None) -> JsonObject:
        """The rules that apply to a task. `options` may have `rule_probability_threshold`."""
        body = {"task_context": task_context, **(options or {})}
        result: JsonObject = await self._call("POST", f"{_API}/rules/search", json=body)
        return result

    async def get_task(self, task_id: str) -> JsonObject | None:
        """A task; None if there is none of this id."""
        try:
            task: JsonObject = await self._call("GET", f"{_API}/tasks/{task_id}")
        except ApiError as error:
            if error.code == "NOT_FOUND":
                return None
            raise
        return task

    async def list_tasks(
        self,
        task_type: str | None = None,
        status: str | None = None,
        resource_id: str | None = None,
        limit: int = 50,
    ) -> list[JsonObject]:
        """The caller's tasks, newest first."""
        given = {"task_type": task_type, "status": status, "resource_id": resource_id, "limit": str(limit)}
        query = {name: value for name, value in given.items() if value is not None}
        tasks: list[JsonObject] = await self._call("GET", f"{_API}/tasks", params=query)
        return tasks

    async def cancel_task(self, task_id: str) -> JsonObject:
        task: JsonObject = await self._call("POST", f"{_API}/tasks/{task_id}/cancel")
        return task

    async def read(self, uri: str, offset: int = 0, limit: int = -1) -> str:
        """A file of the rules; `offset` and `limit` count lines."""
        query = {"uri": uri, "offset": str(offset), "limit": str(limit)}
        text: str = await self._call("GET", f"{_API}/content/read", params=query)
        return text

    async def ls(self, uri: str) -> list[JsonObject]:
        """The scenarios below the rules' root, or the files of one."""
        entries: list[JsonObject] = await self._call("GET", f"{_API}/fs/ls", params={"uri": uri})
        return entries

    async def _source(self, source: str | os.PathLike[str] | JsonObject) -> JsonObject:
        if isinstance(source, dict):
            return source
        text = os.fspath(source)
        if text.startswith("viking://"):
            return {"resource_uri": text}
        if text.startswith(("http://", "https://")):
            return {"path": text}
        name, file_name, data = await asyncio.to_thread(_packed, Path(text))
        form = aiohttp.FormData()
        form.add_field("file", data, filename=file_name, content_type="application/octet-stream")
        uploaded = await self._call("POST", f"{_API}/resources/temp_upload", data=form)
        return {"temp_file_id": uploaded["temp_file_id"], "source_name": name}

    async def _call(self, method: str, path: str, **options: Any) -> Any:
        return (await self._send(method, path, **options)).get("result")

    async def _send(self, method: str, path: str, **options: Any) -> JsonObject:
        try:
            async with (
                aiohttp.ClientSession(timeout=self._timeout, headers=self._headers) as session,
                session.request(method, self._url + path, **options) as answer,
            ):
                document = decode_object(await answer.read())
                status = answer.status
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            reason = "it took too long" if isinstance(error, TimeoutError) else str(error)
            raise ApiError("UNAVAILABLE", f"{self._url} cannot be reached: {reason}", {}) from error
        error_part = (document or {}).get("error")
        if document is None or status >= 400 or document.get("status") == "error":
            told = error_part if isinstance(error_part, dict) else {}
            message = str(told.get("message") or f"the server answered with status {status}")
            raise ApiError(str(told.get("code") or "UNKNOWN"), message, told.get("details") or {}, status)
        return document


class SyncHTTPClient:
    """`AsyncHTTPClient` for code that is not asynchronous; works inside a running event loop too."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        api_key: str | None = None,
        *,
        account: str | None = None,
        user: str | None = None,
        timeout: float = 60.0,
    ) -> None:
        self._client = AsyncHTTPClient(url, api_key, account=account, user=user, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def initialize(self) -> None:
        """Nothing to do; other clients of this API need the call."""

    def close(self) -> None:
        """Nothing to do: each call has its own connection."""

    def health(self) -> bool:
        return _run(self._client.health())

    def rule_compile(
        self, instruction: str | None = None, options: Mapping[str, Any] | None = None
    ) -> JsonObject:
        return _run(self._client.rule_compile(instruction, options))

    def rule_search(self, task_context: str, options: Mapping[str, Any] | None = None) -> JsonObject:
        return _run(self._client.rule_search(task_context, options))

    def get_task(self, task_id: str) -> JsonObject | None:
        return _run(self._client.get_task(task_id))

    def list_tasks(
        self,
        task_type: str | None = None,
        status: str | None = None,
        resource_id: str | None = None,
        limit: int = 50,
    ) -> list[JsonObject]:
        return _run(self._client.list_tasks(task_type, status, resource_id, limit))

    def cancel_task(self, task_id: str) -> JsonObject:
        return _run(self._client.cancel_task(task_id))

    def read(self, uri: str, offset: int = 0, limit: int = -1) -> str:
        return _run(self._client.read(uri, offset, limit))

    def ls(self, uri: str) -> list[JsonObject]:
        return _run(self._client.ls(uri))


def _run(call: Coroutine[Any, Any, _T]) -> _T:
    """Run a call in a thread of its own, whose event loop is nobody else's."""
    with ThreadPoolExecutor(1, thread_name_prefix="ttsr-client") as thread:
        return thread.submit(asyncio.run, call).result()


def _packed(path: Path) -> tuple[str, str, bytes]:
    """The name of a file and its bytes, or of a directory and a ZIP archive of its text files."""
    name = path.resolve().name
    if not path.is_dir():
        return name, name, path.read_bytes()
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(path.rglob("*")):
            inside = file.relative_to(path).as_posix()
            if file.is_file() and not file.is_symlink() and is_text_name(inside):
                archive.write(file, inside)
    return name, f"{name}.zip", data.getvalue()
