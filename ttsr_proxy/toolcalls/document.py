"""The input of a call under its tool's family: JSON events or free text become views."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

from ttsr_proxy.toolcalls.built_in import REPLACED, UNKNOWN
from ttsr_proxy.toolcalls.family import Family, TextArgument
from ttsr_proxy.toolcalls.json_stream import (
    ContainerStarted,
    JsonEvent,
    JsonPath,
    JsonStream,
    PairJoiner,
    StringDelta,
    StringEnded,
    well_formed,
)
from ttsr_proxy.toolcalls.sections import PARSED, SECTIONED, PathOf, Sections, view_payloads
from ttsr_proxy.toolcalls.view_set import OpenView, ViewSet

MAX_SINGLE_VIEWS = 1000
"""Strings that have a view of their own where every string counts; further ones share one, a line each."""

_TOP_LEVEL: JsonPath = ("",)
"""The location of text that belongs to the call as a whole."""


@dataclass(slots=True)
class _String:
    """The string being read, and what it is for."""

    location: JsonPath
    path_scope: JsonPath | None = None
    may_be_path: bool = False
    view: OpenView | None = None
    sections: Sections | None = None
    argument: TextArgument | None = None
    kept: list[str] | None = None
    """Its text, where it is a path or may yet become a view."""


@dataclass(slots=True)
class _Paths:
    """The path arguments seen, and the views that wait for one, by the object that holds them."""

    known: dict[JsonPath, str] = field(default_factory=dict)
    guess: str | None = None
    """What looks like a path; counts when no path argument comes."""
    every: list[str] = field(default_factory=list)
    waiting: dict[JsonPath, list[OpenView]] = field(default_factory=dict)

    def nearest(self, scope: JsonPath) -> tuple[str, ...]:
        for length in range(len(scope), -1, -1):
            path = self.known.get(scope[:length])
            if path is not None:
                return (path,)
        return ()


class ArgumentDocument:
    """One JSON document of arguments.

    `rest` is the text after the document's end in the last fragment. Text that turns out to be no JSON is a
    view from the place where it stops to be: nothing that reaches the client goes unseen.
    """

    def __init__(self, family: Family, views: ViewSet, path_of: PathOf) -> None:
        self._family = family
        self._views = views
        self._path_of = path_of
        self._stream = JsonStream()
        self._paths = _Paths()
        self._string: _String | None = None
        self._joined: dict[tuple[TextArgument, JsonPath], OpenView] = {}
        self._words: dict[tuple[TextArgument, JsonPath], list[str]] = {}
        """Commands that come as lists of words."""
        self._single_views = 0
        self._unclaimed: list[_String] = []
        self._claimed = False
        self._is_container = False
        self._ended = False
        self._raw = self._open((), family.kind) if family.raw else None

    @property
    def rest(self) -> str:
        return self._stream.rest

    @property
    def is_empty(self) -> bool:
        return not self._stream.raw

    def feed(self, fragment: str) -> None:
        for event in self._stream.feed(fragment):
            self._take(event)
        if self._stream.complete:
            self._end()

    def finish(self) -> None:
        for event in self._stream.finish():
            self._take(event)
        self._end()

    def _take(self, event: JsonEvent) -> None:
        if isinstance(event, ContainerStarted):
            self._is_container = True
            return
        if not isinstance(event, StringDelta | StringEnded):
            return
        string = self._string
        if string is None or string.location is not event.path:
            string = self._string = self._begin(event.path)
        if isinstance(event, StringDelta):
            self._add(string, event.text)
        else:
            self._string = None
            self._finish_string(string)

    def _begin(self, location: JsonPath) -> _String:
        string = _String(location)
        for pattern in self._family.paths:
            if pattern.matches(location):
                string.path_scope = location[: pattern.scope_length]
                string.kept = []
                break
        argument = string.argument = self._text_argument(string)
        if argument is None:
            if string.path_scope is None:
                self._keep_unnamed(string)
        elif argument.form in SECTIONED:
            kind = argument.kind or self._family.kind
            string.sections = Sections(argument.form, self._views, kind, self._path_of)
            string.kept = []
        else:
            if argument.form in PARSED:
                string.kept = []
            self._claim()
            string.view = self._view_for(argument, location)
        return string

    def _keep_unnamed(self, string: _String) -> None:
        """Neither path nor text by the table: keep what may turn out to be one of them."""
        location = string.location
        if self._family.paths and any(pattern.matches(location) for pattern in UNKNOWN.paths):
            string.may_be_path = True
            string.kept = []
        elif not self._claimed and not _is_replaced(location):
            string.kept = []
            self._unclaimed.append(string)

    def _text_argument(self, string: _String) -> TextArgument | None:
        every = None
        for argument in self._family.texts:
            if argument.pattern is None:
                every = argument
            elif argument.pattern.matches(string.location):
                return argument
        return every if string.path_scope is None else None

    def _view_for(self, argument: TextArgument, location: JsonPath) -> OpenView:
        join, scope = argument.join, location[:-1]
        if argument.pattern is None:
            self._single_views += 1
            if self._single_views > MAX_SINGLE_VIEWS:
                join, scope = "\n", ()
        kind = argument.kind or self._family.kind
        if join is None:
            return self._open(location, kind)
        view = self._joined.get((argument, scope))
        if view is None:
            view = self._joined[argument, scope] = self._open(location, kind)
        else:
            self._views.add(view, join)
        return view

    def _open(self, location: JsonPath, kind: str | None) -> OpenView:
        view = self._views.open(kind)
        self._await_path(view, location)
        return view

    def _await_path(self, view: OpenView, location: JsonPath) -> None:
        reaching = [pattern.scope_length for pattern in self._family.paths if pattern.reaches(location)]
        scope = location[: max(reaching)] if reaching else ()
        if self._family.all_paths:
            self._paths.waiting.setdefault((), []).append(view)
        elif not reaching:
            self._views.settle(view, ())
        elif scope in self._paths.known:
            self._views.settle(view, (self._paths.known[scope],))
        else:
            self._paths.waiting.setdefault(scope, []).append(view)

    def _add(self, string: _String, text: str) -> None:
        if string.view is not None:
            self._views.add(string.view, text)
        if string.kept is not None:
            string.kept.append(text)
        if string.sections is not None:
            self._settle_sections(string, string.sections.feed(text))

    def _settle_sections(self, string: _String, pathless: list[OpenView]) -> None:
        for view in pathless:
            self._await_path(view, string.location)
        if string.sections is not None and not string.sections.is_empty:
            string.kept = None
            self._claim()

    def _finish_string(self, string: _String) -> None:
        if string.sections is not None:
            self._settle_sections(string, string.sections.finish())
            if string.sections.is_empty and not self._claimed:
                self._unclaimed.append(string)
        self._parse(string)
        if string.may_be_path and string.kept and self._paths.guess is None:
            self._paths.guess = "".join(string.kept)
        if string.path_scope is not None and string.kept:
            self._learn_path(string.path_scope, self._path_of("".join(string.kept)))

    def _parse(self, string: _String) -> None:
        """Look for files in a command or script that is complete, or as far as it has come."""
        argument = string.argument
        if argument is None or argument.form not in PARSED or string.kept is None:
            return
        text = "".join(string.kept)
        if argument.join is None:
            view_payloads(argument.form, text, self._views, self._path_of)
        else:
            self._words.setdefault((argument, string.location[:-1]), []).append(text)

    def _learn_path(self, scope: JsonPath, path: str) -> None:
        if self._family.all_paths:
            if path not in self._paths.every:
                self._paths.every.append(path)
        elif scope not in self._paths.known:
            self._paths.known[scope] = path
            for view in self._paths.waiting.pop(scope, ()):
                self._views.settle(view, (path,))

    def _claim(self) -> None:
        """An argument of the family has come: what came before in other arguments is no added text."""
        self._claimed = True
        self._unclaimed.clear()

    def _end(self) -> None:
        if self._ended:
            return
        self._ended = True
        if self._string is not None:
            if self._string.sections is not None:
                self._settle_sections(self._string, self._string.sections.finish())
            self._parse(self._string)
        for (argument, _), words in self._words.items():
            view_payloads(argument.form, shlex.join(words), self._views, self._path_of)
        if self._raw is not None:
            self._views.add(self._raw, well_formed(self._stream.raw))
        else:
            self._view_rest()
        if self._paths.guess is not None and not self._paths.known and not self._paths.every:
            self._learn_path((), self._path_of(self._paths.guess))
        for scope, views in self._paths.waiting.items():
            paths = tuple(self._paths.every) or self._paths.nearest(scope)
            for view in views:
                self._views.settle(view, paths)
        self._paths.waiting.clear()

    def _view_rest(self) -> None:
        """What the table's arguments do not cover, where something must be seen all the same."""
        stream = self._stream
        if stream.broken is not None and not self._is_container:
            text = FreeText(self._family, self._views, self._path_of)
            text.feed(stream.raw)
            text.finish()
            return
        if stream.broken is not None:
            remainder = self._open(_TOP_LEVEL, self._family.kind)
            self._views.add(remainder, well_formed(stream.raw[stream.broken_at :]))
        elif not stream.complete:
            return
        if not self._claimed:
            self._view_unclaimed()

    def _view_unclaimed(self) -> None:
        """A known tool with none of its text arguments: every string counts, and there is always a view."""
        kind = self._family.plain_kind or self._family.kind
        everything = TextArgument(None, kind=kind)
        for string in self._unclaimed:
            self._views.add(self._view_for(everything, string.location), "".join(string.kept or ()))
        if not self._unclaimed and self._stream.complete:
            self._open(_TOP_LEVEL, kind)


