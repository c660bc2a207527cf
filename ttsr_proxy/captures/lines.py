"""A capture's lines, with nothing in them that is a secret.

A file is JSON Lines (docs/replay.md has the format). The first line is the label, each other one a message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from ttsr_proxy.captures.masked_stream import masked_stream
from ttsr_proxy.captures.tape import Message, Tape
from ttsr_proxy.interrupts.masking import MARK, mask
from ttsr_proxy.jsontext import JsonObject, JsonValue, decode, encode
from ttsr_proxy.protocols.protocol import WireProtocol

VERSION: Final = 1
"""Of the format. It grows when a field changes its meaning or goes; new fields may come within a version."""

SUFFIX: Final = ".capture.jsonl"

_HEADERS: Final = frozenset(
    (
        "accept",
        "anthropic-beta",
        "anthropic-version",
        "content-encoding",
        "content-length",
        "content-type",
        "openai-beta",
        "openai-processing-ms",
        "openai-version",
        "request-id",
        "retry-after",
        "user-agent",
        "x-request-id",
        "x-should-retry",
        "x-ttsr-interrupts",
        "x-ttsr-request-id",
    )
)
_PARAMETERS: Final = frozenset(("api-version", "beta"))
_HEADER_PREFIXES: Final = ("anthropic-ratelimit-", "x-ratelimit-")
"""Headers that are kept. What is not named here may be a credential."""


def file_name(tape: Tape) -> str:
    """Sorts by the time at which the exchange began."""
    moment = datetime.fromtimestamp(tape.label.time, UTC)
    identity = "".join(char for char in tape.label.id if char.isascii() and (char.isalnum() or char in "-_"))
    return f"{moment:%Y%m%dT%H%M%S}.{moment.microsecond // 1000:03}Z-{identity[:80]}{SUFFIX}"


def lines(tape: Tape, protocol: WireProtocol) -> Iterator[bytes]:
    """The capture of an exchange that is over."""
    label: JsonObject = msgspec.to_builtins(tape.label)
    yield encode({"ttsr_capture": VERSION, **label, "truncated": tape.truncated}) + b"\n"
    for message in tape.messages:
        yield encode(_message(message, protocol)) + b"\n"


def _message(message: Message, protocol: WireProtocol) -> JsonObject:
    fields: JsonObject = {"kind": message.kind, "at": message.at}
    if message.attempt is not None:
        fields["attempt"] = message.attempt
    if message.method:
        fields |= {"method": message.method, "url": _masked_url(message.url)}
    if message.status:
        fields["status"] = message.status
    fields["headers"] = {
        name.lower(): mask(value)
        for name, value in message.headers.items()
        if name.lower() in _HEADERS or name.lower().startswith(_HEADER_PREFIXES)
    }
    fields |= {
        "body": _masked_body(message, protocol),
        "pieces": [list(piece) for piece in message.timing],
        "ended": message.ended or None,
    }
    return fields


def _masked_url(url: str) -> str:
    """The URL without a user and a password; parameters that are not known keep their names only."""
    place, _, query = url.partition("?")
    scheme, separator, rest = place.rpartition("://")
    place = scheme + separator + (rest.rpartition("@")[2] if separator else rest)
    kept = (
        part if name in _PARAMETERS else f"{name}={MARK}"
        for part in query.split("&")
        if (name := part.partition("=")[0])
    )
    return mask("?".join(filter(None, (place, "&".join(kept)))))


def _masked_body(message: Message, protocol: WireProtocol) -> str:
    # Bytes that are no text come back from the file as they were.
    if message.kind.endswith("response") and "event-stream" in _content_type(message.headers):
        return masked_stream(message.body, protocol)
    text = message.body.decode("utf-8", "surrogateescape")
    masked = mask(text)
    if masked == text or _is_json(masked):
        return masked
    try:
        return encode(_masked_value(decode(text))).decode()
    except (ValueError, RecursionError):
        return masked


def _content_type(headers: Mapping[str, str]) -> str:
    return next((value.lower() for name, value in headers.items() if name.lower() == "content-type"), "")


def _is_json(text: str) -> bool:
    try:
        decode(text)
    except (ValueError, RecursionError):
        return False
    return True


def _masked_value(value: JsonValue) -> JsonValue:
    """Each text by itself: what would be masked up to the end of the document ends with its text."""
    match value:
        case str():
            return mask(value)
        case dict():
            return {mask(key): _masked_value(item) for key, item in value.items()}
        case list():
            return [_masked_value(item) for item in value]
    return value
