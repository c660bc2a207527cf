"""What a page's URL asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from ttsr_proxy.interrupts.store import InterruptFilter

FILTERS: Final = (
    "rule",
    "path",
    "model",
    "conversation",
    "request",
    "action",
    "outcome",
    "project",
    "client",
    "source",
)
"""Fields of `InterruptFilter` that stand in a URL as they are."""

WITHIN: Final = {"1h": 3600.0, "24h": 86_400.0, "7d": 604_800.0, "30d": 2_592_000.0}
"""Seconds by the name of an age."""

_TIMES: Final = ("since", "until")
_KNOWN: Final = (*FILTERS, "within", *_TIMES, "cursor")
_LONGEST: Final = 1_000


@dataclass(frozen=True, slots=True)
class Query:
    """The filters of a page, empty ones left out; `since` and `until` are seconds since the epoch."""

    values: Mapping[str, str]

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Query:
        """Raises ValueError, with what is allowed, on a parameter that is unknown or wrong."""
        values = {name: value.strip() for name, value in given.items() if value.strip()}
        for name, value in values.items():
            if name not in _KNOWN:
                raise ValueError(f"unknown parameter {name[:40]!r}; known are {', '.join(_KNOWN)}")
            if len(value) > _LONGEST:
                raise ValueError(f"{name} is longer than {_LONGEST} characters")
        if values.get("within", "1h") not in WITHIN:
            raise ValueError(f"within must be one of {', '.join(WITHIN)}, not {values['within'][:40]!r}")
        for name in _TIMES:
            if not values.get(name, "0").isdecimal():
                raise ValueError(f"{name} must be whole seconds since the epoch, not {values[name][:40]!r}")
        return cls(values)

    @property
    def cursor(self) -> str | None:
        """The page after which to go on."""
        return self.values.get("cursor")

    def filter(self, now: float) -> InterruptFilter:
        """The records asked for, `now` in seconds since the epoch."""
        texts = {name: self.values.get(name) for name in FILTERS}
        since = float(self.values["since"]) if "since" in self.values else None
        if "within" in self.values:
            since = max(since or 0.0, now - WITHIN[self.values["within"]])
        until = float(self.values["until"]) if "until" in self.values else None
        return InterruptFilter(**texts, since=since, until=until)

    def url(self, **changes: str | None) -> str:
        """The query string with these parameters changed, None and the empty text taking one out."""
        merged = {**self.values, **changes}
        kept = {name: value for name, value in merged.items() if value}
        return f"?{urlencode(kept)}" if kept else "?"

    def feed(self, newest: str | None) -> str:
        """The address of the live feed of the same records, behind the record that the page shows first."""
        values = {name: self.values[name] for name in FILTERS if name in self.values}
        return "/ttsr/api/interrupts?" + urlencode({**values, "cursor": newest} if newest else values)
