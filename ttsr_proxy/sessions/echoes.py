"""Where a request echoes earlier responses, and by which keys their records are found.

An *echo* is a maximal run of assistant items. Unique anchors (tool call ids, thinking signatures) name the
response for certain. The text anchor hashes the echoed prose chained with the client's form of what came
before it; two responses with the same text after the same conversation share it. The place anchor hashes
only what came before, for answers that the client shortened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ttsr_proxy.protocols.history import HistoryItem

ChainText: TypeAlias = Callable[[HistoryItem], str | None]
"""A protocol's comparable form of an item; None for what clients add, drop or move (thinking, marks)."""


@dataclass(frozen=True, slots=True)
class Echo:
    """A run of assistant items: `items[start:end]`."""

    start: int
    end: int
    unique: tuple[str, ...]
    """Anchors of this response alone."""
    text: str
    """The anchor of its text after what came before."""
    place: str
    """The anchor of what came before."""

    @property
    def anchors(self) -> tuple[str, ...]:
        return (*self.unique, self.text, self.place)


@dataclass(frozen=True, slots=True)
class Echoes:
    """All echoes of a request, and the place anchor of the response that it asks for."""

    runs: tuple[Echo, ...]
    place: str


def find_echoes(
    items: Sequence[HistoryItem],
    chain_text: ChainText,
    *,
    prefill: bool = False,
    previous: str | None = None,
) -> Echoes:
    """Split a request's items into echoes. A prefill, the assistant run at the very end, is not an echo.

    `previous` is the id of the response that stands before the items.
    """
    return _split(items, chain_text, prefill, 0, "" if previous is None else response_anchor(previous))


def find_newest(items: Sequence[HistoryItem], chain_text: ChainText, *, prefill: bool = False) -> Echoes:
    """The last few of `find_echoes`, at least the newest if there is one, without the cost of a long history.

    A call's id stands for everything before it, so nothing before the last call but one needs to be read.
    """
    at = len(items)
    if prefill:
        at = _run_start(items, at)
    while at and items[at - 1].role != "assistant":
        at -= 1
    at = _run_start(items, at)
    while at:
        at -= 1
        anchor = items[at].anchor
        if items[at].role == "assistant" and anchor is not None and anchor.startswith("call:"):
            end = at + 1
            while items[end].role == "assistant":
                end += 1
            return _split(items, chain_text, prefill, end, anchor)
    return _split(items, chain_text, prefill, 0, "")


def _run_start(items: Sequence[HistoryItem], end: int) -> int:
    """Where the assistant run begins that ends before `end`; `end` itself if there is none."""
    while end and items[end - 1].role == "assistant":
        end -= 1
    return end


def _split(
    items: Sequence[HistoryItem], chain_text: ChainText, prefill: bool, position: int, chain: str
) -> Echoes:
    runs: list[Echo] = []
    while position < len(items):
        if items[position].role != "assistant":
            chain = _extend(chain, items[position], chain_text)
            position += 1
            continue
        start = position
        while position < len(items) and items[position].role == "assistant":
            position += 1
        if prefill and position == len(items):
            break
        run = items[start:position]
        unique = tuple(item.anchor for item in run if item.anchor is not None)
        place = place_anchor(chain)
        text = text_anchor(place, prose(run))
        runs.append(Echo(start, position, unique, text, place))
        call = next((anchor for anchor in reversed(unique) if anchor.startswith("call:")), None)
        chain = call if call is not None else text
    return Echoes(tuple(runs), place_anchor(chain))


def response_anchor(response_id: str) -> str:
    """The anchor of a response that a later request continues by its id."""
    return f"resp:{response_id}"


def judged_anchor(record_id: str) -> str:
    """The anchor of what a judge found in the response of this record."""
    return f"judged:{record_id}"


def place_anchor(chain: str) -> str:
    """The anchor of what came before a response."""
    return "place:" + _digest(chain)


def text_anchor(place: str, text: str) -> str:
    """The anchor of a response's prose (see `join_prose`) after what came before it."""
    return "text:" + _digest(place, text)


def prose(run: Sequence[HistoryItem]) -> str:
    """The run's text as one comparable string."""
    return join_prose(item.text for item in run if item.kind == "text")


def join_prose(texts: Iterable[str]) -> str:
    """Pieces of prose as one comparable string: clients join and trim blocks and change white space."""
    return " ".join(word for text in texts for word in text.split())


def _extend(chain: str, item: HistoryItem, chain_text: ChainText) -> str:
    # Clients move and drop their system messages between turns, so these do not count.
    if item.role == "system":
        return chain
    text = chain_text(item)
    return chain if text is None else _digest(chain, item.role, text)


def _digest(*parts: str) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()
