"""Text in pieces as whole lines."""

from __future__ import annotations


class LineBuffer:
    """Gives out a line once its line feed has come. Linear in the text, however it is cut."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def feed(self, text: str) -> list[str]:
        """The lines that `text` completes, each with its line feed."""
        *ended, rest = text.split("\n")
        if not ended:
            if rest:
                self._pieces.append(rest)
            return []
        lines = ["".join((*self._pieces, ended[0], "\n")), *(line + "\n" for line in ended[1:])]
        self._pieces = [rest] if rest else []
        return lines

    def finish(self) -> list[str]:
        """The last line, if it has no line feed."""
        line = "".join(self._pieces)
        self._pieces.clear()
        return [line] if line else []
