"""The pages' handlers: what each shows, and the one thing that can be changed."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, get_args
from urllib.parse import quote

from aiohttp import web

from ttsr_proxy.errors import StoreError
from ttsr_proxy.interrupts.marking import mark_violation
from ttsr_proxy.interrupts.record import Action, Outcome
from ttsr_proxy.interrupts.store import InterruptFilter
from ttsr_proxy.rules.buckets import Entry
from ttsr_proxy.triggers.inventory import ProjectRules
from ttsr_proxy.web.dashboard import figures
from ttsr_proxy.web.dashboard.query import WITHIN, Query
from ttsr_proxy.web.dashboard.rendering import page, static
from ttsr_proxy.web.keys import PARTS

ON_A_PAGE: Final = 50
LATEST: Final = 10
MOST_CONVERSATIONS: Final = 200
USUAL_SPAN: Final = "24h"
RULE_SPAN: Final = "30d"

ENDPOINTS: Final = (
    ("GET", "/ttsr", "leads to the dashboard"),
    ("GET", "/ttsr/", "the dashboard: an overview of the interrupt log"),
    ("GET", "/ttsr/interrupts", "the interrupt log as a page, with filters in the URL"),
    ("GET", "/ttsr/interrupts/{id}", "one record as a page"),
    ("POST", "/ttsr/interrupts/{id}", "mark a record as a false positive, or not (`mark=0`)"),
    ("GET", "/ttsr/rules", "every rule of every project with its state, as a page"),
    ("GET", "/ttsr/rules/{name}", "one rule and what came of it, as a page"),
    ("GET", "/ttsr/conversations", "the conversations in which a rule matched, as a page"),
    ("GET", "/ttsr/static/{name}", "the pages' style sheet and script"),
)

_Handler = Callable[[web.Request], Awaitable[web.Response]]


@dataclass(frozen=True, slots=True)
class _ListedRule:
    """A rule's entry in the inventory of a project."""

    project: str
    rules: ProjectRules
    entry: Entry

    @property
    def warnings(self) -> tuple[str, ...]:
        return (*self.entry.rule.warnings, *self.rules.warnings(self.entry))

    @property
    def file(self) -> str:
        return self.rules.shown_path(self.entry.rule)


def add_routes(router: web.UrlDispatcher) -> None:
    """The routes of `ENDPOINTS`."""
    router.add_get("/ttsr", _to_overview)
    router.add_get("/ttsr/", _guarded(_overview))
    router.add_get("/ttsr/interrupts", _guarded(_interrupts))
    router.add_get("/ttsr/interrupts/{id}", _guarded(_interrupt))
    router.add_post("/ttsr/interrupts/{id}", _guarded(_false_positive))
    router.add_get("/ttsr/rules", _guarded(_rules))
    router.add_get("/ttsr/rules/{name}", _guarded(_rule))
    router.add_get("/ttsr/conversations", _guarded(_conversations))
    router.add_get("/ttsr/static/{name}", static)


def _guarded(handler: _Handler) -> _Handler:
    """What a query or the store has wrong becomes a page that says so."""

    async def guarded(request: web.Request) -> web.Response:
        try:
            return await handler(request)
        except ValueError as error:
            return page("error.html", status=400, message=str(error))
        except StoreError as error:
            return page("error.html", status=503, message=str(error))

    return guarded


async def _to_overview(request: web.Request) -> web.Response:
    raise web.HTTPPermanentRedirect("/ttsr/")


async def _overview(request: web.Request) -> web.Response:
    parts = request.app[PARTS]
    store = parts.stores.interrupts
    query = Query.read(request.query)
    now = time.time()
    span = query.values.get("within", USUAL_SPAN)
    where = dataclasses.replace(query.filter(now), since=now - WITHIN[span])
    latest = await store.page(InterruptFilter(), LATEST, None)
    return page(
        "overview.html",
        here="overview",
        query=query,
        span=span,
        spans=tuple(WITHIN),
        shown=await figures.overview(store, where, now - WITHIN[span], now),
        records=latest.items,
        inspected=parts.inspected(),
        not_inspected=sorted(parts.not_inspected().items(), key=lambda entry: -entry[1]),
        healthy=parts.stores.healthy,
        feed=Query({}).feed(latest.items[0].id if latest.items else None),
        pending=any(record.outcome == "pending" for record in latest.items),
    )


