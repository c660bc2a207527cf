"""Settings of an installation below a directory of the test's own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from strict_anthropic import listening

from ttsr_proxy.config import ProjectSettings, Settings, Upstreams


@pytest.fixture
def project(tmp_path: Path) -> ProjectSettings:
    place = ProjectSettings("default", tmp_path / "project", tmp_path / "home")
    (place.path / ".git").mkdir(parents=True)
    place.home.mkdir()
    return place


@pytest.fixture
def settings(tmp_path: Path, project: ProjectSettings) -> Callable[..., Settings]:
    """Makes settings of which only the given fields matter."""

    def made(**fields: Any) -> Settings:
        given = {
            "state": tmp_path / "state" / "state.db",
            "projects": (project,),
            "upstreams": Upstreams("http://127.0.0.1:9", "http://127.0.0.1:9"),
            **fields,
        }
        return Settings(**given)

    return made


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture
def answering() -> Callable[[Handler], AbstractAsyncContextManager[str]]:
    """Serves one handler on every path; yields the server's URL."""

    def serve(handler: Handler) -> AbstractAsyncContextManager[str]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        return listening(web.AppRunner(app))

    return serve
