"""What a family of tools is."""

from __future__ import annotations

from dataclasses import dataclass

from ttsr_proxy.toolcalls.arguments import ArgumentPattern
from ttsr_proxy.toolcalls.sections import KINDS
from ttsr_proxy.toolcalls.syntax import Form

EVERY_STRING = "*"
"""As a text argument: every string of the arguments that is not a path."""


@dataclass(frozen=True, slots=True)
class TextArgument:
    """An argument whose text the call adds."""

    pattern: ArgumentPattern | None
    """None for every string that is not a path."""
    form: Form = "text"
    kind: str | None = None
    """The kind of its views where it is not the family's."""
    join: str | None = None
    """Makes all matching elements of a list one view, with this between them."""


@dataclass(frozen=True, slots=True)
class Family:
    """Tools of one shape.

    `tools` are names, compared without case and with or without one leading `_` (omp's spelling); `*` stands
    for any characters. The first path argument that is complete is the path of all texts in the same object
    and below; when none comes, the first argument that the scan for unknown tools finds.
    """

    name: str
    tools: tuple[str, ...]
    kind: str | None
    paths: tuple[ArgumentPattern, ...]
    texts: tuple[TextArgument, ...]
    all_paths: bool = False
    """Every path argument counts, so texts wait for the end of the call."""
    raw: bool = False
    """The argument JSON itself is a view too."""
    plain_kind: str | None = None
    """The kind of calls that add no text, where it is not `kind`."""

    @property
    def kinds(self) -> frozenset[str | None]:
        """Every kind that a view of such a call can have."""
        own = {self.kind, self.plain_kind or self.kind, *(text.kind or self.kind for text in self.texts)}
        return frozenset(own).union(*(KINDS.get(text.form, ()) for text in self.texts))

    @property
    def freeform(self) -> Form:
        """What the input is when the tool takes text instead of JSON arguments."""
        return next((text.form for text in self.texts if text.form != "text"), "text")
