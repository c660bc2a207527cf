"""The proxy route: which requests are inspected, and everything else as it came."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import structlog
from aiohttp import web
from structlog.contextvars import bound_contextvars

from ttsr_proxy.captures.tape import Label, Tape
from ttsr_proxy.config import TtsrSettings, join_upstream
from ttsr_proxy.interception.draft import Draft
from ttsr_proxy.interception.exchange import Exchange
from ttsr_proxy.interception.rulebook import RequestRulebook, request_rulebook
from ttsr_proxy.interception.setup import Requester, Setup
from ttsr_proxy.jsontext import canonical, raw_fields
from ttsr_proxy.protocols.anthropic import ANTHROPIC
from ttsr_proxy.protocols.openai_chat import OPENAI_CHAT
from ttsr_proxy.protocols.openai_responses import OPENAI_RESPONSES
from ttsr_proxy.protocols.protocol import WireProtocol
from ttsr_proxy.protocols.request import ApiRequest
from ttsr_proxy.sessions.identity import Identity, identify
from ttsr_proxy.sessions.shadow import previous_id, restore
from ttsr_proxy.triggers.inventory import ProjectRules
from ttsr_proxy.web import metrics
from ttsr_proxy.web.captures import MEGABYTE
from ttsr_proxy.web.driver import Driver, MatchingFailed, Retry, Target
from ttsr_proxy.web.encodings import Undecodable, decoded
from ttsr_proxy.web.headers import BYPASS, credential, lower_case, to_upstream
from ttsr_proxy.web.keys import PARTS, Parts, Project
from ttsr_proxy.web.passthrough import relay
from ttsr_proxy.web.request_ids import id_of, new_id
from ttsr_proxy.web.trail import TRAIL, Trail
from ttsr_proxy.web.upstream import UpstreamLost

PROTOCOLS: tuple[WireProtocol, ...] = (ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES)

_OPENAI_PATHS = ("/chat/completions", "/completions", "/responses", "/embeddings")

_RESPONSE = re.compile(r"(?P<before>(?:/[^?]*)?/responses/)(?P<id>[^/?]+)(?P<after>(?:[/?].*)?)")
"""A path to one response, to what belongs to it, or to an action on it."""

_RETRIES_CHANGE = frozenset({"stream", "stream_options", "max_tokens", "thinking"})
"""What a client may change when it retries. After an error in a stream Claude Code asks for a whole message
with fewer tokens, and when that is refused too, without saying how thinking is to be shown."""

_YES = frozenset(("1", "true", "yes", "on"))

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Route:
    """A request's place: its project and the path that upstream knows."""

    project: Project
    path: str
    path_qs: str


async def handle(request: web.Request) -> web.StreamResponse:
    """Any request that is not for one of the proxy's own endpoints."""
    parts = request.app[PARTS]
    span = parts.spans.request(request, id_of(request)) if parts.spans is not None else None
    trail = request[TRAIL] = Trail(request, parts.metrics, span)
    parts.open.add(trail)
    try:
        with bound_contextvars(**({"trace": span.trace_id} if span is not None else {})), trail:
            response = await _handle(request, parts)
            trail.answered(response.status)
            return response
    finally:
        parts.open.discard(trail)


async def _handle(request: web.Request, parts: Parts) -> web.StreamResponse:
    if not request.raw_path.startswith("/"):
        parts.count_not_inspected("forward proxy request")
        message = "this is no forward proxy: set the agent's base URL to it, not HTTP_PROXY"
        return _refused(request, 400, message, {})
    if parts.hops.has_been_here(lower_case(request.raw_headers)):
        parts.count_not_inspected("loop")
        return _refused(request, 400, "the upstream of ttsr-proxy leads back to it: set another upstream", {})
    route = _route(request, parts)
    if route is None:
        return _no_such_project(request)
    request[TRAIL].project = route.project.settings.name
    if request.headers.get("upgrade", "").lower() == "websocket":
        # Clients that would rather speak WebSocket fall back to HTTP at once on this answer.
        parts.count_not_inspected("websocket")
        return _refused(request, 426, "use HTTP: WebSocket is not supported here", {"Upgrade": "HTTP/1.1"})
    if request.method == "POST":
        path = route.path.rstrip("/")
        for protocol in PROTOCOLS:
            if path.endswith(protocol.counting_paths):
                return await _count_tokens(request, parts, route, protocol)
            if path.endswith(protocol.paths):
                return await _inspect(request, parts, route, protocol)
    parts.count_not_inspected("other endpoint")
    return await _pass(request, parts, await _with_upstreams_id(request, parts, route), None)


