"""Spans of a request and of its upstream calls."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from aiohttp import web
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from proxy_under_test import Proxy, Workspace, listening
from raw_http import RawAnswer, RawUpstream, ask, response
from raw_http.dialects import DIALECTS, Dialect
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from ttsr_proxy.web.app import create_app
from ttsr_proxy.web.server import make_runner
from ttsr_proxy.web.spans import Spans
from ttsr_proxy.web.tracing import exporters, spans_for

STREAM = "text/event-stream"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
ANTHROPIC = DIALECTS["anthropic"]
CLOSED = "http://127.0.0.1:9"


class Kept(InMemorySpanExporter):
    """Spans that ended."""

    def __init__(self) -> None:
        super().__init__()
        self.over = asyncio.Event()
        """A request's span is there; those of its upstream calls end before it."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = super().export(spans)
        if any(span.kind is SpanKind.SERVER for span in spans):
            self.over.set()
        return result


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
async def proxy(workspace: Workspace, upstream: RawUpstream, kept: Kept) -> AsyncIterator[Proxy]:
    workspace.rule("no-bad-word", "BADWORD", scope="text")
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    app = create_app(workspace.settings(upstream.url), Spans(provider))
    async with listening(make_runner(app, drain_seconds=0.1)) as url:
        yield Proxy(url)


async def post(url: str, dialect: Dialect = ANTHROPIC, *headers: tuple[str, str], **more: Any) -> RawAnswer:
    return await ask(url, "POST", dialect.path, *dialect.headers, *headers, body=dialect.body(**more))


def says(dialect: Dialect, *texts: str) -> list[bytes]:
    return [response(b"".join(dialect.events(text)), kind=STREAM) for text in texts]


async def ended(kept: Kept) -> tuple[ReadableSpan, list[ReadableSpan]]:
    """The span of the request, once it is over, and those of its upstream calls."""
    await asyncio.wait_for(kept.over.wait(), 10)
    (server,) = (span for span in kept.get_finished_spans() if span.kind is SpanKind.SERVER)
    return server, [span for span in kept.get_finished_spans() if span.kind is SpanKind.CLIENT]


@pytest.mark.parametrize(
    ("name", "provider", "stop"),
    [
        ("anthropic", "anthropic", "end_turn"),
        ("chat", "openai", "stop"),
        ("responses", "openai", "completed"),
    ],
)
async def test_an_interrupted_request_is_a_span_with_one_for_each_call(
    upstream: RawUpstream, proxy: Proxy, kept: Kept, name: str, provider: str, stop: str
) -> None:
    dialect = DIALECTS[name]
    upstream.script.extend(says(dialect, "BADWORD here", "fine"))
    answer = await post(proxy.url, dialect, model="a-model")
    server, (first, second) = await ended(kept)
    facts = dict(server.attributes or {})
    assert server.name == f"POST {facts['http.route']}"
    assert facts["url.path"] == dialect.path
    assert dialect.path.endswith(facts["http.route"])
    assert (facts["http.request.method"], facts["http.response.status_code"]) == ("POST", 200)
    assert facts["ttsr.request"] == answer.all("x-ttsr-request-id")[0]
    assert (facts["ttsr.outcome"], facts["ttsr.interrupts"], facts["ttsr.calls"]) == ("completed", 1, 2)
    assert [(event.name, dict(event.attributes or {})) for event in server.events] == [
        (
            "ttsr.interrupt",
            {"ttsr.rule": "no-bad-word", "ttsr.action": "interrupted", "ttsr.source": "text"},
        )
    ]
    for span in (first, second):
        assert span.parent is not None
        assert span.parent.span_id == server.get_span_context().span_id
        assert span.name == "chat a-model"
        told = dict(span.attributes or {})
        assert told["gen_ai.provider.name"] == provider
        assert told["gen_ai.request.model"] == "a-model"
        assert told["server.address"] == "127.0.0.1"
        assert told["http.response.status_code"] == 200
        assert told["gen_ai.response.id"]
    told = dict(second.attributes or {})
    assert told["http.request.resend_count"] == 1
    assert told["gen_ai.response.finish_reasons"] == (stop,)
    # Chat Completions tells usage only who asks for it.
    for tokens in ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"):
        assert (told.get(tokens, 0) > 0) == (name != "chat")
    assert "gen_ai.usage.output_tokens" not in (first.attributes or {})
    assert server.status.status_code is second.status.status_code is StatusCode.UNSET


