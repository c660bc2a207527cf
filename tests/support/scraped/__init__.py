"""The figures that a proxy tells at `/metrics`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from prometheus_client.parser import text_string_to_metric_families
from raw_http import ask

__all__ = ["Figures", "figures_once", "scrape"]

_TIMEOUT = 15.0


class Figures:
    """Samples by name and labels."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float:
        """The sample with exactly these labels; 0 without one."""
        return self._samples.get((name, frozenset(labels.items())), 0.0)

    def all(self, name: str) -> dict[frozenset[tuple[str, str]], float]:
        """The samples of this name that are not 0, by labels."""
        return {labels: value for (given, labels), value in self._samples.items() if given == name and value}

    def names(self) -> set[str]:
        return {name for name, _ in self._samples}


async def scrape(url: str) -> Figures:
    answer = await ask(url, "GET", "/metrics")
    assert answer.status == 200
    return Figures(answer.body.decode())


async def figures_once(url: str, holds: Callable[[Figures], bool]) -> Figures:
    """The figures as soon as this holds of them. A request is counted when its handler is done with it."""
    figures = None
    try:
        async with asyncio.timeout(_TIMEOUT):
            while True:
                figures = await scrape(url)
                if holds(figures):
                    return figures
    except TimeoutError:
        raise AssertionError(f"the figures stayed at\n{figures.text if figures else None}") from None