async def _with_upstreams_id(request: web.Request, parts: Parts, route: _Route) -> _Route:
    """The route to a stored response under the id by which upstream knows it.

    A client knows a response that was interrupted by the id of its first attempt, which upstream never
    finished.
    """
    named = _RESPONSE.fullmatch(route.path_qs)
    if named is None:
        return route
    tenant = await parts.stores.tenant(
        credential(lower_case(request.raw_headers)), route.project.settings.name
    )
    known = await parts.stores.upstream_id(tenant, named["id"])
    return replace(route, path_qs=f"{named['before']}{known}{named['after']}") if known else route


def _refused(request: web.Request, status: int, message: str, headers: dict[str, str]) -> web.Response:
    request[TRAIL].outcome = "refused"
    error = {"type": "invalid_request_error", "message": message}
    return web.json_response({"type": "error", "error": error}, status=status, headers=headers)


def _route(request: web.Request, parts: Parts) -> _Route | None:
    path, path_qs = request.rel_url.raw_path, request.raw_path
    if not path.startswith("/p/"):
        return _Route(parts.default, path, path_qs)
    name = path[3:].partition("/")[0]
    project = parts.projects.get(name)
    if project is None:
        return None
    prefix = len("/p/") + len(name)
    return _Route(project, path[prefix:] or "/", path_qs[prefix:] or "/")


def _no_such_project(request: web.Request) -> web.Response:
    request[TRAIL].outcome = "refused"
    name = request.rel_url.raw_path[3:].partition("/")[0]
    error = ANTHROPIC.error_object(404, f"ttsr-proxy serves no project {name!r}")
    return web.Response(status=404, body=ANTHROPIC.error_body(error), content_type="application/json")


async def _inspect(
    request: web.Request, parts: Parts, route: _Route, protocol: WireProtocol
) -> web.StreamResponse:
    trail = request[TRAIL]
    trail.protocol = protocol.name
    trail.route = next(path for path in protocol.paths if route.path.rstrip("/").endswith(path))
    headers = lower_case(request.raw_headers)
    sent = await request.read()
    try:
        driver = await _prepare(request, parts, route, protocol, headers, sent)
    except _NotInspected as passing:
        reason = str(passing)
    except Undecodable as undecodable:
        reason = "the request body cannot be read"
        _log.warning("not_inspected", reason=str(undecodable), path=route.path)
    except Exception as error:
        reason = "matching failed"
        request[TRAIL].fault(error, path=route.path)
    else:
        try:
            return await driver.run()
        except MatchingFailed as failed:
            reason = "matching failed"
            trail.outcome = None
            trail.fault(failed.__cause__ or failed, path=route.path)
        finally:
            if driver.tape is not None:
                parts.captures.keep(driver.tape, protocol, route.project.settings)
    parts.count_not_inspected(reason)
    return await _pass(request, parts, route, sent)


class _NotInspected(Exception):
    """The request passes as it is; the message says why."""