async def _interrupts(request: web.Request) -> web.Response:
    store = request.app[PARTS].stores.interrupts
    query = Query.read(request.query)
    found = await store.page(query.filter(time.time()), ON_A_PAGE, query.cursor)
    live = query.cursor is None and "until" not in query.values
    return page(
        "interrupts.html",
        here="interrupts",
        query=query,
        spans=tuple(WITHIN),
        actions=get_args(Action),
        outcomes=get_args(Outcome),
        names=sorted({listed.entry.rule.name for listed in await _listed(request)}),
        records=found.items,
        next=found.next,
        feed=query.feed(found.items[0].id if found.items else None) if live else None,
        pending=any(record.outcome == "pending" for record in found.items),
    )


async def _interrupt(request: web.Request) -> web.Response:
    record_id = request.match_info["id"]
    record = await request.app[PARTS].stores.interrupts.get(record_id)
    if record is None:
        message = f"The interrupt log has no record {record_id!r}; it may have been deleted by retention."
        return page("error.html", status=404, message=message)
    return page(
        "interrupt.html",
        here="interrupts",
        record=record,
        violation=mark_violation(record),
        pending=record.outcome == "pending",
    )


async def _false_positive(request: web.Request) -> web.Response:
    """Changes the mark. Browsers send `Origin` with every form, and the guard refuses those of other pages:
    a request without one is no form of ours."""
    if "origin" not in request.headers:
        return page("error.html", status=403, message="This form is for pages of this dashboard only.")
    record_id = request.match_info["id"]
    given = (await request.post()).get("mark")
    if given not in ("0", "1"):
        raise ValueError("mark must be 0 or 1")
    await request.app[PARTS].stores.interrupts.update(record_id, false_positive=given == "1")
    raise web.HTTPSeeOther(f"/ttsr/interrupts/{quote(record_id, safe='')}")


async def _rules(request: web.Request) -> web.Response:
    parts = request.app[PARTS]
    since = time.time() - WITHIN[RULE_SPAN]
    listed = await _listed(request)
    return page(
        "rules.html",
        here="rules",
        listed=listed,
        several=len(parts.projects) > 1,
        problems=[
            (project.settings.name, problem)
            for project in parts.projects.values()
            for problem in project.catalog.current(
                await parts.library.enforced(project.settings.library_user)
            ).inventory.problems
        ],
        totals=await figures.by_rule(parts.stores.interrupts, InterruptFilter(since=since)),
        none=figures.Totals(),
    )


async def _rule(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    store = request.app[PARTS].stores.interrupts
    listed = [one for one in await _listed(request) if one.entry.rule.name == name]
    now = time.time()
    since = now - WITHIN[RULE_SPAN]
    latest = await store.page(InterruptFilter(rule=name), ON_A_PAGE, None)
    if not listed and not latest.items:
        return page("error.html", status=404, message=f"There is no rule {name!r}, and none in the log.")
    query = Query({"rule": name})
    return page(
        "rule.html",
        here="rules",
        name=name,
        listed=listed,
        several=len(request.app[PARTS].projects) > 1,
        shown=await figures.overview(store, InterruptFilter(rule=name, since=since), since, now),
        records=latest.items,
        query=query,
        feed=query.feed(latest.items[0].id if latest.items else None),
        pending=any(record.outcome == "pending" for record in latest.items),
    )


async def _conversations(request: web.Request) -> web.Response:
    parts = request.app[PARTS]
    query = Query.read(request.query)
    where = query.filter(time.time())
    return page(
        "conversations.html",
        here="conversations",
        query=query,
        spans=tuple(WITHIN),
        conversations=await figures.conversations(parts.stores.interrupts, where, MOST_CONVERSATIONS),
        most=MOST_CONVERSATIONS,
        several=len(parts.projects) > 1,
    )


async def _listed(request: web.Request) -> list[_ListedRule]:
    """The rules of all projects, in their order of precedence."""
    parts = request.app[PARTS]
    listed = []
    for project in parts.projects.values():
        rules = project.catalog.current(await parts.library.enforced(project.settings.library_user))
        listed += [_ListedRule(project.settings.name, rules, entry) for entry in rules.inventory.entries]
    return listed