class FreeText:
    """Input that is no JSON: a patch, a script, or one text without a path."""

    def __init__(self, family: Family, views: ViewSet, path_of: PathOf) -> None:
        self._family = family
        self._views = views
        self._path_of = path_of
        self._pairs = PairJoiner()
        self._sections: Sections | None = None
        self._kept: list[str] = []
        self._view: OpenView | None = None
        if family.freeform in SECTIONED:
            self._sections = Sections(family.freeform, views, family.kind, path_of)
        else:
            self._view = self._open()

    def feed(self, fragment: str) -> None:
        self._add(self._pairs.feed(fragment))

    def finish(self) -> None:
        self._add(self._pairs.finish())
        text = "".join(self._kept)
        self._kept.clear()
        if self._sections is not None:
            self._settle(self._sections.finish())
            if self._sections.is_empty:
                self._views.add(self._open(), text)
        elif self._family.freeform in PARSED:
            view_payloads(self._family.freeform, text, self._views, self._path_of)

    def _open(self) -> OpenView:
        view = self._views.open(self._family.kind)
        self._views.settle(view, ())
        return view

    def _add(self, text: str) -> None:
        if self._view is not None:
            self._views.add(self._view, text)
        if self._family.freeform != "text":
            self._kept.append(text)
        if self._sections is not None:
            self._settle(self._sections.feed(text))

    def _settle(self, pathless: list[OpenView]) -> None:
        for view in pathless:
            self._views.settle(view, ())


def _is_replaced(location: JsonPath) -> bool:
    return bool(location) and isinstance(location[-1], str) and location[-1].lower() in REPLACED
