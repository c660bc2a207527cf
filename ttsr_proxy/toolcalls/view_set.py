"""The views of one call while they grow."""

from __future__ import annotations

from dataclasses import dataclass, field

from ttsr_proxy.toolcalls.views import View, ViewDelta


@dataclass(slots=True, eq=False)
class OpenView:
    """A view under construction. Its text is withheld until `paths` is set."""

    number: int
    kind: str | None
    paths: tuple[str, ...] | None = None
    pieces: list[str] = field(default_factory=list)
    given: int = 0
    """How many pieces were given out."""
    announced: bool = False
    touched: bool = False


class ViewSet:
    """Numbers views in the order in which they begin, and gives out what is new in them."""

    __slots__ = ("_touched", "_views")

    def __init__(self) -> None:
        self._views: list[OpenView] = []
        self._touched: list[OpenView] = []

    def __len__(self) -> int:
        return len(self._views)

    def open(self, kind: str | None) -> OpenView:
        """A new view without paths and text."""
        view = OpenView(len(self._views), kind)
        self._views.append(view)
        return view

    def add(self, view: OpenView, text: str) -> None:
        """More text of a view."""
        if text:
            view.pieces.append(text)
            self._touch(view)

    def settle(self, view: OpenView, paths: tuple[str, ...]) -> None:
        """The view's paths are known."""
        view.paths = paths
        self._touch(view)

    def take(self) -> tuple[ViewDelta, ...]:
        """What became known since the last call: one delta per view, at least one for every view."""
        deltas: list[ViewDelta] = []
        for view in self._touched:
            view.touched = False
            if view.paths is None or (view.announced and view.given == len(view.pieces)):
                continue
            text = "".join(view.pieces[view.given :])
            view.given = len(view.pieces)
            view.announced = True
            deltas.append(ViewDelta(view.number, view.paths, view.kind, text))
        self._touched.clear()
        return tuple(deltas)

    def views(self) -> tuple[View, ...]:
        """All views as they stand."""
        return tuple(View(view.paths or (), "".join(view.pieces), view.kind) for view in self._views)

    def _touch(self, view: OpenView) -> None:
        if not view.touched:
            view.touched = True
            self._touched.append(view)
