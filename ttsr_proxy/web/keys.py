"""Where the application keeps its parts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiohttp import web

from ttsr_proxy.config import ProjectSettings, Settings
from ttsr_proxy.toolcalls.families import FamilyTable
from ttsr_proxy.triggers.inventory import ProjectCatalog
from ttsr_proxy.web import metrics
from ttsr_proxy.web.ast_worker import AstWorker
from ttsr_proxy.web.captures import Captures
from ttsr_proxy.web.hops import Hops
from ttsr_proxy.web.judging import Judging
from ttsr_proxy.web.library import Library
from ttsr_proxy.web.metrics import Metrics
from ttsr_proxy.web.stores import Stores
from ttsr_proxy.web.trail import Trail
from ttsr_proxy.web.upstream import UpstreamClient

if TYPE_CHECKING:
    from ttsr_proxy.web.spans import Spans


@dataclass(frozen=True, slots=True)
class Project:
    """A project as it is served: its settings and its rules, which may change at any time."""

    settings: ProjectSettings
    catalog: ProjectCatalog
    families: FamilyTable


@dataclass(slots=True)
class Parts:
    """Everything that the handlers share."""

    settings: Settings
    projects: dict[str, Project]
    upstream: UpstreamClient
    stores: Stores
    ast: AstWorker
    judging: Judging
    library: Library
    captures: Captures
    metrics: Metrics = field(default_factory=Metrics)
    spans: Spans | None = None
    """Where requests leave traces; None where they leave none."""
    open: set[Trail] = field(default_factory=set)
    """The clients' requests under way."""
    hops: Hops = field(default_factory=Hops)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """The server is about to end: what would go on for ever has to end now."""

    @property
    def default(self) -> Project:
        return self.projects[self.settings.projects[0].name]

    def inspected(self) -> int:
        """Requests whose answers went through the matchers of any process, since the server started."""
        return sum(self.metrics.totals(metrics.INSPECTED).values())

    def not_inspected(self) -> dict[str, int]:
        """Other requests, by reason."""
        return {reason: count for (reason,), count in self.metrics.totals(metrics.NOT_INSPECTED).items()}

    def count_inspected(self, protocol: str) -> None:
        self.metrics.count(metrics.INSPECTED, protocol)

    def count_not_inspected(self, reason: str) -> None:
        self.metrics.count(metrics.NOT_INSPECTED, reason)


PARTS = web.AppKey("parts", Parts)
