"""Secrets are planted wherever a request or an answer has room for them, and looked for in every output.

Credentials must be nowhere at all. What people and models wrote is kept in the conversations, which need it
as it was, and nowhere else unmasked.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from proxy_under_test import Workspace
from raw_http import RawUpstream, ask, response
from raw_http.dialects import DIALECTS, Dialect

from ttsr_proxy.cli.logging import configure_logging
from ttsr_proxy.interception.exchange import Exchange
from ttsr_proxy.web import app
from ttsr_proxy.web.spans import Spans

CREDENTIALS = {
    "x-api-key": "canary-Aq1Zp0Xw",
    "authorization": "Bearer canary-Bw2Yo9Ve",
    "cookie": "session=canary-Ce3Xn8Ud",
    "x-goog-api-key": "canary-Dr4Wm7Tc",
    "x-custom-secret": "canary-Et5Vl6Sb",
    "x-ttsr-session-hint": "canary-Fy6Uk5Ra",
}
QUERY = "canary-Gu7Tj4Qz"
PROMPT = "sk-ant-api03-canaryHi8Sh3Py"
SAID = "ghp_canaryJo9Rg2Ox0000000000000000000000"
ANSWER_HEADER = "canary-Kp0Qf1Nw"
REFUSAL = "sk-proj-canaryLs1Pe0Mv999999"
NOWHERE = [*(value.split("canary-")[1] for value in CREDENTIALS.values()), "Gu7Tj4Qz", "Kp0Qf1Nw"]
MASKED = ["Hi8Sh3Py", "Jo9Rg2Ox", "Ls1Pe0Mv"]


@pytest.fixture
def told() -> Iterator[io.StringIO]:
    """Everything that the program and its libraries log, at their most talkative."""
    stream = io.StringIO()
    configure_logging(stream, level=logging.DEBUG)
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.DEBUG)
    yield stream
    root.setLevel(level)
    root.handlers.clear()
    structlog.reset_defaults()


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """All spans of the proxies that are started."""
    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(app, "spans_for", lambda environ: Spans(provider))
    return kept


@pytest.fixture(autouse=True)
def rule(workspace: Workspace) -> None:
    workspace.rule("no-keys", "ghp_", scope="text")


def headers_of(dialect: Dialect) -> list[tuple[str, str]]:
    own = [(name, value) for name, value in dialect.headers if name not in CREDENTIALS]
    return [*own, *CREDENTIALS.items()]


async def outputs(url: str) -> str:
    """What the proxy's own endpoints answer, and its error pages."""
    log = await ask(url, "GET", "/ttsr/api/interrupts")
    records = [item["id"] for item in json.loads(log.body)["items"]]
    paths = (
        "/ttsr/api/interrupts",
        "/ttsr/",
        "/ttsr/interrupts",
        "/ttsr/rules",
        "/ttsr/conversations",
        *(f"/ttsr/{place}/{record}" for place in ("interrupts", "api/interrupts") for record in records),
        "/metrics",
        "/readyz",
        "/healthz",
        f"/p/none/v1/messages?key={QUERY}",
        "/ttsr/api/x",
    )
    answers = [await ask(url, "GET", path, *CREDENTIALS.items()) for path in paths]
    return "".join(f"{answer.headers}{answer.body.decode('utf-8', 'replace')}" for answer in answers)


def files(workspace: Workspace) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(workspace.state.parent.rglob("*")) if path.is_file())


def log_table(state: Path) -> str:
    with contextlib.closing(sqlite3.connect(state)) as connection:
        tables = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if "interrupt" in name
        ]
        assert tables
        return "".join(str(connection.execute(f"SELECT * FROM {name}").fetchall()) for name in tables)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", DIALECTS)
