"""The library's API: compile, tasks, uploads and reading (reference, "Rules", "Background Tasks")."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from aiohttp import BodyPartReader, web

from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.library.errors import InvalidArgument, NotFound
from ttsr_proxy.library.ingestion.uploads import MAX_UPLOAD, Uploads
from ttsr_proxy.library.model import Snapshot
from ttsr_proxy.library.retrieval import Searcher
from ttsr_proxy.library.service import LibraryService
from ttsr_proxy.library.sources import SourceRequest
from ttsr_proxy.library.uris import CARD, RulesPlace, rules_place
from ttsr_proxy.web.library_auth import Authenticator
from ttsr_proxy.web.library_wire import Fields, Handler, enveloped, ok, read_object, wrong_method

MAX_TEXT = 64_000
"""Characters of an instruction and of a task context."""

MAX_SOURCES = 16
DEFAULT_THRESHOLD = 0.65
MAX_LIMIT = 200

_FORMS = ("resource_uri", "path", "temp_file_id")
_UPLOAD_MODES = ("local", "shared")

PREFIX = "/api/v1/"

ENDPOINTS = (
    ("GET", "/health", '`{"status": "ok"}`, for the library\'s clients'),
    ("POST", "/api/v1/rules/compile", "compile constraints into rules, as a background task"),
    ("POST", "/api/v1/rules/search", "the caller's active rules that are for a task"),
    ("GET", "/api/v1/tasks", "the caller's tasks, newest first"),
    ("GET", "/api/v1/tasks/{id}", "one task"),
    ("POST", "/api/v1/tasks/{id}/cancel", "cancel a task"),
    ("POST", "/api/v1/resources/temp_upload", "upload a file to compile"),
    ("GET", "/api/v1/content/read", "a file of the caller's rules"),
    ("GET", "/api/v1/fs/ls", "the caller's scenarios, or the files of one"),
)


@dataclass(frozen=True, slots=True)
class LibraryApi:
    """The handlers. The caller's identity decides whose library each is about."""

    service: LibraryService
    searcher: Searcher
    uploads: Uploads
    authenticator: Authenticator
    takes_credentials: bool = False
    """The compiler's model is asked with the caller's own credential, if there is one."""

    def add_routes(self, router: web.UrlDispatcher) -> None:
        handlers: Mapping[str, Handler] = {
            "/health": _health,
            "/api/v1/rules/compile": self.compile,
            "/api/v1/rules/search": self.search,
            "/api/v1/tasks": self.list_tasks,
            "/api/v1/tasks/{id}": self.task,
            "/api/v1/tasks/{id}/cancel": self.cancel,
            "/api/v1/resources/temp_upload": self.upload,
            "/api/v1/content/read": self.read,
            "/api/v1/fs/ls": self.list_folder,
        }
        for method, path, _ in ENDPOINTS:
            resource = router.add_resource(path)
            resource.add_route(method, enveloped(handlers[path]))
            resource.add_route("*", enveloped(wrong_method))

    async def compile(self, request: web.Request) -> web.Response:
        user = self.authenticator.user(request)
        body = await read_object(request)
        instruction = body.text("instruction", longest=MAX_TEXT)
        sources = [_source(fields) for fields in body.objects("sources", most=MAX_SOURCES)]
        if not sources and not (instruction or "").strip():
            body.refuse("instruction", "must not be blank without sources", "value_error")
        body.done()
        credential = self.authenticator.upstream_credential(request) if self.takes_credentials else None
        task = await self.service.submit_compile(user, instruction or "", sources, credential)
        return ok(task.to_json(), status=202)

    async def search(self, request: web.Request) -> web.Response:
        user = self.authenticator.user(request)
        body = await read_object(request)
        context = body.text("task_context", longest=MAX_TEXT)
        if not (context or "").strip():
            body.refuse("task_context", "must not be blank", "value_error")
        threshold = body.number("rule_probability_threshold", DEFAULT_THRESHOLD, 0.0, 1.0)
        body.done()
        library = await self.service.snapshot(user, fresh=True)
        return ok(await self.searcher.search(library, context or "", threshold))

    async def list_tasks(self, request: web.Request) -> web.Response:
        user = self.authenticator.user(request)
        query = request.query
        tasks = await self.service.task_page(
            user,
            task_type=query.get("task_type"),
            status=query.get("status"),
            resource_id=query.get("resource_id"),
            limit=_count(query, "limit", 50, low=1, high=MAX_LIMIT),
        )
        return ok([task.to_json() for task in tasks])

    async def task(self, request: web.Request) -> web.Response:
        user = self.authenticator.user(request)
        return ok((await self.service.tasks.get(user, request.match_info["id"])).to_json())

    async def cancel(self, request: web.Request) -> web.Response:
        user = self.authenticator.user(request)
        return ok((await self.service.tasks.cancel(user, request.match_info["id"])).to_json())

    async def upload(self, request: web.Request) -> web.Response:
        user = self.authenticator.user(request)
        if request.content_type != "multipart/form-data":
            raise InvalidArgument(f"expected multipart/form-data, not {request.content_type}")
        name, data = await _uploaded(request)
        upload = await asyncio.to_thread(self.uploads.add, user, name, data)
        return ok({"temp_file_id": upload})

    async def read(self, request: web.Request) -> web.Response:
        user = self.authenticator.user(request)
        place = rules_place(request.query.get("uri", ""), user)
        offset = _count(request.query, "offset", 0, low=0)
        limit = _count(request.query, "limit", -1, low=-1)
        library = await asyncio.to_thread(self.service.libraries.of, user)
        text = await asyncio.to_thread(library.text, place)
        if offset or limit >= 0:
            # Lines, as the reference's content API counts.
            lines = text.splitlines(keepends=True)
            text = "".join(lines[offset : None if limit < 0 else offset + limit])
        return ok(text)

    async def list_folder(self, request: web.Request) -> web.Response:
        user = self.authenticator.user(request)
        place = rules_place(request.query.get("uri", ""), user)
        return ok(_listing(await self.service.snapshot(user, fresh=True), place))


