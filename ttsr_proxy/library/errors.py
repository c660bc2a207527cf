"""What the library refuses, each with the code that its API answers with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ttsr_proxy.errors import TtsrError


class LibraryError(TtsrError):
    """Root of the library's errors. `code` is the API's error code, `details` its details object."""

    code: ClassVar[str] = "INTERNAL"

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.details: Mapping[str, Any] = details


class InvalidArgument(LibraryError):
    """A value that a caller gave cannot be used."""

    code = "INVALID_ARGUMENT"


class InvalidUri(LibraryError):
    """Not a `viking://` URI of a kind that is known here."""

    code = "INVALID_URI"


class Refused(LibraryError):
    """The caller may not have this."""

    code = "PERMISSION_DENIED"


class NotFound(LibraryError):
    """There is no such thing, or it is somebody else's."""

    code = "NOT_FOUND"


class LibraryBusy(LibraryError):
    """Another writer has the library; the same call may succeed later."""

    code = "CONFLICT"


class Exhausted(LibraryError):
    """A limit on how much may wait or be stored is reached."""

    code = "RESOURCE_EXHAUSTED"


class FailedPrecondition(LibraryError):
    """The state of the thing does not allow this."""

    code = "FAILED_PRECONDITION"


class UnreadableFile(LibraryError):
    """A file of the library cannot be read or is not what it should be.

    It fails a search, since a missing rule must not look like no rule.
    """

    code = "PROCESSING_ERROR"

    def __init__(self, uri: str, reason: str) -> None:
        super().__init__(f"{uri}: {reason}", uri=uri)


class CompileFailed(LibraryError):
    """A compilation that ended without a plan. Nothing was written."""

    code = "RULE_COMPILE_FAILED"
