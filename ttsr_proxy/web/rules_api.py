"""A project's rules over HTTP: all of them with their states, and one by its name."""

from __future__ import annotations

from aiohttp import web

from ttsr_proxy.jsontext import encode
from ttsr_proxy.rules.buckets import Entry
from ttsr_proxy.triggers.inventory import ProjectRules
from ttsr_proxy.web.keys import PARTS

ENDPOINTS = (
    ("GET", "/ttsr/api/rules", "every rule with its state; also below `/p/<project>`"),
    (
        "GET",
        "/ttsr/api/rules/{name}",
        "one rule, its text with `Accept: text/markdown`; also below `/p/<project>`",
    ),
)


async def rules(request: web.Request) -> web.Response:
    """Every rule, in order of precedence."""
    found = await _rules(request)
    if found is None:
        return _no_project(request)
    listed = [found.to_dict(entry) for entry in found.inventory.entries]
    return web.Response(body=encode({"rules": listed}), content_type="application/json")


async def rule(request: web.Request) -> web.Response:
    """One rule that a conversation can be given; the name matches exactly."""
    found = await _rules(request)
    if found is None:
        return _no_project(request)
    name = request.match_info["name"]
    active = [entry for entry in found.inventory.entries if entry.bucket is not None]
    entry = next((entry for entry in active if entry.rule.name == name), None)
    if entry is None:
        names = [rule.name for rule in found.inventory.addressable]
        error = {"message": f"there is no active rule {name!r}", "available": names}
        return web.json_response({"error": error}, status=404)
    if "text/markdown" in request.headers.get("accept", ""):
        return web.Response(text=entry.rule.content, content_type="text/markdown", charset="utf-8")
    return web.Response(body=encode(_whole(found, entry)), content_type="application/json")


def _whole(found: ProjectRules, entry: Entry) -> dict[str, object]:
    return {
        **entry.rule.to_dict(),
        "path": found.shown_path(entry.rule),
        "provider": entry.provider,
        "bucket": entry.bucket,
        "state": entry.state,
        "reason": entry.reason,
    }


async def _rules(request: web.Request) -> ProjectRules | None:
    parts = request.app[PARTS]
    name = request.match_info.get("project")
    project = parts.default if name is None else parts.projects.get(name)
    if project is None:
        return None
    return project.catalog.current(await parts.library.enforced(project.settings.library_user))


def _no_project(request: web.Request) -> web.Response:
    name = request.match_info["project"]
    return web.json_response({"error": {"message": f"ttsr-proxy serves no project {name!r}"}}, status=404)
