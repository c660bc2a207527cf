"""Is this a response that every client of a protocol takes?

A reader is fed a client's bytes and raises `IllegalStream` at the first event that some client chokes on: a
second opening, an index that is not the next one, a block left open, a text block without text, a tool-use
stop without a call, anything after the terminal event. A protocol joins in with a line in `READERS`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Protocol

from coding_agent import Answer, ChatStreamReader, IllegalStream, ResponsesStreamReader, StreamReader

__all__ = ["READERS", "ClientReader", "IllegalStream", "everything_in", "read_legally"]


class ClientReader(Protocol):
    """Reads one streamed response as strictly as the strictest client."""

    def feed(self, data: bytes) -> None:
        """More of the response; raises IllegalStream."""

    def close(self) -> Answer:
        """The response is over; raises IllegalStream if it may not be over here."""


READERS: dict[str, Callable[[Answer], ClientReader]] = {
    "anthropic": StreamReader,
    "openai-chat": ChatStreamReader,
    "openai-responses": ResponsesStreamReader,
}
"""By the name of the protocol."""


def read_legally(protocol: str, data: bytes) -> Answer:
    """The response in `data`; raises IllegalStream when a client could not take it."""
    reader = READERS[protocol](Answer(200, {}, b""))
    reader.feed(data)
    answer = reader.close()
    if answer.error is None and not answer.complete:
        raise IllegalStream(f"no terminal event after {answer.kinds}")
    return answer


def everything_in(answer: Answer) -> str:
    """All that a client can get out of a response, raw and decoded."""
    blocks = json.dumps(answer.blocks, ensure_ascii=False)
    return "\n".join([answer.raw.decode("utf-8", "replace"), blocks, answer.text])
