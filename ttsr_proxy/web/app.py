"""The application: routes and the life of what they share."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import structlog
from aiohttp import web

from ttsr_proxy.config import Settings
from ttsr_proxy.jsontext import JsonObject
from ttsr_proxy.judges import make_judge
from ttsr_proxy.judges.question import PassJudge
from ttsr_proxy.toolcalls.families import FamilyTable
from ttsr_proxy.triggers.inventory import ProjectCatalog, ProjectRules
from ttsr_proxy.web import library_api, library_mcp, log_api, metrics, metrics_api, proxy, rules_api
from ttsr_proxy.web.ast_worker import AstWorker
from ttsr_proxy.web.captures import Captures
from ttsr_proxy.web.dashboard import handlers as dashboard
from ttsr_proxy.web.guard import own_endpoints_only_for, private_endpoints_only_with
from ttsr_proxy.web.judging import Judging
from ttsr_proxy.web.keys import PARTS, Parts, Project
from ttsr_proxy.web.library import Library
from ttsr_proxy.web.library_wire import refusal
from ttsr_proxy.web.request_ids import log_by_request, tell_id
from ttsr_proxy.web.stores import Stores
from ttsr_proxy.web.tracing import spans_for
from ttsr_proxy.web.upstream import UpstreamClient

if TYPE_CHECKING:
    from ttsr_proxy.web.spans import Spans

_log = structlog.get_logger()

SWEEP_SECONDS = 3600.0
"""How often retention is applied."""

ENDPOINTS = (
    ("GET", "/healthz", "200 as long as the process answers"),
    (
        "GET",
        "/readyz",
        "200, or 503 with the reason when the store cannot be used; how many requests were inspected",
    ),
    ("GET", "/ttsr/api/interrupts", "the interrupt log, as pages or as a live feed"),
    ("GET", "/ttsr/api/interrupts/{id}", "one record of the interrupt log"),
    *dashboard.ENDPOINTS,
    *rules_api.ENDPOINTS,
    *library_api.ENDPOINTS,
    library_mcp.ENDPOINT,
    metrics_api.ENDPOINT,
)
"""The proxy's own endpoints. Every other path goes upstream."""


def create_app(settings: Settings, spans: Spans | None = None) -> web.Application:
    """The aiohttp application. Without `spans` the environment says whether requests leave traces.

    Raises ToolFamilyError for a wrong row under `ttsr.toolFamilies`, KeyFileError for a wrong file of keys.
    """
    families = {project.name: _families(project.ttsr.tool_families) for project in settings.projects}
    judge = make_judge(settings.library.judge)
    no_judge = judge.reason if isinstance(judge, PassJudge) else None
    library = Library.build(settings, judge)
    # No limit of ours on bodies: long contexts and images are the client's business.
    app = web.Application(
        client_max_size=0,
        middlewares=[
            log_by_request,
            own_endpoints_only_for(settings.host, _is_own_endpoint, _refuse),
            private_endpoints_only_with(settings.token, settings.host, _is_private),
        ],
    )

    async def parts(app: web.Application) -> AsyncIterator[None]:
        stores = Stores(settings.state)
        shared = Parts(
            settings=settings,
            projects={
                project.name: Project(project, ProjectCatalog(project, no_judge), families[project.name])
                for project in settings.projects
            },
            upstream=UpstreamClient(),
            stores=stores,
            ast=AstWorker(),
            judging=Judging(judge, stores),
            library=library,
            spans=spans or spans_for(os.environ),
            captures=Captures(settings),
        )
        app[PARTS] = shared
        await shared.stores.open()
        await library.start()
        for project in shared.projects.values():
            rules = project.catalog.current(await library.enforced(project.settings.library_user))
            shared.ast.warm_for(rules.ruleset)
            _tell_judged(rules)
        shared.metrics.count(metrics.STARTS)
        working = [asyncio.create_task(_sweep(shared))]
        if shared.metrics.shared:
            working.append(asyncio.create_task(metrics_api.keep_fresh(shared)))
        yield
        for task in working:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await library.close()
        await shared.judging.close()
        await judge.close()
        shared.ast.close()
        await shared.upstream.close()
        await shared.stores.close()
        await asyncio.to_thread(shared.captures.close)
        if shared.spans is not None:
            await asyncio.to_thread(shared.spans.close)

    async def stopping(app: web.Application) -> None:
        app[PARTS].stopping.set()

    app.cleanup_ctx.append(parts)
    app.on_shutdown.append(stopping)
    app.on_response_prepare.append(tell_id)
    app.router.add_get("/healthz", _health)
    app.router.add_get("/readyz", _ready)
    app.router.add_get("/ttsr/api/interrupts", log_api.interrupts)
    app.router.add_get("/ttsr/api/interrupts/{id}", log_api.interrupt)
    dashboard.add_routes(app.router)
    for prefix in ("", "/p/{project}"):
        app.router.add_get(f"{prefix}/ttsr/api/rules", rules_api.rules)
        app.router.add_get(f"{prefix}/ttsr/api/rules/{{name}}", rules_api.rule)
    library.api.add_routes(app.router)
    library.mcp.add_routes(app.router)
    app.router.add_get("/metrics", metrics_api.show)
    app.router.add_route("*", "/{path:.*}", proxy.handle)
    return app


def _tell_judged(rules: ProjectRules) -> None:
    """Say at the start whether rules with a question are in force."""
    asking = [entry for entry in rules.inventory.entries if entry.rule.question is not None]
    if asking and rules.no_judge is not None:
        _log.warning("judged_rules_off", project=rules.project.name, rules=len(asking), reason=rules.no_judge)
    elif asking:
        _log.info("judged_rules", project=rules.project.name, rules=len(rules.judged.rules))


def _is_own_endpoint(request: web.Request) -> bool:
    match = request.match_info
    return match.http_exception is None and match.handler is not proxy.handle


def _refuse(request: web.Request, status: int, message: str) -> web.Response:
    """Clients of the library expect its envelope whatever happens."""
    if request.path.startswith(library_api.PREFIX):
        return refusal(request, status, message)
    return web.json_response({"error": {"message": message}}, status=status)


def _is_private(request: web.Request) -> bool:
    """The log, the rules and the metrics; health is anybody's, the library knows its users itself."""
    return _is_own_endpoint(request) and request.path.startswith(("/ttsr", "/p/", "/metrics"))


def _families(rows: tuple[object, ...]) -> FamilyTable:
    table = FamilyTable.default()
    return table.with_custom([row for row in rows if isinstance(row, dict)]) if rows else table


async def _health(request: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


async def _ready(request: web.Request) -> web.Response:
    parts = request.app[PARTS]
    counts: JsonObject = {"inspected": parts.inspected(), "not_inspected": parts.not_inspected()}
    if any(parts.judging.figures.values()):
        counts["judged"] = parts.judging.figures
    # They may be back, and without a request nobody would know.
    await parts.stores.check()
    if parts.stores.healthy:
        return web.json_response({"status": "ready", **counts})
    reason = "the state store cannot be used"
    return web.json_response({"status": "degraded", "reason": reason, **counts}, status=503)


async def _sweep(parts: Parts) -> None:
    while True:
        await parts.stores.sweep(parts.settings.retention)
        await asyncio.sleep(SWEEP_SECONDS)