async def _prepare(
    request: web.Request,
    parts: Parts,
    route: _Route,
    protocol: WireProtocol,
    headers: dict[str, str],
    sent: bytes,
) -> Driver:
    """Everything that an exchange needs. Raises _NotInspected and Undecodable."""
    raw = await _decoded(sent, headers)
    api = protocol.read_request(raw, headers)
    if api is None:
        raise Undecodable("the request body is not what this endpoint takes")
    project = route.project
    ttsr = project.settings.ttsr
    who = identify(headers, api.body, path=route.path)
    trail = request[TRAIL]
    trail.client, trail.model = who.client, api.model
    tenant = await parts.stores.tenant(credential(headers), project.settings.name)
    key = _request_key(raw, api, who)
    # The store answers from a thread of its own, and meanwhile the rule files are looked at.
    recalled, left, rules = await asyncio.gather(
        parts.stores.recall(
            tenant, api.items, protocol.chain_text, prefill=api.prefill, previous=api.previous
        ),
        parts.stores.take_unfinished(tenant, key),
        _current_rules(parts, project),
    )
    bypassed = _bypassed(parts, headers, ttsr)
    ruleset, judged = (
        (watching.select(lambda rule: False) if bypassed else watching.for_agent(who.agent))
        for watching in (rules.ruleset, rules.judged)
    )
    book = RequestRulebook()
    if tenant is not None and not bypassed:
        book = request_rulebook(rules.rulebook, project.settings.rulebook, who, api, recalled)
    unwatched = None if ruleset.rules or judged.rules or book else _why_unwatched(ttsr, bypassed)
    captured = project.settings.capture.enabled and not bypassed
    if unwatched is not None and not recalled.hidden and not captured:
        raise _NotInspected(unwatched)
    parts.ast.warm_for(ruleset)
    setup = Setup(
        id=id_of(request),
        protocol=protocol,
        request=api,
        raw=raw,
        recalled=recalled,
        ruleset=ruleset,
        judged=judged,
        families=project.families,
        settings=ttsr,
        requester=_requester(project, who, tenant, unwatched if bypassed else _observed(who, ttsr)),
        left=left,
        new_id=new_id,
        rule_path=rules.shown_path,
        wall_offset=time.time() - time.monotonic(),
        prompt=book.prompt,
        readable=book.readable,
    )
    url = _upstream_url(parts, route, headers)
    upstream_headers = to_upstream(request.raw_headers, decoded=raw is not sent)
    parts.hops.mark(upstream_headers, headers, url)
    if unwatched is None:
        parts.count_inspected(protocol.name)
    else:
        # What was hidden of this conversation is still put back.
        parts.count_not_inspected(unwatched)
    exchange = Exchange(setup)
    return Driver(
        request,
        exchange,
        Target("POST", url, upstream_headers),
        parts.upstream,
        parts.stores,
        parts.ast,
        parts.judging,
        Retry(tenant, key, left is not None),
        _tape(request, headers, setup, exchange, project) if captured else None,
    )


def _tape(
    request: web.Request, headers: Mapping[str, str], setup: Setup, exchange: Exchange, project: Project
) -> Tape:
    """A tape for this exchange, with the client's request on it."""
    who, lineage = setup.requester, exchange.lineage
    label = Label(
        id=setup.id,
        record=lineage.record,
        parent=lineage.parent,
        time=time.time(),
        project=who.project,
        root=who.project_root or "",
        conversation=lineage.conversation,
        turn=lineage.turn,
        client=who.client,
        agent=who.agent,
        protocol=setup.protocol.name,
        observed=who.observed,
    )
    limit = int(project.settings.capture.exchange_megabytes * MEGABYTE)
    tape = Tape(label, limit, time.monotonic)
    tape.asked(request.method, request.raw_path, headers, setup.raw)
    return tape


async def _current_rules(parts: Parts, project: Project) -> ProjectRules:
    return project.catalog.current(await parts.library.enforced(project.settings.library_user))


def _bypassed(parts: Parts, headers: Mapping[str, str], ttsr: TtsrSettings) -> bool:
    """Whether the client asks for this request not to be matched, and may."""
    if headers.get(BYPASS, "").strip().lower() not in _YES:
        return False
    parts.metrics.count(metrics.BYPASSES, "true" if ttsr.allow_bypass else "false")
    _log.info("bypass" if ttsr.allow_bypass else "bypass_refused")
    return ttsr.allow_bypass


def _why_unwatched(ttsr: TtsrSettings, bypassed: bool) -> str:
    if bypassed:
        return "bypassed"
    return "no rule watches the stream" if ttsr.enabled else "matching is off"


def _observed(who: Identity, ttsr: TtsrSettings) -> str | None:
    return who.helper if ttsr.observe_helpers else None


def _requester(project: Project, who: Identity, tenant: str | None, observed: str | None) -> Requester:
    return Requester(
        tenant=tenant or "",
        project=project.settings.name,
        project_root=str(project.settings.path),
        session=f"{who.session}/{who.agent}" if who.session and who.agent != "main" else who.session,
        client=who.client,
        agent=who.agent,
        activity=who.activity,
        observed=observed,
    )


async def _count_tokens(
    request: web.Request, parts: Parts, route: _Route, protocol: WireProtocol
) -> web.StreamResponse:
    """Counted over the history that upstream knows, hidden parts included."""
    parts.count_not_inspected("token counting")
    request[TRAIL].protocol = protocol.name
    headers = lower_case(request.raw_headers)
    sent = await request.read()
    try:
        body = await _counted(parts, route, protocol, headers, sent)
    except Undecodable:
        body = None
    except Exception as error:
        body = None
        request[TRAIL].fault(error, path=route.path)
    if body is None:
        return await _pass(request, parts, route, sent)
    return await _pass(request, parts, route, body, decoded=True)