async def test_a_request_belongs_to_the_trace_that_it_names_and_upstream_sees_that_as_it_came(
    upstream: RawUpstream, proxy: Proxy, kept: Kept
) -> None:
    upstream.script.extend(says(ANTHROPIC, "fine"))
    await post(proxy.url, ANTHROPIC, ("traceparent", PARENT), ("tracestate", "a=b"))
    server, (call,) = await ended(kept)
    assert server.parent is not None
    assert f"{server.parent.span_id:016x}" == "00f067aa0ba902b7"
    assert f"{call.get_span_context().trace_id:032x}" == TRACE
    assert upstream.received[0].all("traceparent") == [PARENT]
    assert upstream.received[0].all("tracestate") == ["a=b"]


async def test_lines_of_the_log_name_the_trace(upstream: RawUpstream, proxy: Proxy) -> None:
    upstream.script.extend(says(ANTHROPIC, "fine"))
    with capture_logs([merge_contextvars]) as logged:
        await post(proxy.url, ANTHROPIC, ("traceparent", PARENT))
        await ask(proxy.url, "GET", "/v1/models")
    assert [event["trace"] for event in logged if event["path"] == "/v1/messages"] == [TRACE]


async def test_what_passes_has_its_spans_too_and_no_query(
    upstream: RawUpstream, proxy: Proxy, kept: Kept
) -> None:
    upstream.script.append(response(b"{}", status=404))
    await ask(proxy.url, "GET", "/v1/models?key=secret")
    server, (call,) = await ended(kept)
    assert server.name == call.name == "GET"
    assert (server.attributes or {})["url.path"] == "/v1/models"
    assert server.status.status_code is StatusCode.UNSET
    assert call.status.status_code is StatusCode.ERROR
    assert (call.attributes or {})["error.type"] == "404"
    assert "secret" not in f"{server.to_json()}{call.to_json()}"


async def test_failures_are_errors(upstream: RawUpstream, proxy: Proxy, kept: Kept) -> None:
    upstream.script.extend([*says(ANTHROPIC, "BADWORD"), b""])
    await post(proxy.url)
    server, (first, second) = await ended(kept)
    assert (server.attributes or {})["error.type"] == "failed"
    assert (second.attributes or {})["error.type"] == "lost"
    assert [span.status.status_code for span in (server, first, second)] == [
        StatusCode.ERROR,
        StatusCode.UNSET,
        StatusCode.ERROR,
    ]


@pytest.mark.parametrize(
    ("environ", "names"),
    [
        ({}, ()),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": CLOSED}, ("otlp",)),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": CLOSED}, ("otlp",)),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": CLOSED, "OTEL_TRACES_EXPORTER": "none"}, ()),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": CLOSED, "OTEL_SDK_DISABLED": "TRUE"}, ()),
        ({"OTEL_TRACES_EXPORTER": "console, otlp"}, ("console", "otlp")),
        ({"OTEL_SERVICE_NAME": "shop"}, ()),
    ],
)
def test_the_standard_variables_switch_it_on(environ: dict[str, str], names: tuple[str, ...]) -> None:
    assert exporters(environ) == names


def test_an_exporter_that_is_not_there_is_left_out_and_told() -> None:
    with capture_logs() as logged:
        spans = spans_for({"OTEL_TRACES_EXPORTER": "otlp,nonsense", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
    assert spans is not None
    spans.close()
    assert [(event["event"], event["exporter"]) for event in logged] == [
        ("trace_exporter_left_out", "otlp_proto_grpc"),
        ("trace_exporter_left_out", "nonsense"),
    ]


WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("opentelemetry.sdk"):
            raise ImportError(name)
sys.meta_path.insert(0, Missing())
from ttsr_proxy.web import app
from ttsr_proxy.web.tracing import spans_for
assert spans_for({}) is None
assert not any(name.startswith("opentelemetry") for name in sys.modules)
assert spans_for({"OTEL_TRACES_EXPORTER": "otlp"}) is None
"""


def test_without_the_extra_nothing_is_imported_and_asking_for_traces_is_told() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "pip install 'ttsr-proxy[otel]'" in done.stdout


async def test_spans_arrive_at_a_collector(
    workspace: Workspace, upstream: RawUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    got: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()

    async def collect(request: web.Request) -> web.Response:
        got.put_nowait((request.path, await request.read()))
        return web.Response(content_type="application/x-protobuf")

    collector = web.Application()
    collector.router.add_route("*", "/{path:.*}", collect)
    async with listening(web.AppRunner(collector)) as address:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        app = create_app(workspace.settings(upstream.url))
        async with listening(make_runner(app, drain_seconds=0.1)) as url:
            await ask(url, "GET", "/v1/models")
        path, body = got.get_nowait()
    assert path == "/v1/traces"
    assert b"ttsr-proxy" in body
    assert b"/v1/models" in body
