"""Which rules share the most words with a text."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from ttsr_proxy.library.compilation.statements import normalised
from ttsr_proxy.library.model import LibraryRule


class Nearest:
    """The words of many rules, ready to be compared (Dice coefficient, as `statements.likeness`)."""

    def __init__(self, rules: Iterable[LibraryRule]) -> None:
        self._rules = list(rules)
        self._sizes: list[int] = []
        self._having: dict[str, list[int]] = defaultdict(list)
        for number, rule in enumerate(self._rules):
            words = set(normalised(rule.constraint).split())
            self._sizes.append(len(words))
            for word in words:
                self._having[word].append(number)

    def find(self, text: str) -> tuple[LibraryRule | None, float]:
        """The most alike rule and its likeness; None and 0 if no rule shares a word."""
        found = self.ranked(text, 1)
        return found[0] if found else (None, 0.0)

    def ranked(self, text: str, limit: int) -> list[tuple[LibraryRule, float]]:
        """The most alike rules with their likeness, best first."""
        words = set(normalised(text).split())
        shared = Counter(number for word in words for number in self._having.get(word, ()))
        scores = {number: 2 * count / (len(words) + self._sizes[number]) for number, count in shared.items()}
        best = sorted(scores, key=lambda number: (-scores[number], number))[:limit]
        return [(self._rules[number], scores[number]) for number in best]
