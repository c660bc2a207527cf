"""Captures of this proxy: one exchange, with everything that the model wrote in it.

What an interrupt took back is in here as well, which no transcript has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from ttsr_proxy.captures.lines import VERSION
from ttsr_proxy.interception.progress import edit_formats
from ttsr_proxy.interrupts.as_json import iso_time
from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.protocols.anthropic import ANTHROPIC
from ttsr_proxy.protocols.events import ProtocolEvent
from ttsr_proxy.protocols.openai_chat import OPENAI_CHAT
from ttsr_proxy.protocols.openai_responses import OPENAI_RESPONSES
from ttsr_proxy.protocols.protocol import WireProtocol
from ttsr_proxy.protocols.request import ApiRequest
from ttsr_proxy.replay.steps import Output, Speaker, Step, UnreadableLine, object_of, text_of

_PROTOCOLS: Final[Mapping[str, WireProtocol]] = {
    protocol.name: protocol for protocol in (ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES)
}
_REMINDER: Final = re.compile(r'<system-(?:interrupt|reminder) reason="rule_violation"')


class CapturedExchange:
    """A `TranscriptReader`."""

    def __init__(self) -> None:
        self._label: JsonObject | None = None
        self._protocol: WireProtocol = ANTHROPIC
        self._request: ApiRequest | None = None
        self._reminders: tuple[str, ...] = ()
        self._key = ""
        self._parent: str | None = None

    @staticmethod
    def recognises(value: JsonObject) -> bool:
        """Whether a line is the first one of such a file."""
        return "ttsr_capture" in value

    def read(self, line: int, value: JsonObject) -> Iterator[Step]:
        if "ttsr_capture" in value:
            self._begin(value)
            return
        if self._label is None:
            return
        match value.get("kind"):
            case "client_request":
                self._request = self._read_request(value)
            case "upstream_request":
                asked = self._read_request(value)
                texts = (item.text for item in asked.items if item.role == "user") if asked else ()
                self._reminders = tuple(text for text in texts if _REMINDER.search(text))
            case "upstream_response" if value.get("status") == 200:
                yield self._step(line, value, self._label)

    def _begin(self, label: JsonObject) -> None:
        if label["ttsr_capture"] != VERSION:
            raise UnreadableLine(f"a capture of format {label['ttsr_capture']!r}; known is {VERSION}")
        protocol = _PROTOCOLS.get(text_of(label, "protocol"))
        if protocol is None:
            raise UnreadableLine("`protocol` names none that is known")
        self._label, self._protocol = label, protocol
        self._key = text_of(label, "record")
        self._parent = text_of(label, "parent") or None

    def _read_request(self, message: JsonObject) -> ApiRequest | None:
        return self._protocol.read_request(_body(message), {})

    def _step(self, line: int, message: JsonObject, label: JsonObject) -> Step:
        request = self._request
        attempt = message.get("attempt")
        several = request is not None and request.choices > 1 and request.stream
        speaker = Speaker(
            text_of(label, "client"),
            text_of(label, "agent"),
            text_of(label, "conversation"),
            request.model if request is not None else "",
        )
        output = Output(
            self._protocol,
            self._events(message),
            self._key,
            speaker,
            text_of(label, "root"),
            _time(label, message),
            attempt=attempt if type(attempt) is int else 1,
            identity=f"{self._key} {attempt}",
            formats=edit_formats(request) if request is not None else frozenset(),
            observed=text_of(label, "observed") or None,
            uninterrupted="several choices are streamed at once" if several else None,
            reminders=self._reminders,
        )
        # Further attempts go on from this one.
        parent, self._parent = self._parent, self._key
        return Step(line, self._key, parent, (output,), follows_last=False)

    def _events(self, message: JsonObject) -> tuple[ProtocolEvent, ...]:
        body = _body(message)
        if "event-stream" not in text_of(object_of(message, "headers"), "content-type").lower():
            return self._protocol.read_message(body) or ()
        reader = self._protocol.reader()
        return (*reader.feed(body), *reader.finish())


def _body(message: JsonObject) -> bytes:
    body = message.get("body")
    if not isinstance(body, str):
        raise UnreadableLine("`body` is no text")
    # Lone surrogates stand for bytes that are no text, or are surrogates that a document spelled out.
    try:
        return body.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return body.encode("utf-8", "replace")


def _time(label: JsonObject, message: JsonObject) -> str:
    began, at = label.get("time"), message.get("at")
    if not isinstance(began, float | int) or not isinstance(at, float | int):
        return ""
    try:
        return iso_time(began + at)
    except (ValueError, OverflowError, OSError):
        return ""
