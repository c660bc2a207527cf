"""The form of the library's API: envelopes, error codes, request ids, and bodies checked field by field."""

from __future__ import annotations

import re
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NoReturn, TypeAlias

import structlog
from aiohttp import web

from ttsr_proxy.errors import StoreError
from ttsr_proxy.jsontext import JsonObject, decode, encode
from ttsr_proxy.library.errors import Exhausted, InvalidArgument, LibraryError

MAX_BODY = 1024 * 1024
"""Bytes of a JSON body: 64,000 characters and their escapes."""

STATUS = {
    "INVALID_ARGUMENT": 400,
    "INVALID_URI": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "METHOD_NOT_ALLOWED": 405,
    "CONFLICT": 409,
    "FAILED_PRECONDITION": 412,
    "RESOURCE_EXHAUSTED": 429,
    "PROCESSING_ERROR": 500,
    "INTERNAL": 500,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
}
"""The HTTP status of each error code (the reference's "API conventions")."""

RETRY_AFTER_SECONDS = 10

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/-]{1,128}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_RULES_PREFIX = "/api/v1/rules/"

_log = structlog.get_logger()


def ok(result: Any, *, status: int = 200) -> web.Response:
    """A successful answer."""
    return _json({"status": "ok", "result": result}, status)


def enveloped(handler: Handler) -> Handler:
    """The handler with errors in the API's envelope and the request's id in the answer."""

    async def handle(request: web.Request) -> web.StreamResponse:
        response: web.StreamResponse
        try:
            response = await handler(request)
        except LibraryError as error:
            response = failure(request, error.code, str(error), dict(error.details))
            if isinstance(error, Exhausted):
                response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
        except StoreError as error:
            response = failure(request, "UNAVAILABLE", str(error))
        except web.HTTPException:
            raise
        except Exception:
            # The boundary of the API: a client must get its envelope whatever happened.
            _log.exception("library_request_failed", path=request.path)
            response = failure(request, "INTERNAL", "Internal server error")
        if not response.prepared:
            _tell_id(request, response)
        return response

    return handle


def refusal(request: web.Request, status: int, message: str) -> web.Response:
    """The answer to a request that does not get as far as the API."""
    response = failure(request, "PERMISSION_DENIED", message)
    response.set_status(status)
    _tell_id(request, response)
    return response


def _tell_id(request: web.Request, response: web.StreamResponse) -> None:
    sent = request.headers.get("x-request-id", "")
    response.headers["X-Request-ID"] = sent if _REQUEST_ID.fullmatch(sent) else str(uuid.uuid4())


def failure(
    request: web.Request, code: str, message: str, details: Mapping[str, Any] | None = None
) -> web.Response:
    """An error's answer. What is wrong with a request to the rules has status 422."""
    error: JsonObject = {"code": code, "message": message}
    if details:
        error["details"] = details
    unprocessable = code == "INVALID_ARGUMENT" and request.path.startswith(_RULES_PREFIX)
    status = 422 if unprocessable else STATUS.get(code, 500)
    return _json({"status": "error", "error": error}, status)


async def wrong_method(request: web.Request) -> web.Response:
    """Any method that a path of the API does not have."""
    return failure(request, "METHOD_NOT_ALLOWED", f"{request.method} is not allowed for {request.path}")


async def read_limited(request: web.Request, limit: int) -> bytes:
    """The body. Raises InvalidArgument if it is longer than the limit."""
    data = bytearray()
    async for chunk in request.content.iter_chunked(64 * 1024):
        data += chunk
        if len(data) > limit:
            raise InvalidArgument(f"the body is larger than {limit:,} bytes")
    return bytes(data)


async def read_object(request: web.Request) -> Fields:
    """The body as a JSON object whose fields are then taken one by one. Raises InvalidArgument."""
    if request.content_type != "application/json":
        _invalid(("body",), f"expected application/json, not {request.content_type}", "content_type")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        _invalid(("body",), "a compressed body cannot be read", "content_encoding")
    data = await read_limited(request, MAX_BODY)
    try:
        value = decode(data)
    except (ValueError, RecursionError):
        _invalid(("body",), "the body is not JSON", "json_invalid")
    return Fields.of(value, ("body",))


class Fields:
    """The fields of one JSON object; each is taken once, and none may be left."""

    def __init__(self, values: dict[str, Any], place: tuple[str, ...]) -> None:
        self._values = dict(values)
        self._place = place

    @classmethod
    def of(cls, value: Any, place: tuple[str, ...]) -> Fields:
        if not isinstance(value, dict):
            _invalid(place, "must be an object", "dict_type")
        return cls(value, place)

    def text(self, name: str, *, longest: int) -> str | None:
        """A text of at most so many code points; None if it is absent or null."""
        value = self._values.pop(name, None)
        if value is None:
            return None
        if not isinstance(value, str):
            self.refuse(name, "must be a string", "string_type")
        if not value.isascii() and _SURROGATE.search(value):
            self.refuse(name, "must be Unicode text, without lone surrogates", "string_unicode")
        if len(value) > longest:
            self.refuse(name, f"must be at most {longest:,} characters", "string_too_long")
        return value

    def flag(self, name: str) -> bool | None:
        value = self._values.pop(name, None)
        if value is not None and not isinstance(value, bool):
            self.refuse(name, "must be true or false", "bool_type")
        return value

    def number(self, name: str, default: float, low: float, high: float) -> float:
        """A number within bounds that belong to it."""
        value = self._values.pop(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.refuse(name, "must be a number", "float_type")
        if not low <= value <= high:
            self.refuse(name, f"must be from {low:g} to {high:g}", "out_of_range")
        return float(value)

    def objects(self, name: str, *, most: int) -> list[Fields]:
        """A list of objects; empty if it is absent or null."""
        value = self._values.pop(name, None)
        if value is None:
            return []
        if not isinstance(value, list):
            self.refuse(name, "must be a list", "list_type")
        if len(value) > most:
            self.refuse(name, f"must have at most {most} items", "too_long")
        return [Fields.of(item, (*self._place, name, str(number))) for number, item in enumerate(value)]

    def done(self) -> None:
        """Raise InvalidArgument if a field is left that nobody asked for."""
        for name in self._values:
            self.refuse(name, "is not allowed", "extra_forbidden")

    def refuse(self, name: str, message: str, kind: str) -> NoReturn:
        """Raise InvalidArgument for a field; an empty name is the object itself."""
        _invalid((*self._place, name) if name else self._place, message, kind)


def _invalid(place: tuple[str, ...], message: str, kind: str) -> NoReturn:
    raise InvalidArgument(
        f"Invalid request parameters: {'.'.join(place)}: {message}",
        validation_errors=[{"loc": list(place), "message": message, "type": kind}],
    )


def _json(body: JsonObject, status: int) -> web.Response:
    return web.Response(status=status, body=encode(body), content_type="application/json")