async def test_no_secret_is_found_in_any_output(
    workspace: Workspace,
    upstream: RawUpstream,
    start_proxy: Any,
    told: io.StringIO,
    traced: InMemorySpanExporter,
    name: str,
    stream: bool,
) -> None:
    dialect = DIALECTS[name]
    proxy = await start_proxy()
    said = f"The key is {SAID} as you asked."
    extra = ("x-upstream-secret", ANSWER_HEADER), ("set-cookie", f"a={ANSWER_HEADER}")
    violation, clean = b"".join(dialect.events(said)), b"".join(dialect.events("It is hidden."))
    refusal = response(f'{{"error": {{"message": "wrong key {REFUSAL}"}}}}'.encode(), *extra, status=401)
    question = {"messages": [{"role": "user", "content": f"my key is {PROMPT}"}]}
    if name == "responses":
        question["input"] = question.pop("messages")
    kind = "text/event-stream"
    upstream.script.extend(
        [response(violation, *extra, kind=kind), response(clean, *extra, kind=kind), refusal]
        if stream
        else [refusal]
    )
    upstream.script.extend([response(violation, *extra, kind=kind), refusal, refusal, refusal])
    for _ in range(3):
        await ask(
            proxy.url,
            "POST",
            f"{dialect.path}?key={QUERY}",
            *headers_of(dialect),
            body=dialect.body(**question, stream=stream),
        )
    upstream.script.clear()
    upstream.script.append(b"no HTTP at all")
    for method, path in (("GET", f"/v1/models?key={QUERY}"), ("POST", f"/v1/unknown?key={QUERY}")):
        await ask(proxy.url, method, path, *headers_of(dialect), body=PROMPT.encode())

    shown = await outputs(proxy.url) + told.getvalue() + log_table(workspace.state)
    spans = traced.get_finished_spans()
    assert len(spans) > 10
    shown += "".join(span.to_json() for span in spans)
    for canary in (*NOWHERE, *MASKED):
        assert canary not in shown, canary
    kept = files(workspace)
    for canary in NOWHERE:
        assert canary.encode() not in kept, canary


@pytest.mark.parametrize("stage", ["__init__", "start", "data"])
async def test_a_fault_of_the_program_tells_no_secret(
    upstream: RawUpstream,
    start_proxy: Any,
    monkeypatch: pytest.MonkeyPatch,
    told: io.StringIO,
    stage: str,
) -> None:
    def explode(*args: object, **kwargs: object) -> Any:
        raise RuntimeError(f"{PROMPT} {args} {kwargs}")

    dialect = DIALECTS["anthropic"]
    proxy = await start_proxy()
    monkeypatch.setattr(Exchange, stage, explode)
    upstream.script.extend(
        response(b"".join(dialect.events(SAID)), kind="text/event-stream") for _ in range(2)
    )
    await ask(
        proxy.url,
        "POST",
        f"{dialect.path}?key={QUERY}",
        *headers_of(dialect),
        body=dialect.body(system=PROMPT),
    )
    assert "matching_failed" in told.getvalue()
    for canary in (*NOWHERE, *MASKED):
        assert canary not in told.getvalue(), canary


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET /x?key=canary-Gu7Tj4Qz HTTP/9.9\r\n\r\n",
        b"GET /x?key=canary-Gu7Tj4Qz HTTP/1.1\r\nHost: x\r\nX-Api-Key canary-Gu7Tj4Qz\r\n\r\n",
        b"POST /?key=canary-Gu7Tj4Qz HTTP/1.1\r\nHost: x\r\nContent-Length: canary-Gu7Tj4Qz\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX-Api-Key: canary-Gu7Tj4Qz\x00\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX-Api-Key: canary-Gu7Tj4Qz" + b"x" * 100_000 + b"\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key: canary-Gu7Tj4Qz\r\n"
        b"Transfer-Encoding: chunked\r\n\r\nzz\r\ncanary-Gu7Tj4Qz\r\n",
        b"\x16\x03\x01canary-Gu7Tj4Qz\r\n\r\n",
    ],
)
async def test_a_request_that_is_no_http_is_refused_without_being_logged(
    start_proxy: Any, told: io.StringIO, request_line: bytes
) -> None:
    proxy = await start_proxy()
    host, _, port = proxy.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request_line)
    writer.write_eof()
    async with asyncio.timeout(10):
        with contextlib.suppress(ConnectionError):
            await reader.read()
    writer.close()
    assert "Gu7Tj4Qz" not in told.getvalue()
