"""Counts over time as bars: where each stands in the drawing. The template draws them as SVG."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ttsr_proxy.interrupts.store import Tally

WIDTH: Final = 720
HEIGHT: Final = 140

SERIES: Final = {"clean": "held", "violated again": "again", "failed": "again"}
"""The series of a bar by the outcome of its records; all others are `other`."""

_ORDER: Final = ("held", "again", "other")

_PERIODS: Final = ((6_000.0, 300.0), (100_000.0, 3_600.0), (700_000.0, 21_600.0))
"""Length of a period, in seconds, by the longest time that is drawn with it."""

_DAY: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Part:
    """The share of one series in a bar, in the drawing's units."""

    series: str
    y: float
    height: float
    count: int


@dataclass(frozen=True, slots=True)
class Bar:
    """One period."""

    start: float
    x: float
    width: float
    count: int
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """All periods from the first to the last, empty ones too."""

    bars: tuple[Bar, ...]
    highest: int
    period: float

    @property
    def counted(self) -> tuple[Bar, ...]:
        """The periods in which something happened."""
        return tuple(bar for bar in self.bars if bar.count)


def period_of(seconds: float) -> float:
    """The length of a bar's period in a chart of this length, in seconds."""
    return next((period for longest, period in _PERIODS if seconds <= longest), _DAY)


def chart(tallies: Iterable[tuple[float, str, Tally]], since: float, until: float, period: float) -> Chart:
    """A chart of counts, each with its period's beginning and its outcome."""
    counts: dict[float, dict[str, int]] = defaultdict(lambda: dict.fromkeys(_ORDER, 0))
    for start, outcome, tally in tallies:
        counts[start][SERIES.get(outcome, "other")] += tally.count
    first = since // period
    number = int(until // period - first) + 1
    highest = max((sum(count.values()) for count in counts.values()), default=0)
    step = WIDTH / number
    bars = []
    for index in range(number):
        start = (first + index) * period
        of_period = counts.get(start, {})
        bars.append(
            Bar(
                start,
                round(index * step, 2),
                round(max(step - 1.5, 1.0), 2),
                sum(of_period.values()),
                _parts(of_period, highest),
            )
        )
    return Chart(tuple(bars), highest, period)


def _parts(counts: dict[str, int], highest: int) -> tuple[Part, ...]:
    parts, top = [], float(HEIGHT)
    for series in _ORDER:
        if count := counts.get(series, 0):
            height = count / highest * HEIGHT
            top -= height
            parts.append(Part(series, round(top, 2), round(height, 2), count))
    return tuple(parts)
