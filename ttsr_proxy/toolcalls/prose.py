"""Edits that a model writes as prose: aider's formats, and the XML calls of Cline and Roo Code.

Such agents offer no tools. They tell the model a notation in the prompt and read the answer's text for it, so
the notations to look for are those that the request tells (`formats_told`).

- `search-replace`: a file name, then a SEARCH/REPLACE block, mostly in a fence; the name may stand inside;
- `whole`: a file name, then a fence with the whole file;
- `udiff`: a fence with a unified diff; `patch`: `*** Begin Patch` to `*** End Patch`;
- `xml`: `<write_to_file>`, `<replace_in_file>`, ... with their arguments as elements.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from ttsr_proxy.toolcalls.families import FamilyTable
from ttsr_proxy.toolcalls.lines import LineBuffer
from ttsr_proxy.toolcalls.paths import normalise_path
from ttsr_proxy.toolcalls.prose_edits import BlockEdit, Edit, ElementEdit, PatchEdit, WholeEdit
from ttsr_proxy.toolcalls.search_replace import SEARCH_MARK
from ttsr_proxy.toolcalls.view_set import ViewSet
from ttsr_proxy.toolcalls.views import View, ViewDelta

ProseFormat: TypeAlias = Literal["search-replace", "whole", "udiff", "patch", "xml"]

MAX_NAME_LINE: Final = 200
"""Characters of a line that may name a file."""

_MARKS: Final[tuple[tuple[ProseFormat, tuple[str, ...]], ...]] = (
    ("xml", ("<write_to_file>", "<replace_in_file>", "<apply_diff>")),
    ("search-replace", ("<<<<<<< SEARCH",)),
    ("whole", ("*file listing*",)),
    ("udiff", ("`diff -U0`",)),
    ("patch", ("*** Begin Patch",)),
)
"""What prompts that tell a format contain. The XML calls have SEARCH/REPLACE blocks as arguments."""

_ELEMENTS: Final = (
    "write_to_file",
    "replace_in_file",
    "apply_diff",
    "insert_content",
    "search_and_replace",
    "edit_file",
    "execute_command",
)
_TAG: Final = re.compile(f"<({'|'.join(_ELEMENTS)})>")
_FENCE: Final = re.compile(
    r"[ \t]*(?P<ticks>`{3,}|~{3,})[^`\n]*\s*|[ \t]*<(?P<tag>source|code|pre|codeblock|sourcecode)>\s*"
)
_QUOTED: Final = re.compile(r"[#*\s]*(?:(?:file|filename|path)[:*\s]+)?`([^`]+)`[:*\s]*", re.IGNORECASE)
_NAME: Final = re.compile(r"\S*[./\\]\S*[^\s.!?,;:]|[A-Za-z]*file|LICENSE|README|NOTICE|CODEOWNERS", re.ASCII)
"""A name without a dot or a slash is one only if it is well known."""


def _may_become_tag(text: str) -> bool:
    return any(f"<{name}>".startswith(text) for name in _ELEMENTS)


def formats_told(texts: Iterable[str]) -> frozenset[ProseFormat]:
    """The notations for edits that these prompts tell."""
    told = [*texts]
    found = [name for name, marks in _MARKS if any(mark in text for mark in marks for text in told)]
    return frozenset(("xml",) if "xml" in found else found)


@dataclass(slots=True)
class Region:
    """Where an edit stands in the text, its file name included. `end` is None while it is not complete."""

    start: int
    end: int | None = None


@dataclass(frozen=True, slots=True)
class _Fence:
    """A fence that has just been opened: an edit, or ordinary code."""

    start: int
    path: str | None
    close: str
    named_inside: bool = False


class ProseEditReader:
    """Reads prose line by line; every edit that begins in it becomes one or more views.

    The answer depends on the text alone, not on how it was cut. Linear; nothing that is fed raises.
    """

    def __init__(
        self, formats: Collection[ProseFormat], families: FamilyTable, *, project_root: str | None = None
    ) -> None:
        self._formats = formats
        self._families = families
        self._root = project_root
        self._views = ViewSet()
        self._lines = LineBuffer()
        self._received = 0
        self._line_start = 0
        self._tag_start = -1
        """Where the line that is still open has its first tag, or what may become one; -1 for nowhere."""
        self._tag_text: str | None = ""
        """What may become a tag; None once the open line has one."""
        self._edit: Edit | None = None
        self._views_before = 0
        """How many views there were when the open edit began."""
        self._fence: _Fence | None = None
        self._code: str | None = None
        """What ends the ordinary code block that the text is in."""
        self._name: tuple[int, str] | None = None
        self._path: str | None = None
        """The file of the last edit; a block without a name is for the same."""
        self.regions: list[Region] = []
        self._region_of: list[int] = []
        self._tools: list[str | None] = []
        self._tool: str | None = None

    @property
    def contexts(self) -> frozenset[tuple[str | None, str | None]]:
        """Tool and kind of every view that can come."""
        if "xml" not in self._formats:
            return frozenset({(None, "edit"), (None, "write")})
        return frozenset((tool, kind) for tool in _ELEMENTS for kind in self._families.family_of(tool).kinds)

    @property
    def complete(self) -> int:
        """How many views are complete: all below this number."""
        return len(self._views) if self._edit is None else self._views_before

    @property
    def safe_until(self) -> int:
        """Characters that belong to no edit that is still open or may just be beginning."""
        if self._edit is not None:
            return self.regions[-1].start
        if self._fence is not None:
            return self._fence.start
        if "xml" in self._formats:
            return self._received if self._tag_start < 0 else self._tag_start
        if self._received - self._line_start > MAX_NAME_LINE:
            return self._received
        return self._line_start if self._name is None else self._name[0]

    def region(self, view: int) -> Region:
        """The region of the edit that a view belongs to."""
        return self.regions[self._region_of[view]]

    def region_at(self, position: int) -> Region | None:
        """The region of the edit that a character of the text belongs to, as far as is known by now."""
        for region in reversed(self.regions):
            if region.start <= position:
                return region if region.end is None or position < region.end else None
        return None

    def tool(self, view: int) -> str | None:
        """The tool that the prose calls; None for formats without tools."""
        return self._tools[view]

    def feed(self, text: str) -> tuple[ViewDelta, ...]:
        """Take the next piece of the prose; returns what its complete lines add to views."""
        for line in self._lines.feed(text):
            self._take(line)
        self._received += len(text)
        self._watch_tags(text)
        return self._views.take()

    def _watch_tags(self, text: str) -> None:
        _, line_end, rest = text.rpartition("\n")
        if line_end:
            self._tag_start, self._tag_text = -1, ""
        if self._tag_text is None:
            return
        text = self._tag_text + rest
        start = self._received - len(text)
        if tag := _TAG.search(text):
            self._tag_start, self._tag_text = start + tag.start(), None
            return
        last = text.rfind("<")
        self._tag_text = text[last:] if last >= 0 and _may_become_tag(text[last:]) else ""
        self._tag_start = start + last if self._tag_text else -1

    def finish(self) -> tuple[ViewDelta, ...]:
        """The prose ends here; an edit that is not complete has what has come of it."""
        for line in self._lines.finish():
            self._take(line)
        if self._edit is not None:
            self._edit.finish()
            self._end_edit()
            self._place_views()
        self._fence = self._name = None
        return self._views.take()

    def views(self) -> tuple[View, ...]:
        """The complete views, after `finish()`."""
        return self._views.views()

    def _take(self, line: str) -> None:
        start, self._line_start = self._line_start, self._line_start + len(line)
        if self._edit is not None:
            self._continue(line)
        elif "xml" in self._formats:
            self._find_element(line, start)
        elif len(line) > MAX_NAME_LINE:
            self._code = self._fence.close if self._fence else self._code
            self._fence = self._name = None
        else:
            self._find_edit(line, start)
        self._place_views()

    def _place_views(self) -> None:
        while len(self._region_of) < len(self._views):
            self._region_of.append(len(self.regions) - 1)
            self._tools.append(self._tool)

    def _find_element(self, line: str, start: int) -> None:
        tag = _TAG.search(line)
        if tag:
            edit = ElementEdit(self._views, tag[1], self._families, self._path_of)
            self._begin(edit, start + tag.start(), tag[1])
            self._continue(line[tag.end() :])

    def _find_edit(self, line: str, start: int) -> None:
        fence, name = self._fence, self._name
        self._fence = self._name = None
        if fence is not None:
            self._find_in_fence(line, fence)
        elif self._code is not None and line.strip() == self._code:
            self._code = None
        elif self._starts_here(line):
            self._begin_here(line, name[0] if name else start, name[1] if name else None)
        elif self._code is None:
            self._find_fence(line, start, name)

    def _find_fence(self, line: str, start: int, name: tuple[int, str] | None) -> None:
        opening = _FENCE.fullmatch(line)
        if opening is None:
            path = _named(line)
            self._name = (start, path) if path else name if not line.strip() else None
            return
        close = opening["ticks"] or f"</{opening['tag']}>"
        if name is not None and "whole" in self._formats:
            self._path = self._path_of(name[1])
            self._begin(WholeEdit(self._views, self._path, close), name[0])
        else:
            self._fence = _Fence(name[0] if name else start, name[1] if name else None, close)

    def _find_in_fence(self, line: str, fence: _Fence) -> None:
        """The first line behind an opening fence, or the second behind a file name."""
        if line.strip() == fence.close:
            return
        path = None if fence.named_inside else _named(line)
        self._code = fence.close
        if self._starts_here(line):
            self._begin_here(line, fence.start, fence.path)
        elif "udiff" in self._formats and line.startswith("--- "):
            self._begin(PatchEdit(self._views, self._path_of, fence.close), fence.start)
            self._code = None
            self._continue(line)
        elif path and "search-replace" in self._formats:
            self._fence, self._code = replace(fence, path=path, named_inside=True), None

    def _starts_here(self, line: str) -> bool:
        if "search-replace" in self._formats and SEARCH_MARK.fullmatch(line):
            return True
        return "patch" in self._formats and line.strip() == "*** Begin Patch"

    def _begin_here(self, line: str, start: int, name: str | None) -> None:
        if line.strip() == "*** Begin Patch":
            self._begin(PatchEdit(self._views, self._path_of, "*** End Patch"), start)
            return
        self._path = self._path_of(name) if name else self._path
        self._begin(BlockEdit(self._views, self._path), start)
        self._continue(line)

    def _begin(self, edit: Edit, start: int, tool: str | None = None) -> None:
        self._edit, self._tool = edit, tool
        self._views_before = len(self._region_of)
        self.regions.append(Region(start))

    def _continue(self, line: str) -> None:
        if self._edit is not None and self._edit.take_line(line):
            self._end_edit()

    def _end_edit(self) -> None:
        self._edit = None
        self.regions[-1].end = self._line_start

    def _path_of(self, path: str) -> str:
        return normalise_path(path.strip(), self._root)


def _named(line: str) -> str | None:
    """The file that a line of its own names: bare, as a heading, bold, quoted, before a colon."""
    text = line.strip()
    quoted = _QUOTED.fullmatch(text)
    name: str = quoted[1] if quoted else text.lstrip("#").strip().rstrip(":").strip("*").rstrip(":").strip()
    return name if _NAME.fullmatch(name) else None
