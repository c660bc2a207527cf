"""A cut-off call made whole: the arguments as far as they had come."""

from __future__ import annotations

import json
from typing import Any

from ttsr_proxy.jsontext import JsonObject, JsonValue
from ttsr_proxy.toolcalls.json_stream import (
    ContainerStarted,
    JsonEvent,
    JsonPath,
    JsonStream,
    ScalarRead,
    StringDelta,
)


def close_partial(text: str) -> JsonObject:
    """The object that a cut-off JSON text had come to.

    Open strings and containers are closed where they stand; a key without a value, half an escape and half a
    literal are dropped, and so is all text from the first place that is no JSON. A complete object is
    what `json.loads` makes of it (with strings well formed). Never raises; `{}` where there is no object.
    """
    stream = JsonStream()
    tree = _Tree()
    for event in (*stream.feed(text), *stream.finish()):
        tree.add(event)
    value = tree.value(stream.open_string)
    return value if isinstance(value, dict) else {}


class _Tree:
    """Builds the value that decoder events describe."""

    def __init__(self) -> None:
        self._root: JsonValue = None
        self._open: list[Any] = []
        self._string: list[str] = []

    def add(self, event: JsonEvent) -> None:
        if isinstance(event, StringDelta):
            self._string.append(event.text)
        elif isinstance(event, ContainerStarted):
            container: Any = {} if event.is_object else []
            self._put(event.path, container)
            self._open.append(container)
        elif isinstance(event, ScalarRead):
            self._put(event.path, _scalar(event.text))
        else:
            self._put(event.path, self._take_string())

    def value(self, open_string: JsonPath | None) -> JsonValue:
        """The whole value, with the string that is still open taken as it stands."""
        if open_string is not None:
            self._put(open_string, self._take_string())
        return self._root

    def _take_string(self) -> str:
        text = "".join(self._string)
        self._string.clear()
        return text

    def _put(self, path: JsonPath, value: JsonValue) -> None:
        if not path:
            self._root = value
            return
        # Events come in document order, so the parent is the innermost container not yet left.
        del self._open[len(path) :]
        parent, key = self._open[-1], path[-1]
        if isinstance(parent, dict):
            parent[key] = value
        else:
            parent.append(value)


def _scalar(text: str) -> JsonValue:
    try:
        return json.loads(text)
    except ValueError:
        # An integer beyond Python's limit on digits.
        return text
