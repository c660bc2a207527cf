"""What filters and counts look at in a record: small beside the record, and kept apart from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ttsr_proxy.interrupts.record import InterruptRecord
from ttsr_proxy.interrupts.store import InterruptFilter, Key, Tally

_TEXTS: Final = (
    "rule",
    "project",
    "conversation",
    "request",
    "model",
    "client",
    "source",
    "action",
    "outcome",
)
"""Fields that a filter compares."""

_NUMBERS: Final = ("time", "tokens_wasted", "seconds_added", "false_positive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The fields of a record by which it is found and counted; texts as UTF-8 can hold them."""

    time: float
    rule: str
    project: str
    conversation: str
    request: str
    model: str
    client: str
    source: str
    action: str
    outcome: str
    paths: str
    """A line for each."""
    tokens_wasted: int
    seconds_added: float
    false_positive: bool


_DECODER: Final = msgspec.json.Decoder(Facts)


def facts_of(record: InterruptRecord) -> Facts:
    """The facts of a record."""
    texts: dict[str, Any] = {name: _plain(getattr(record, name)) for name in _TEXTS}
    numbers = {name: getattr(record, name) for name in _NUMBERS}
    return Facts(**texts, **numbers, paths=_plain("\n".join(record.paths)))


def facts_to_json(facts: Facts) -> bytes:
    """The facts as one line of JSON."""
    return msgspec.json.encode(facts)


def facts_from_json(text: bytes) -> Facts:
    """The facts again. Raises ValueError on what is none."""
    return _DECODER.decode(text)


def selects(where: InterruptFilter, facts: Facts) -> bool:
    """Whether every given field of the filter holds."""
    wanted = ((name, getattr(where, name)) for name in _TEXTS)
    return (
        all(value is None or _plain(value) == getattr(facts, name) for name, value in wanted)
        and (where.path is None or _plain(where.path) in facts.paths)
        and (where.since is None or facts.time >= where.since)
        and (where.until is None or facts.time <= where.until)
    )


class Counter:
    """Counts records by keys; see `InterruptStore.tally`."""

    def __init__(self, by: tuple[Key, ...], width: float) -> None:
        self._by = by
        self._width = width
        self._tallies: dict[tuple[object, ...], Tally] = {}

    def add(self, facts: Facts) -> None:
        """Count one more."""
        keys = tuple(self._key(name, facts) for name in self._by)
        known = self._tallies.get(keys, Tally(keys, 0, 0, 0.0, 0, facts.time))
        self._tallies[keys] = Tally(
            keys,
            known.count + 1,
            known.tokens_wasted + facts.tokens_wasted,
            known.seconds_added + facts.seconds_added,
            known.false_positives + facts.false_positive,
            max(known.last_time, facts.time),
        )

    def tallies(self, latest: int | None) -> list[Tally]:
        """What was counted, of the `latest` values of the first key if that is given."""
        newest: dict[object, float] = {}
        for tally in self._tallies.values():
            newest[tally.keys[0]] = max(newest.get(tally.keys[0], tally.last_time), tally.last_time)
        kept = set(sorted(newest, key=lambda value: -newest[value])[:latest])
        return [tally for tally in self._tallies.values() if tally.keys[0] in kept]

    def _key(self, name: Key, facts: Facts) -> object:
        return int(facts.time / self._width) * self._width if name == "period" else getattr(facts, name)


def _plain(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