async def _health(request: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


def _source(fields: Fields) -> SourceRequest:
    given = {form: fields.text(form, longest=4_000) for form in _FORMS}
    if sum(value is not None for value in given.values()) != 1:
        fields.refuse("", f"must have exactly one of {', '.join(_FORMS)}", "value_error")
    source = SourceRequest(
        **given,
        source_name=fields.text("source_name", longest=255),
        include=fields.text("include", longest=4_000),
        exclude=fields.text("exclude", longest=4_000),
        ignore_dirs=fields.text("ignore_dirs", longest=4_000),
    )
    # Fields of the reference's ingestion that clients send and that change nothing here.
    fields.flag("strict")
    fields.text("reason", longest=MAX_TEXT)
    fields.text("instruction", longest=MAX_TEXT)
    fields.done()
    return source


async def _uploaded(request: web.Request) -> tuple[str, bytes]:
    name, data = "", None
    try:
        reader = await request.multipart()
        async for part in reader:
            if not isinstance(part, BodyPartReader):
                continue
            if part.name == "file":
                name, data = part.filename or "upload", await _part(part, MAX_UPLOAD)
            elif part.name == "upload_mode" and (await _part(part, 100)).decode() not in _UPLOAD_MODES:
                raise InvalidArgument(f"upload_mode must be one of {', '.join(_UPLOAD_MODES)}")
    except (ValueError, AssertionError) as error:
        raise InvalidArgument(f"the body is not multipart/form-data: {error}") from error
    if data is None:
        raise InvalidArgument("the form field `file` is missing")
    return name, data


async def _part(part: BodyPartReader, limit: int) -> bytes:
    data = bytearray()
    while chunk := await part.read_chunk():
        data += chunk
        if len(data) > limit:
            raise InvalidArgument(f"the upload is larger than {limit:,} bytes")
    return bytes(data)


def _count(query: Mapping[str, str], name: str, default: int, *, low: int, high: int | None = None) -> int:
    text = query.get(name)
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        value = low - 1
    if value < low or (high is not None and value > high):
        bounds = f"from {low} to {high}" if high is not None else f"{low} or more"
        raise InvalidArgument(f"{name} must be a whole number, {bounds}, not {text[:40]!r}")
    return value


def _listing(library: Snapshot, place: RulesPlace) -> list[JsonObject]:
    if place.file_name is not None:
        raise InvalidArgument("this is a file, not a folder")
    if place.scenario_id is None:
        return [
            {"uri": f"{library.root}/{name}", "name": name, "isDir": True, "abstract": scenario.title}
            for name, scenario in library.scenarios.items()
        ]
    if place.scenario_id not in library.scenarios:
        raise NotFound(f"there is no scenario {place.scenario_id}")
    files: list[JsonObject] = [{"uri": library.card(place.scenario_id), "name": CARD, "isDir": False}]
    files += (
        {
            "uri": library.uri(rule),
            "name": rule.file_name,
            "isDir": False,
            "size": len(rule.content.encode()),
            "abstract": rule.title,
        }
        for rule in library.in_scenario(place.scenario_id)
    )
    return files