async def _counted(
    parts: Parts, route: _Route, protocol: WireProtocol, headers: dict[str, str], sent: bytes
) -> bytes | None:
    """The body to be counted; None when it is what the client sent. Raises Undecodable."""
    raw = await _decoded(sent, headers)
    api = protocol.read_request(raw, headers)
    if api is None:
        return None
    tenant = await parts.stores.tenant(credential(headers), route.project.settings.name)
    recalled = await parts.stores.recall(
        tenant, api.items, protocol.chain_text, prefill=api.prefill, previous=api.previous
    )
    who = identify(headers, api.body)
    book = RequestRulebook()
    if tenant is not None:
        rules = await _current_rules(parts, route.project)
        book = request_rulebook(rules.rulebook, route.project.settings.rulebook, who, api, recalled)
    history = restore(api.items, recalled, protocol.item_of_block, protocol.keep_marks)
    draft = Draft(
        protocol,
        api,
        protocol.strip_marks(history),
        (),
        without_thinking=recalled.without_thinking,
        previous=previous_id(api.previous, recalled),
        prompt=recalled.prompt or book.prompt,
    )
    body = draft.body(raw)
    return None if body is raw else body


async def _pass(
    request: web.Request, parts: Parts, route: _Route, body: bytes | None, *, decoded: bool = False
) -> web.StreamResponse:
    """Forward a request untouched; `body` if it was already read, else it is streamed through."""
    headers = lower_case(request.raw_headers)
    upstream_headers = to_upstream(request.raw_headers, decoded=decoded)
    if "accept-encoding" in headers:
        upstream_headers["Accept-Encoding"] = headers["accept-encoding"]
    else:
        del upstream_headers["Accept-Encoding"]
    url = _upstream_url(parts, route, headers)
    parts.hops.mark(upstream_headers, headers, url)
    stream = None
    if body is None and request.can_read_body:
        stream = request.content
        if "content-length" in headers:
            upstream_headers["Content-Length"] = headers["content-length"]
    trail = request[TRAIL]
    trail.call_begins(request.method, url)
    try:
        answer = await parts.upstream.call(
            request.method,
            url,
            upstream_headers,
            stream if body is None else body,
        )
    except UpstreamLost as lost:
        trail.call_went("lost")
        trail.outcome = "upstream_failed"
        spoken = OPENAI_CHAT if _is_openai(route.path, headers) else ANTHROPIC
        error = spoken.error_object(502, str(lost))
        return web.Response(status=502, body=spoken.error_body(error), content_type="application/json")
    trail.call_went("answered" if answer.status < 400 else "refused", answer.status)
    return await relay(request, answer)


def _upstream_url(parts: Parts, route: _Route, headers: dict[str, str]) -> str:
    upstreams = parts.settings.upstreams
    base = upstreams.openai if _is_openai(route.path, headers) else upstreams.anthropic
    return join_upstream(base, route.path_qs)


def _is_openai(path: str, headers: Mapping[str, str]) -> bool:
    """Whether a request is for OpenAI's API; paths below `/openai/` are Azure's."""
    path = path.rstrip("/")
    if path.endswith(_OPENAI_PATHS) or path.startswith("/openai/"):
        return True
    return (
        "authorization" in headers
        and "anthropic-version" not in headers
        and path.startswith("/v1")
        and not path.endswith((*ANTHROPIC.paths, *ANTHROPIC.counting_paths))
    )


async def _decoded(body: bytes, headers: dict[str, str]) -> bytes:
    """The body without its content encoding; the very same object if it has none. Raises Undecodable."""
    encodings = headers.get("content-encoding")
    if not encodings:
        return body
    # In a thread: a small body may become a large one.
    return await asyncio.to_thread(decoded, body, encodings)


def _request_key(raw: bytes, api: ApiRequest, who: Identity) -> str:
    """Equal for a client's retry of the same request, which says what it repeats in the same bytes."""
    fields = raw_fields(raw)
    if fields is None:
        fields = {name: canonical(value).encode("utf-8", "surrogatepass") for name, value in api.body.items()}
    digest = hashlib.sha256()
    for part in (who.session or "", who.agent):
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    for name in sorted(fields.keys() - _RETRIES_CHANGE):
        digest.update(b"%b %d\0" % (name.encode("utf-8", "surrogatepass"), len(fields[name])))
        digest.update(fields[name])
    return digest.hexdigest()[:40]
