"""A model request in words that hold for every wire protocol."""

from __future__ import annotations

from dataclasses import dataclass

from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.protocols.history import HistoryItem


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """One request for a model's answer, as the client sent it.

    `body` is the parsed body and is never changed: a protocol module writes a new body from it and from a
    list of history items.
    """

    body: JsonObject
    model: str
    stream: bool
    system: str
    """The text of the system prompt that stands outside the history; empty when there is none."""
    tools: tuple[str, ...]
    """The names of the tools that the model may call."""
    max_tokens: int | None
    """The cap on the answer's length in tokens; None when the client sets none."""
    structured_output: bool
    """The answer must follow a JSON schema, so it cannot be continued in a second attempt."""
    choices: int
    """How many answers the client asks for at once."""
    items: tuple[HistoryItem, ...]
    prefill: bool
    """The history ends with the beginning of the answer that the model is to continue."""
    previous: str | None = None
    """The id of the response that this request continues; its history is kept by upstream, not in `items`."""
    stored: bool = False
    """Upstream keeps the answer, so that a later request may continue it by its id."""
    observed: str | None = None
    """Why the answer can only be watched and never asked for again, else None."""
