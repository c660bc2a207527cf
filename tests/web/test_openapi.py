"""The OpenAPI file: complete, valid, and true of what a running proxy answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, get_args

import aiohttp
import pytest
import yaml
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate
from proxy_under_test import Workspace
from raw_http import RawUpstream, ask, raw_upstream, response
from raw_http.dialects import DIALECTS
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012
from rule_library import TIMEOUT, add
from strict_anthropic import listening

from ttsr_proxy.config import LibrarySettings, RecallSettings
from ttsr_proxy.interrupts.record import Action, InterruptRecord, Outcome
from ttsr_proxy.library.storage.libraries import Libraries
from ttsr_proxy.modes import InterruptMode, RepeatMode
from ttsr_proxy.web import log_api
from ttsr_proxy.web.app import ENDPOINTS, create_app
from ttsr_proxy.web.library_wire import STATUS
from ttsr_proxy.web.server import make_runner

FILE = Path(__file__).parents[2] / "docs/openapi.yaml"
API: dict[str, Any] = yaml.safe_load(FILE.read_text())
SCHEMAS = API["components"]["schemas"]
REGISTRY: Registry[Any] = Registry().with_resource(
    "urn:api", Resource(contents=API, specification=DRAFT202012)
)
ALSO_BELOW_PROJECTS = ("/ttsr/api/rules", "/ttsr/api/rules/{name}")
BAD = "BADWORD"


def pointer(*names: str) -> str:
    return "#/" + "/".join(name.replace("~", "~0").replace("/", "~1") for name in names)


def check(value: Any, *place: str) -> None:
    """The value is what the schema at this place says."""
    validator = Draft202012Validator({"$ref": f"urn:api{pointer(*place)}"}, registry=REGISTRY)
    errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]
    assert errors == [], (place, value)


def resolved(value: dict[str, Any]) -> dict[str, Any]:
    """What a reference leads to."""
    while "$ref" in value:
        found: Any = API
        for name in value["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        value = found
    return value


@dataclass(slots=True)
class Caller:
    """Calls operations as the file describes them, and compares each answer with it."""

    url: str
    session: aiohttp.ClientSession

    async def call(
        self, method: str, path: str, status: int, *, form: str = "application/json", **options: Any
    ) -> Any:
        """The answer to an operation; `path` may have values for its parameters, `NAME=VALUE` in braces."""
        names, sent = _template(path)
        place = ["paths", names, method.lower()]
        operation = API["paths"][names][method.lower()]
        if "json" in options:
            check(options["json"], *place, "requestBody", "content", "application/json", "schema")
        async with self.session.request(method, self.url + sent, allow_redirects=False, **options) as answer:
            body = await answer.read()
        assert answer.status == status, body
        described = resolved(operation["responses"][str(status)])
        if "content" not in described:
            return body
        assert answer.content_type == form
        assert form in described["content"]
        for name in described.get("headers", {}):
            assert name in answer.headers
        if form != "application/json":
            return body.decode()
        value = json.loads(body)
        schema = described["content"][form]["schema"]
        validator = Draft202012Validator(_absolute(schema), registry=REGISTRY)
        errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]
        assert errors == [], (method, path, value)
        return value


def _absolute(schema: Any) -> Any:
    """The schema with references that hold outside of the file."""
    match schema:
        case dict():
            return {
                key: f"urn:api{item}" if key == "$ref" else _absolute(item) for key, item in schema.items()
            }
        case list():
            return [_absolute(item) for item in schema]
    return schema


def _template(path: str) -> tuple[str, str]:
    """`/a/{id=5}` as the file names it and as it is sent."""
    place, _, query = path.partition("?")
    names, sent = [], []
    for part in place.split("/"):
        name, is_parameter, value = part.strip("{}").partition("=")
        names.append(f"{{{name}}}" if is_parameter else part)
        sent.append(value if is_parameter else part)
    return "/".join(names), "/".join(sent) + (f"?{query}" if query else "")


@pytest.fixture
async def upstream() -> AsyncIterator[RawUpstream]:
    async with raw_upstream() as server:
        yield server


@pytest.fixture
async def caller(tmp_path: Path, upstream: RawUpstream) -> AsyncIterator[Caller]:
    """A proxy with rules, a library, and an interrupt in its log."""
    workspace = Workspace(tmp_path)
    workspace.rule("no-bad-word", BAD, scope="text", description="No bad words")
    workspace.rule("off", BAD, enabled=False)
    add(Libraries(workspace.state.parent / "library").of("default"), "explicit-timeouts", TIMEOUT)
    chosen = LibrarySettings(root=workspace.state.parent / "library", recall=RecallSettings(backend="bm25"))
    settings = replace(workspace.settings(upstream.url), library=chosen)
    async with (
        listening(make_runner(create_app(settings), drain_seconds=0.1)) as url,
        aiohttp.ClientSession() as session,
    ):
        await interrupted(url, upstream)
        yield Caller(url, session)


async def interrupted(url: str, upstream: RawUpstream) -> None:
    """One interrupt more in the log."""
    dialect = DIALECTS["anthropic"]
    for said in (f"{BAD} here", "Done."):
        upstream.script.append(response(b"".join(dialect.events(said)), kind="text/event-stream"))
    await ask(url, "POST", dialect.path, *dialect.headers, body=dialect.body())


def test_the_file_is_valid() -> None:
    validate(API)


def test_it_has_the_endpoints_of_the_application_and_no_others() -> None:
    described = {
        (method.upper(), path)
        for path, item in API["paths"].items()
        for method in item
        if method != "parameters"
    }
    below = {("GET", f"/p/{{project}}{path}") for path in ALSO_BELOW_PROJECTS}
    assert described == {(method, path) for method, path, _ in ENDPOINTS} | below


def test_every_part_is_used() -> None:
    text = FILE.read_text()
    for kind, parts in API["components"].items():
        for name in parts if kind != "securitySchemes" else ():
            assert f'"#/components/{kind}/{name}"' in text, name


def test_a_record_has_the_fields_and_words_of_the_log() -> None:
    schema = SCHEMAS["Interrupt"]
    names = {field.name for field in fields(InterruptRecord)}
    assert set(schema["properties"]) == set(schema["required"]) == names
    assert schema["properties"]["action"]["enum"] == [*get_args(Action)]
    assert schema["properties"]["outcome"]["enum"] == [*get_args(Outcome)]


def test_words_limits_and_codes_are_those_of_the_program() -> None:
    assert set(SCHEMAS["InterruptMode"]["enum"]) == set(get_args(InterruptMode))
    modes = SCHEMAS["ListedRule"]["properties"]["effective"]["properties"]["repeatMode"]["enum"]
    assert set(modes) == set(get_args(RepeatMode))
    assert set(SCHEMAS["Failure"]["properties"]["error"]["properties"]["code"]["enum"]) == set(STATUS)


def test_the_logs_parameters_are_those_that_it_knows() -> None:
    given = [resolved(one) for one in API["paths"]["/ttsr/api/interrupts"]["get"]["parameters"]]
    assert {one["name"] for one in given if one["in"] == "query"} == set(log_api.PARAMETERS)
    (limit,) = (one["schema"] for one in given if one["name"] == "limit")
    assert (limit["maximum"], limit["default"]) == (log_api.MAX_LIMIT, log_api.DEFAULT_LIMIT)


async def test_health_and_figures(caller: Caller) -> None:
    await caller.call("GET", "/healthz", 200)
    await caller.call("GET", "/health", 200)
    assert (await caller.call("GET", "/readyz", 200))["inspected"] == 1
    assert "ttsr_requests_total" in await caller.call("GET", "/metrics", 200, form="text/plain")


async def test_the_log(caller: Caller) -> None:
    page = await caller.call("GET", "/ttsr/api/interrupts?limit=1", 200)
    (item,) = page["items"]
    assert await caller.call("GET", f"/ttsr/api/interrupts/{{id={item['id']}}}", 200) == item
    await caller.call("GET", "/ttsr/api/interrupts/{id=none}", 404)
    await caller.call("GET", "/ttsr/api/interrupts?limit=0", 400)
    await caller.call("GET", "/ttsr/api/interrupts", 403, headers={"Origin": "http://elsewhere"})


async def test_the_feed(caller: Caller, upstream: RawUpstream) -> None:
    headers = {"Accept": "text/event-stream"}
    async with caller.session.get(f"{caller.url}/ttsr/api/interrupts", headers=headers) as feed:
        assert feed.content_type == "text/event-stream"
        await interrupted(caller.url, upstream)
        async with asyncio.timeout(10):
            while not (line := await feed.content.readline()).startswith(b"data: "):
                pass
    check(json.loads(line.removeprefix(b"data: ")), "components", "schemas", "Interrupt")


async def test_the_rules(caller: Caller) -> None:
    for prefix in ("", "/p/{project=default}"):
        listed = await caller.call("GET", f"{prefix}/ttsr/api/rules", 200)
        assert {rule["name"]: rule["state"] for rule in listed["rules"]}["off"] == "inactive"
        rule = f"{prefix}/ttsr/api/rules/{{name=no-bad-word}}"
        assert (await caller.call("GET", rule, 200))["condition"] == [BAD]
        await caller.call("GET", rule, 200, form="text/markdown", headers={"Accept": "text/markdown"})
        await caller.call("GET", f"{prefix}/ttsr/api/rules/{{name=none}}", 404)
    await caller.call("GET", "/p/{project=none}/ttsr/api/rules", 404)


async def test_the_pages(caller: Caller) -> None:
    (item,) = (await caller.call("GET", "/ttsr/api/interrupts", 200))["items"]
    record, html = f"/ttsr/interrupts/{{id={item['id']}}}", "text/html"
    await caller.call("GET", "/ttsr", 308)
    for page in ("/ttsr/", "/ttsr/interrupts", record, "/ttsr/rules", "/ttsr/conversations"):
        await caller.call("GET", page, 200, form=html)
    await caller.call("GET", "/ttsr/rules/{name=no-bad-word}", 200, form=html)
    await caller.call("GET", "/ttsr/interrupts?since=never", 400, form=html)
    await caller.call("GET", "/ttsr/interrupts/{id=none}", 404, form=html)
    await caller.call("POST", record, 403, form=html, data={"mark": "1"})
    await caller.call("POST", record, 303, data={"mark": "1"}, headers={"Origin": caller.url})
    assert (await caller.call("GET", "/ttsr/api/interrupts", 200))["items"][0]["false_positive"] is True
    files = {"dashboard.css": "text/css", "dashboard.js": "text/javascript", "icon.svg": "image/svg+xml"}
    for name, form in files.items():
        await caller.call("GET", f"/ttsr/static/{{name={name}}}", 200, form=form)


async def test_compiling_and_tasks(caller: Caller) -> None:
    path = "/api/v1/rules/compile"
    taken = await caller.call("POST", path, 202, json={"instruction": "Never print secrets."})
    task = f"/api/v1/tasks/{{id={taken['result']['task_id']}}}"
    async with asyncio.timeout(60):
        while True:
            if (await caller.call("GET", task, 200))["result"]["status"] in ("completed", "failed"):
                break
            await asyncio.sleep(0.05)
    query = "?task_type=rule_compile&status=completed"
    assert len((await caller.call("GET", f"/api/v1/tasks{query}", 200))["result"]) == 1
    await caller.call("GET", "/api/v1/tasks?limit=0", 400)
    await caller.call("GET", "/api/v1/tasks/{id=none}", 404)
    await caller.call("POST", f"{task}/cancel", 412)
    await caller.call("POST", path, 422, json={"instruction": " "})


async def test_searching_and_reading(caller: Caller) -> None:
    found = await caller.call(
        "POST", "/api/v1/rules/search", 200, json={"task_context": "Calling a remote HTTP service."}
    )
    (rule,) = found["result"]["rules"]
    await caller.call("POST", "/api/v1/rules/search", 422, data="{}")
    read = "/api/v1/content/read?uri="
    assert (await caller.call("GET", read + rule["uri"], 200))["result"] == rule["content"]
    await caller.call("GET", read + rule["uri"].replace(".md", "-none.md"), 404)
    await caller.call("GET", read + "none", 400)
    root = rule["uri"].partition("/rules")[0] + "/rules"
    (scenario,) = (await caller.call("GET", f"/api/v1/fs/ls?uri={root}", 200))["result"]
    assert len((await caller.call("GET", f"/api/v1/fs/ls?uri={scenario['uri']}", 200))["result"]) == 2
    await caller.call("GET", "/api/v1/fs/ls?uri=none", 400)


async def test_uploading(caller: Caller) -> None:
    form = aiohttp.FormData()
    form.add_field("file", b"Never print secrets.", filename="a.md")
    await caller.call("POST", "/api/v1/resources/temp_upload", 200, data=form)
    await caller.call("POST", "/api/v1/resources/temp_upload", 400, data=b"x")


async def test_the_model_context_protocol(caller: Caller) -> None:
    accept = {"Accept": "application/json, text/event-stream"}
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    answer = await caller.call("POST", "/mcp", 200, json=hello, headers=accept)
    assert answer["result"]["serverInfo"]["name"] == "ttsr-proxy"
    await caller.call(
        "POST", "/mcp", 202, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=accept
    )
